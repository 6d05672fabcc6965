"""The audit: every printed number that follows from other printed numbers, recomputed. Needs no torch."""
