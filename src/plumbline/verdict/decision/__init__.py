"""Decides between a baseline and a candidate while runs come in: the loop, its boundary, the bank, page and picture."""
