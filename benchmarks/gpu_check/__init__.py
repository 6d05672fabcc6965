"""Measures what a GPU does with Plumbline, in one command: `make gpu-check`, or `python -m benchmarks.gpu_check`.

A section (`sections`) is a function that gives rows, and a row a function that returns numbers. Each section has a
process of its own, so that neither a kernel that ruins the device's context nor a row that never ends takes the others
with it.
"""
