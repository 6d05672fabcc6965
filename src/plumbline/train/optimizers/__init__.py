"""Optimizers, one file each, with one function: `build(groups, spec)`.

`groups` are torch parameter groups that carry `roles` (one ParameterRole a parameter) beside what torch needs, for
optimizers that treat matrices in a way of their own.
"""
