"""Records how a run at work is doing: metrics, progress, memory, MLflow."""
