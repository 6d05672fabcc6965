"""Recomputes the printed numbers of a paper that follow from other printed numbers. Needs neither torch nor pandas."""
