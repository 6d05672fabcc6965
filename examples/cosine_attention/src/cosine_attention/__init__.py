"""Scaled cosine attention for Plumbline."""
