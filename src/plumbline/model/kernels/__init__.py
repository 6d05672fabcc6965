"""Computes attention on GPUs in Triton, and says which kernel a mixer's weights run through.

A kernel is a faster way to the numbers of a mixer's reference, and the tests hold it equal to that, outputs and
gradients, in Triton's interpreter. It is no part of a run's identity, as torch's own kernels are none; its file is in
`code_sha256`. Nothing here imports a mixer, and nothing but the kernels' own files imports Triton.
"""
