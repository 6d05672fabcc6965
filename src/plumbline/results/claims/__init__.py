"""Checks the claims of a paper against finished runs.

claim_registry.py the register: which function checks which claim
claim_checkers.py the rules: printed values against measured ones
claim_tolerances.py how far a measured value may be from a printed one
claim_verdicts.py the verdicts, as csv and as a page
replication_rates.py how often each claim would be reproduced
"""
