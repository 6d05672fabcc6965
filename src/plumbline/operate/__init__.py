"""What a real cluster needs beyond the workflow: jobs that outlived their Snakemake, and a look ahead."""
