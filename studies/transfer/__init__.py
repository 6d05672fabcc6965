"""Holds the code of the transfer study: tables, figures, claims, audit."""
