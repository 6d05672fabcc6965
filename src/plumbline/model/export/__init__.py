"""Exports a run as a folder that other tools load without this package.

`carried` holds the sources that only such a folder runs; `vendored_source` collects the others from the model's own.
"""
