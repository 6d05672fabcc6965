"""Shows what a Snakemake is doing: stages, progress, how long it will take, what happened to each job."""
