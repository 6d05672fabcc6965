"""Measures what the query_free study needs in addition to training: one module for each, a function of its name."""
