"""Says what would stop a run before anything runs.

One module a concern, with `check`, which returns findings on the jobs to be run, or `list_refusals`, which returns what
stops them as sentences. `__main__` makes all checks of a command line, `before_first_job` those that the configuration
alone allows.
"""
