"""Makes tables, figures and verdicts on claims from finished runs, with printed and reproduced numbers side by side.

What a single study's tables, figures and claims contain stands in its folder, `studies/<study>/`.
"""
