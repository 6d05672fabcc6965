"""Arranges a table as people read it: the paper's columns first, a printed number below ours, then the other columns.

Markdown, TeX, the terminal and pages of the report all write what this gives, each as many columns as it has room for.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plumbline.published.printed_numbers import NOT_PRINTED
from plumbline.results.tables.paper_columns import NOT_REPRODUCED, NOT_REPRODUCED_NOTE
from plumbline.results.tables.table import EXACT_NOTE, Column, PaperColumn, Table
from plumbline.specs.corpus import REPRODUCTION

#: Columns of a table, where it has more than the paper's and the narrow ones.
MOST = 10

#: Lines above a table at most, and the signs of a line on a page; what is more stands below the table.
ABOVE, PAGE_LINE = 6, 80

#: With what the warning begins that names the preset: what a table found stands before it.
PRESET_LINE = "Preset: "

BELOW_NOTE = "In parentheses: the number that the paper prints."
ONCE_NOTE = "A setting that equals the printed one stands once."
HEADINGS_NOTE = "Headings above such numbers are the paper's, and so are sizes in them."


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell: our text, and below it what the paper prints; `again`: it repeats the cell above (`Column.once`).

    `row`: the key of the table's row that it is of, `names` the table's columns.
    """

    text: str
    printed: str = ""
    bold: bool = False
    again: bool = False
    row: str = ""
    names: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The cell's lines."""
        return [self.text, f"({self.printed})"] if self.printed else [self.text]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownColumn:
    """A column: `names` are the table's columns that are in it, `of_paper` whether the paper's table has it.

    `narrow`, `paper`: as of `plumbline.results.tables.table.Column`.
    """

    heading: str
    names: tuple[str, ...]
    cells: list[ShownCell]
    numeric: bool
    of_paper: bool = False
    label: bool = False
    readable: bool = True
    narrow: bool = False
    paper: bool = False

    @property
    def longest(self) -> int:
        """The signs of the longest line of a cell."""
        return max((len(line) for cell in self.cells for line in cell.lines), default=0)


def arrange_columns(table: Table) -> list[ShownColumn]:
    """Arrange the columns that people read: the paper's, then the others in declared order.

    A column of printed numbers stands below the one that it belongs to, where that is shown. Columns that name our rows
    stand next to the paper's names, where these do not tell the rows apart.
    """
    keys, repeated, columns = list_rows(table), find_repeats(table), {column.name: column for column in table.columns}
    paper_columns = [_arrange_paper_column(column, columns, keys, repeated) for column in table.paper_columns]
    paper_names = {name for column in paper_columns for name in column.names}
    # A column of the paper's alone keeps its place where its own is not shown.
    names_below = {
        column.name
        for column in table.columns
        if column.kind == "published"
        and (paper_columns or (_owner(column.name) in columns and columns[_owner(column.name)].readable))
    }
    own_columns = []
    for column in table.columns:
        if (column.readable or column.paper or column.narrow) and column.name not in paper_names | names_below:
            twin = columns.get(f"{column.name}_published") if f"{column.name}_published" in names_below else None
            own_columns.append(_arrange_column(table, column, twin, keys, repeated))
    if not paper_columns:
        return own_columns
    names = count_names(paper_columns)
    if not names:  # our rows have names of their own
        name_columns = [column for column in own_columns if column.label and (column.narrow or column.paper)]
        # A first column of the paper's alone is a heading over rows.
        first = 1 + next((place for place, column in enumerate(paper_columns) if column.names), 0)
        paper_columns[first:first] = name_columns
        own_columns = [column for column in own_columns if column not in name_columns]
        names = first + len(name_columns)
    arranged = [replace(column, label=place < names) for place, column in enumerate([*paper_columns, *own_columns])]
    return _transpose(arranged) if table.transposed else arranged


def _transpose(columns: Sequence[ShownColumn]) -> list[ShownColumn]:
    """Turn what tells the rows apart into headings, and the other headings into the first column."""
    names, *other_columns = [column for column in columns if column.of_paper or column.readable]
    heads = [ShownCell(column.heading) for column in other_columns]
    new_columns = [ShownColumn(heading="", names=(), cells=heads, numeric=False, of_paper=True, label=True)]
    for name, *cells in zip(names.cells, *(column.cells for column in other_columns), strict=True):
        new_columns.append(
            ShownColumn(
                heading=name.text,
                names=tuple(dict.fromkeys(each for cell in (name, *cells) for each in cell.names)),
                cells=cells,
                numeric=True,
                of_paper=any(cell.printed for cell in cells),
            )
        )
    return new_columns


def count_names(columns: Sequence[ShownColumn]) -> int:
    """Count the first columns that together tell all rows apart, one or two; 0 if they do not."""
    for count in range(1, len(columns[:2]) + 1):
        rows = [tuple(cell.lines[-1] for cell in row) for row in zip(*(c.cells for c in columns[:count]), strict=True)]
        if len(set(rows)) == len(rows):
            return count
    return 0


def _arrange_paper_column(
    column: PaperColumn, columns: Mapping[str, Column], keys: Sequence[str], repeated: Sequence[bool]
) -> ShownColumn:
    once = bool(column.names) and all(columns[name].once for name in column.names)
    cells = [
        ShownCell(
            *(column.cells[key].text, column.cells[key].printed, column.cells[key].bold),
            again=once and place < len(repeated) and repeated[place],
            row=key,
            names=column.names,
        )
        for place, key in enumerate(keys)
    ]
    return ShownColumn(heading=column.heading, names=column.names, cells=cells, numeric=column.numeric, of_paper=True)


def _owner(name: str) -> str:
    return name.removesuffix("_published")


