"""Holds the sources that an exported folder runs in place of this package's own.

Nothing here may import what is not carried.
"""
