"""Makes and reads what a study measures apart from its runs (a step's time, say)."""
