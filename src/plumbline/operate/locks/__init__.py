"""Keeps one Snakemake at a time in a directory, and finds jobs that an earlier one left in a queue.

workflow_lock.py  holds the directory around Snakemake's own lock, and clears what a dead Snakemake left
orphan_jobs.py    lists the jobs that an earlier Snakemake left in SLURM's queue, and lets new ones wait for them
"""
