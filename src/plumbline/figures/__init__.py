"""Figures: finished runs in; a picture, a drawing and the plotted numbers out."""
