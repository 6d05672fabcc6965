"""Checks the claims of a paper against finished runs.

registry.py      the register: which function checks which claim
checkers.py       the rules: printed values against measured ones
verdicts.py          the verdicts, as csv and as a page
"""
