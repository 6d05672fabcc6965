"""Checks the papers' theorems by running them."""
