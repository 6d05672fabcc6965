"""Shows a board of records: a row a record with what was checked of it, and how far luck alone would have come.

- `board_rows`: the rows, from what the gate found of each record.
- `project_board`: the rows of a project's own records and verdicts.
- `progress`: the best headline over time, and the band of the best of so many tries if nothing helped.
- `board_page`: the page, its pictures, `board.json` and `card.svg`.
"""
