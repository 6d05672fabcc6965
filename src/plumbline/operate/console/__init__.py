"""Shows what a Snakemake is doing: stages, progress, how long it will take, what happened to each job.

log_handler.py    receives the records of Snakemake's log (as the logger plugin `plumbline`)
job_log.py        counts the jobs from them
forecast.py       how long the jobs will take, before the first begins
run_progress.py   how far a run at work is, and times in words
job_display.py    bars in a terminal, lines elsewhere
rule_names.py     the rules in plain words, and their stages
"""
