"""Says what would stop a run before anything runs.

    __main__.py            all checks of a command line (`python -m plumbline.operate.preflight`)
    before_first_job.py    those that the configuration alone allows, at every dry run and before a run's first job
    dry_run.py             the jobs that a command line would run, which all checks are given
    check_result.py        what a check reports

One module a concern, each with a function `check` that checks the jobs to be run and returns findings:
    environment.py         the interpreter, packages, Snakemake's executor
    folders.py             folders that a user names: texts, data sets, evaluation items
    tasks.py               benchmark tasks whose file does not say where items come from
    data_archives.py       pinned packages that are to be fetched
    hub.py                 data sets of the Hugging Face hub
    gpu.py                 a GPU, where jobs want one
    disk_and_memory.py     room on the disk of `work`, memory for a job
    in_use.py              another Snakemake in this directory, another trainer of a run
    cluster.py             SLURM's answer to each kind of job
Only before the first job:
    own_method.py          a user's own method: is it causal, and so on (own_checks.py, own_training.py)
    sharing.py             folders that several users share
"""
