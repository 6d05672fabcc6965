"""Helps a person run the workflow: states what would stop it, shows its progress, cleans up after it; and runs
experiments beside it (`plumbline try`).

What all of it knows of Snakemake beyond its public interface is in `plumbline.project.snakemake_internals`.
"""
