"""Its figures."""
