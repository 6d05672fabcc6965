"""Judges what a study's small.yaml states of small models by the runs that it asks for."""