def list_rows(table: Table) -> list[str]:
    """List the keys of the rows: the table's, then those that the paper alone has."""
    own_keys = [str(row[table.key].value) for row in table.rows]
    return list(dict.fromkeys([*own_keys, *(key for column in table.paper_columns for key in column.cells)]))


def _arrange_column(
    table: Table, column: Column, twin: Column | None, keys: Sequence[str], repeated: Sequence[bool]
) -> ShownColumn:
    cells = []
    for key, row, repeats in zip(keys, table.rows, repeated, strict=False):
        text, printed = table.format_cell(row, column), table.format_cell(row, twin) if twin else ""
        printed = "" if printed == NOT_PRINTED or (not column.numeric and printed == text) else printed
        cells.append(ShownCell(text, printed, again=repeats and column.once, row=key, names=(column.name,)))
    cells += [ShownCell(NOT_REPRODUCED)] * (len(keys) - len(cells))
    published = column.kind == "published"
    return ShownColumn(
        heading=f"{column.header} (published)" if published else column.header,
        names=(column.name,),
        cells=cells,
        numeric=column.numeric,
        label=column.kind == "label",
        readable=column.readable,
        narrow=column.narrow or bool(twin and twin.narrow),
        paper=column.paper,
    )


def find_repeats(table: Table) -> list[bool]:
    """Return for each row whether it repeats the row above in all columns that are shown once (`Column.once`)."""
    once = [column.name for column in table.columns if column.once]
    pairs = itertools.pairwise([None, *table.rows])
    return [
        bool(once) and above is not None and all(row[name].value == above[name].value for name in once)
        for above, row in pairs
    ]


def choose_columns(
    columns: Sequence[ShownColumn], measure: Callable[[ShownColumn], float], room: float, most: int = MOST
) -> list[ShownColumn]:
    """Choose the columns for which there is room, in order: at any rate the paper's and those that name the rows, else
    the narrow ones, or those that a study marks as `paper`; then up to `most` others, narrow ones first.
    """
    marked_columns = [column for column in columns if column.paper]
    if any(column.of_paper for column in columns):
        names = marked_columns or [column for column in columns if column.label and column.readable]
        choice = [column for column in columns if column.of_paper or column in names]
    else:
        choice = marked_columns or [column for column in columns if column.narrow] or list(columns[:1])
    used_width = sum(map(measure, choice))
    for column in sorted(marked_columns or columns, key=lambda column: not column.narrow):
        width = measure(column)
        if column not in choice and column.readable and len(choice) < most and used_width + width <= room:
            choice, used_width = [*choice, column], used_width + width
    return [column for column in columns if column in choice]


def without_repeats(columns: Iterable[ShownColumn]) -> list[ShownColumn]:
    """Return columns whose repeated cells are empty."""
    return [
        replace(column, cells=[ShownCell("") if cell.again else cell for cell in column.cells]) for column in columns
    ]


def write_caption(table: Table) -> str:
    """Write a caption of about two lines: title, preset and scale, and that a printed number stands in parentheses."""
    scales = list(dict.fromkeys(str(row["scale"].value) for row in table.rows if "scale" in row))
    if EXACT_NOTE in table.warnings:
        sentence = "Computed, without training."
    else:
        where = f", {' and '.join(scales)}" if scales and not all(scale in table.title for scale in scales) else ""
        restriction = "" if table.preset == REPRODUCTION else ": no reproduction of the paper's numbers"
        sentence = f"Preset {table.preset}{where}{restriction}."
    return f"{table.title} {sentence}"


def take_lines(texts: Sequence[str], width: int, room: int) -> list[str]:
    """Take the first texts, in order, that fit in so many lines of so many signs."""
    lines = itertools.accumulate(len(textwrap.wrap(text, width)) for text in texts)
    return [text for text, last_line in zip(texts, lines, strict=True) if last_line <= room]


def place_texts(
    table: Table, columns: Sequence[ShownColumn], width: int = PAGE_LINE, *, heading: bool = False
) -> tuple[list[str], list[str]]:
    """Return what stands above a table whose lines hold so many signs, its caption first, and what stands below.

    Above are six lines at most: warnings as far as they fit, in order. `heading`: the title is a heading of its own.
    """
    caption = write_caption(table)
    lines = len(textwrap.wrap(caption.removeprefix(table.title) if heading else caption, width))
    above = [caption, *take_lines(table.warnings, width, ABOVE - lines)]
    later = table.warnings[len(above) - 1 :]
    if any(text.startswith(PRESET_LINE) or text == EXACT_NOTE for text in above[1:]):  # which says the same and more
        above[0] = table.title
    cells = [cell for column in columns for cell in column.cells]
    notes = [BELOW_NOTE] * any(cell.printed for cell in cells)
    return above, [*notes, *explain_signs(table, columns), *later, *table.notes]


def explain_signs(table: Table, columns: Iterable[ShownColumn]) -> list[str]:
    """Explain what these columns show of the paper's besides numbers in parentheses."""
    numbers = [column for column in columns if column.of_paper and column.numeric]
    notes = [ONCE_NOTE] * any(_stands_once(table, cell) for column in numbers for cell in column.cells)
    notes += [HEADINGS_NOTE] * (bool(table.paper_columns) and table.preset != REPRODUCTION)
    return notes + [NOT_REPRODUCED_NOTE] * any(cell.text == NOT_REPRODUCED for c in columns for cell in c.cells)


def _stands_once(table: Table, cell: ShownCell) -> bool:
    """Whether the paper prints a number that the cell does not show a second time."""
    rows = [row for row in table.rows if str(row[table.key].value) == cell.row]
    twins = [row.get(f"{name}_published") for row in rows for name in cell.names]
    return not cell.printed and any(twin is not None and twin.value is not None for twin in twins)
