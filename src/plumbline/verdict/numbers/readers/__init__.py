"""Reads numbers of any program, a module a shape."""
