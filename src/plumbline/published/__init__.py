"""Holds what papers print: numbers as texts, their cells, the intervals they stand for, and what follows from them."""
