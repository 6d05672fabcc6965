"""Checks the theorems of the paper by running them on random weights."""
