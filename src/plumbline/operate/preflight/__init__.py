"""Says what would stop a run before anything runs.

One module a concern, each with a function `check` that checks the jobs to be run and returns findings. `__main__` makes
all checks of a command line, `before_first_job` those that the configuration alone allows.
"""
