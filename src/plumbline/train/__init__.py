"""Pretrains: takes one run from its spec to weights, metrics, a manifest and an outcome.

`pretrain` is the order of a run, `loop` its steps.
"""
