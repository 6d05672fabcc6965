"""Draws figures: one style, and the same bytes from the same numbers.

figure_style.py   colours, sizes, panels, and how a figure is saved
"""
