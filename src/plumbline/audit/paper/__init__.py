"""Audits any paper: a folder of its tables as CSV, or typed from its LaTeX, against the checks that they allow."""
