"""Makes tables, shows them, and finds the runs behind a cell.

table.py          columns, rows, cells with their runs
layout.py         columns and notes that tables of several studies share
formats.py        how numbers are printed
render.py         the four files of a table
provenance.py     the one of them that says where each cell comes from
terminal_table.py a finished table in a terminal
trace.py          from a cell to its runs
"""
