"""Holds all that is particular to the key_norms document."""
