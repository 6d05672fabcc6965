"""Losses of short runs, kept so that a change of the numerics cannot go unseen."""
