"""Verdicts by the noise-floor protocol, from numbers of any program: what decides, its power, and the ledger of tries.

Nothing here knows where a number comes from: `judge` takes two sets of seeds, `search` the log of a sequential search,
`ledger` the entries of either.
"""
