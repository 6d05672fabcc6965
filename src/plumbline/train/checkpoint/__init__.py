"""Saves and loads the state of a run: rolling checkpoints, probe checkpoints, and the lock that guards them."""
