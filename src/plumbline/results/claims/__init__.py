"""Checks the claims of a paper against finished runs.

claim_registry.py the register: which function checks which claim
claim_checkers.py the rules: printed values against measured ones
claim_tolerances.py how far a measured value may be from a printed one
claim_effects.py  the effect that a claim names, without which nothing else of it counts
claim_verdicts.py    the verdicts, as csv and as a page
"""
