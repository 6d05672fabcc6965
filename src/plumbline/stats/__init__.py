"""Computes the protocol's statistics, as a library: noise floor, corrections, paired differences, ranks, power.

Missing values are NaN going in and NaN coming out: never zero, never dropped from an index.
"""
