"""Holds what training, probing and scoring share: ranks, numerics, provenance, and reading finished runs."""
