"""Holds the components of the slot `output`: what happens to head outputs before the output projection."""
