"""Holds the components of the slot `values`: what happens to values before they are mixed."""
