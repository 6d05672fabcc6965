"""Keeps a running run on the disk, so that it can continue after anything: all of how that is done is in this
folder.

What is written of a run goes through `checkpoint_saver`, what is read of it through `resume_run`, and what a run knows
of itself besides weights and optimizer, `training_state`, through both. Who does not train reads a state directory by
the functions of `state_records`. Nothing else is imported from outside (a contract in pyproject.toml).

Two checkpoints of one state have the same bytes, metadata included: no clock times, nothing of the process.
"""
