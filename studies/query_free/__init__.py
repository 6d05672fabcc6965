"""Holds the code of the query_free study: tables, figures, claims, audit."""
