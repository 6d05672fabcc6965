"""Holds the premature study's tables: one module for each, a function of its name."""
