"""Reads what others wrote, a module a format: rows, submissions, lm-eval's samples, boards of records, logs."""
