"""The transfer study's tables: frames in, a table out."""

from plumbline.tables.transfer.table2 import table2

TABLES = {"table2": table2}
