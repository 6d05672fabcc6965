"""The audit: printed numbers that follow from other printed numbers, recomputed. Needs no torch."""
