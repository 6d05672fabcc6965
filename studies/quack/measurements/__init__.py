"""Measures what the quack study needs beside training: one module for each, a function of its name."""
