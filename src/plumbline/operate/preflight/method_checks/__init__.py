"""Checks a method before it is trained, at the context that it is trained at, and after it with the trained weights."""
