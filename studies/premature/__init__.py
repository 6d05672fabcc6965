"""Holds the code of the premature study: tables, figures, claims, audit."""
