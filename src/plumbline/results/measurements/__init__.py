"""Makes and reads what a study measures beside its runs."""
