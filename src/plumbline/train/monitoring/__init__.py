"""Records what a run at work tells of itself: metrics, progress, memory, MLflow."""
