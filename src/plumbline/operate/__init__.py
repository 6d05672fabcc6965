"""Helps a person run the workflow: says what would stop it, shows its progress, cleans up after it.

What all of it knows of Snakemake beyond its public interface is in `plumbline.project.snakemake_internals`.
"""
