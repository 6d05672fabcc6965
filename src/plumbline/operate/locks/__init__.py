"""Keeps one Snakemake at a time in a directory, and finds jobs that an earlier one left in a queue."""
