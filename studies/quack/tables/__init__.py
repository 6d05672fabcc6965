"""Holds the quack study's tables, one file each."""
