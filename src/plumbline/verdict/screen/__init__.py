"""Judges many changes in one design: factors and rows, effects, the course of the runs, the page."""
