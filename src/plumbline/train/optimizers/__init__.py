"""Optimizers, one file each, with one function: `build(groups, spec)`. What it returns has the surface of a torch
optimizer: `param_groups`, `state` (tensors by parameter), `step()` and `zero_grad()`.

`groups` are torch parameter groups that carry `roles` (one ParameterRole a parameter) beside what torch needs, for
optimizers that treat matrices in a way of their own.
"""
