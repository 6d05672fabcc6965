"""Holds the code of the key_norms study: tables, figures, claims, audit."""
