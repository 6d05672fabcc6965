"""Checks the claims of a paper against finished runs."""
