"""Runs a trainer that was written elsewhere: arms as commits and flags, seeds without an edit, a metric from a log."""
