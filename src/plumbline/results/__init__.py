"""Makes tables, figures and verdicts on claims from finished runs, with printed and reproduced numbers side by side.

    __main__.py       the commands: a table, a figure, the claims of a study, a finished table in a terminal
    runs/             finished runs as frames: which are expected, what they hold, whether they can be compared
    measurements/     what a study measures beside its runs
    tables/           cells, columns, files, and the way from a cell back to its runs
    figures/          one style, the same bytes from the same numbers
    claims/           what is compared, by which rule, with which verdict
    interpretations.py     the page of what a paper leaves open, and what was decided about it
What a single study's tables, figures and claims contain stands in its folder, `studies/<study>/`.
"""
