"""Rules that keep a change, run on changes whose truth is known: the parts of `experiment_rules.py`."""
