"""Judges numbers from any program: tables, logs of a search, submissions, items of two models."""
