"""Holds the key_norms study's tables, one file each: finished runs in, a table out."""
