"""Measures what the query_free study needs beside training: one module for each, a function of its name."""
