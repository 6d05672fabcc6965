"""Optimizers, one file each: a component made of ``(groups, spec)`` and its options, with the surface of a torch
optimizer: `param_groups`, `state` (tensors by parameter), `step()` and `zero_grad()`.

`groups` are torch parameter groups that carry `roles` (one ParameterRole a parameter) beside what torch needs, for
optimizers that treat matrices in a way of their own; `spec` has what all optimizers share.
"""
