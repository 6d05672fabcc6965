"""Checks the claims of a paper: what is compared, the rules, the verdicts."""
