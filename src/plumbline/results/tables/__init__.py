"""Makes tables, shows them, and finds the runs behind a cell."""
