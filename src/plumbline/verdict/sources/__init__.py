"""Reads what others wrote, a module a format: rows, submissions, lm-eval's samples, boards of records, logs.

A format is a module that finds whether a path is of its kind and reads it as `Evidence` or rows;
`plumbline.verdict.numbers.numbers_verdict` chooses between them. `run_rows`, `run_statuses` and `printed_*` interpret
what was read; `study_runs` reads the runs of a study.
"""
