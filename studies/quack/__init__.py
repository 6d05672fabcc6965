"""Holds all that is particular to the quack document."""
