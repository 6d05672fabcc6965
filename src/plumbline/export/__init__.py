"""Models that travel: a run as a folder that other tools load, without this package.

`carried` holds the sources that only such a folder runs; `carry` collects the others from the model's own.
"""
