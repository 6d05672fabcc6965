"""Makes tables: cells with their runs, columns, rendered files, and the way from a cell to its runs."""
