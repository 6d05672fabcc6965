"""Holds all that is particular to the transfer document."""
