"""Holds all that is particular to the query_free document."""
