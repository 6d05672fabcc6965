"""Makes tables, shows them, and finds the runs behind a cell.

table.py          columns, rows, cells with their runs
shared_columns.py columns and notes that tables of several studies share
number_formats.py how numbers are printed
paper_columns.py  the columns of a table that a paper has room for
write_table.py    the files of a table
tex_table.py      those for TeX: for a paper, with all columns, and the notes
tex_text.py       texts and numbers as TeX has them
provenance.py     the file that says where each cell comes from
terminal_table.py a finished table in a terminal
trace_cell.py     from a cell to its runs
"""
