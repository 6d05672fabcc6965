"""Makes tables, shows them, and finds the runs behind a cell.

table.py          columns, rows, cells with their runs
shared_columns.py columns and notes that tables of several studies share
number_formats.py how numbers are printed
write_table.py    the four files of a table
provenance.py     the one of them that says where each cell comes from
terminal_table.py a finished table in a terminal
trace_cell.py     from a cell to its runs
"""
