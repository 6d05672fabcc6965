"""Measures what the quack study needs in addition to training: one module for each, a function of its name."""
