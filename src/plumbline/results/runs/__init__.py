"""Reads finished runs for tables, figures and claims, and checks that they can be compared."""
