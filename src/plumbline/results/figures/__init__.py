"""Draws figures: one style, and the same bytes from the same numbers."""
