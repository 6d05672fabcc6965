"""Judges many changes in one design of runs: the design, its effects, its course and its page."""
