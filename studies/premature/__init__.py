"""Holds all that is particular to the premature document."""
