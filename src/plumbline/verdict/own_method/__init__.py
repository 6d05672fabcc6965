"""Judges the methods of a user's own file from their finished runs, and writes the page."""
