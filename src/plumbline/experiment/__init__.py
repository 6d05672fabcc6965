"""Judges methods by the noise-floor protocol, from numbers of any program, with power and a ledger of what was
tried.

Nothing here knows where a number comes from: `judge` takes two sets of seeds, `search` the log of a sequential search,
`ledger` the entries of either.
"""
