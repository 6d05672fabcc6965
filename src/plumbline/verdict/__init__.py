"""Tells whether a change is real, with power and a ledger of what was tried."""
