"""What would stop a run, said before anything runs.

`python -m plumbline.operate.preflight` looks at all of it; a dry run, and a run before its first job, at what the plan
alone tells (`before_first_job`). One module a concern, each with a function `look` from a plan to findings.
"""
