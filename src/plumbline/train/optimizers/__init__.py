"""Holds the optimizers, one file each: components made of ``(groups, spec)`` and options, like a torch optimizer.

They have a torch optimizer's surface: `param_groups`, `state` (tensors by parameter), `step()` and `zero_grad()`. One
whose `can_skip` is true takes `step(skip)` as well, a float32 scalar on the device: 1 changes neither parameters nor
state, and 0 is a step like any; a GPU then need not wait for the host to have seen a loss.

`groups` are torch parameter groups that carry `roles` (one ParameterRole a parameter) beside what torch needs, for
optimizers that treat matrices in a way of their own; `spec` has what all optimizers share.
"""
