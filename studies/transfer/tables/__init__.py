"""Holds the transfer study's tables, one file each: finished runs in, a table out."""
