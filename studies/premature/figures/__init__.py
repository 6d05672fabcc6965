"""Holds the premature study's figures: one module for each, a function of its name."""
