"""Helps a person run the workflow: says what would stop it, shows its progress, cleans up after it.

Before a run:
    preflight/        what would stop a run, said before anything runs
    staleness.py      files made with other code, settings or data than now, which Snakemake makes again
    locks/            one Snakemake at a time in a directory; jobs of an earlier one that are still in SLURM's queue
While it runs:
    console/          what a person reads: bars, finished runs, time left
    status.py         every run that was ever started, and its state
    gpu_queue.py      a GPU for each job of a machine that has several
    prefork/          short jobs start from a process that has imported the packages already
Afterwards:
    cleanup.py        what nothing needs any more on the disk, listed, and removed when asked
What all of it knows of Snakemake beyond its public interface is in `plumbline.project.snakemake_internals`.
"""
