"""Holds the code of the quack study: tables, figures, claims, audit."""
