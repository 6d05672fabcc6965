"""What a GPU does with Plumbline, in one command: `make gpu-check`, or `python -m benchmarks.gpu_check`.

Sections are carried out one after another, each in a process of its own, so that neither a kernel that ruins the
device's context nor a row that never ends takes the others with it. A section (a file of `sections/`) is a list of
rows, and a row is a function that returns numbers. Every row is written into one JSON file as it comes: the next call
goes on with what is missing. The page is drawn from the JSON alone.
"""
