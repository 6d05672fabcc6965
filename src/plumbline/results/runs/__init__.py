"""Reads finished runs for a table: which are expected, what they hold, and whether they can be compared."""
