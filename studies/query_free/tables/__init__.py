"""Holds the query_free study's tables, one file each: finished runs in, a `Table` out."""
