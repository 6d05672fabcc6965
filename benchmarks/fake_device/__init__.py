"""What a training step would ask of a GPU, seen without one: ``python -m benchmarks.fake_device``.

torch's fake tensors compute shapes and types, and no numbers. On a CUDA device that is not there they go through the
code of one at full size, in seconds and without memory, while every operator that would be a kernel is counted.
"""
