"""Lays a study's table out for a page: the paper's columns first, a printed number below ours, then the others."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.report import agreement_with_print
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, RunLinks, split_badges
from plumbline.results.tables import provenance
from plumbline.results.tables.finished_table import read_table
from plumbline.results.tables.shown_table import (
    ABOVE,
    PRESET_LINE,
    ShownCell,
    arrange_columns,
    list_rows,
    place_texts,
    take_lines,
    write_caption,
)
from plumbline.results.tables.table import EXACT_NOTE, Cell, Column, Table
from plumbline.specs.corpus import DOCUMENTS

#: Words in a cell from which on its column is one of sentences.
WIDE = 36

#: Signs of a line on a phone: of a table's title, and of the sentences below it.
PHONE_TITLE, PHONE_LINE = 41, 46


def read_page_table(path: Path, sources: RunLinks, files: dict[str, str]) -> PageTable:
    """Read a table from its csv file with its warnings and notes; every cell that comes from runs links to them.

    Args:
        files: what is offered for download, name -> path from the page.

    Raises:
        PlumblineError: the table has no provenance, or one of another state of it.
    """
    runs = provenance.read(path)["runs"]
    texts = {key: facts.get("texts", DOCUMENTS) for key, facts in runs.items()}
    return lay_out(read_table(path), texts, sources, files)


def lay_out(table: Table, texts: Mapping[str, str], sources: RunLinks, files: dict[str, str]) -> PageTable:
    """Lay a table out; `texts`: the source of the documents of each run, `sources` and `files` as of
    `read_page_table`."""
    columns = [column for column in arrange_columns(table) if column.readable or column.of_paper]
    above, beneath = _place_sentences(table)
    presets = [text for text in table.warnings if text.startswith(PRESET_LINE)]
    below = place_texts(replace(table, warnings=[]), columns, heading=True)[1]
    rows = dict(zip(list_rows(table), table.rows, strict=False))
    shown_rows = zip(*(column.cells for column in columns), strict=True)
    sentences = [column for column in columns if not column.numeric and column.longest > WIDE]
    # Sentences far to the right would make rows high of which little is seen.
    short = [c for c in columns if c.of_paper or c.narrow or (c.label and (c not in sentences or c is columns[0]))]
    short = columns if all(column.label for column in short) else short
    own_columns = [column for column in columns if not column.of_paper and not column.label]
    firsts = [*own_columns[:1], *[column for column in own_columns if column in short][:1]]
    return PageTable(
        id=f"table-{table.name}",
        name=table.name,
        title=table.title,
        heads=[
            ColumnHead(
                text=column.heading,
                numeric=column.numeric,
                wide=column in sentences,
                short=column in short,
                first_of_ours=bool(table.paper_columns) and column in firsts,
            )
            for column in columns
        ],
        rows=[
            [
                _make_cell(table, rows.get(cell.row), column.numeric, cell, texts, sources)
                for column, cell in zip(columns, cells, strict=True)
            ]
            for cells in shown_rows
        ],
        above=above,
        beneath=beneath,
        below=[*presets, *below],
        files=files,
    )


def _place_sentences(table: Table) -> tuple[list[str], list[str]]:
    """Return the sentences above a table, which a phone shows in six lines with its title and a line of tools, and
    those beneath it. The banner of the page says what the preset is good for."""
    sentences = [text for text in table.warnings if not text.startswith(PRESET_LINE)]
    if EXACT_NOTE not in sentences:
        sentences.append(write_caption(table).removeprefix(table.title).strip())
    title = len(textwrap.wrap(f"{table.name} {table.title} {table.preset}", PHONE_TITLE))
    above = take_lines(sentences, PHONE_LINE, ABOVE - title - 1)
    return above, sentences[len(above) :]


def list_runs(path: Path) -> list[str]:
    """List the keys of the runs that a table rests on; none if its provenance names none.

    Raises:
        PlumblineError: as `read_table`.
    """
    return list(provenance.read(path)["runs"])


def _make_cell(
    table: Table,
    row: dict[str, Cell] | None,
    numeric: bool,
    displayed: ShownCell,
    texts: Mapping[str, str],
    sources: RunLinks,
) -> HtmlCell:
    cell = row[displayed.names[0]] if row is not None and displayed.names else Cell(None)
    runs = [run for name in displayed.names for run in row[name].runs] if row is not None else []
    is_word = cell.value is None or cell.value == ""
    return HtmlCell(
        text=displayed.text,
        printed=displayed.printed,
        bold=displayed.bold,
        sort=cell.value if cell.value != "" else None,
        href=sources.href(runs),
        title=sources.title(runs) or cell.source,
        mark=_judge_cells(table, row, displayed.names, texts) if row is not None else None,
        word=is_word and numeric,
        badges=split_badges(displayed.text) if not numeric or is_word else (),
        again=displayed.again,
    )


def _judge_cells(
    table: Table, row: dict[str, Cell], names: Sequence[str], texts: Mapping[str, str]
) -> agreement_with_print.CellMark | None:
    """How a cell stands to the printed one: as its first number does, and the same only where all its numbers are."""
    marks = [_judge_cell(table, row, name, texts) for name in names]
    if marks[:1] != [agreement_with_print.SAME]:
        return marks[0] if marks else None
    return next((mark for mark in marks if mark not in (agreement_with_print.SAME, None)), marks[0])


def _judge_cell(
    table: Table, row: dict[str, Cell], name: str, texts: Mapping[str, str]
) -> agreement_with_print.CellMark | None:
    """How a reproduced cell stands to the printed one that belongs to it."""
    columns = {column.name: column for column in table.columns}
    printed = row.get(f"{name}_published")
    if columns[name].kind == "published" or printed is None:
        return None
    runs = row[name].runs
    return agreement_with_print.judge_cell(
        _write_value(row[name]),
        _write_value(printed),
        table.preset,
        trained=bool(runs) and columns[name].kind == "reproduced",  # a setting has no noise
        texts={texts.get(key, DOCUMENTS) for key in runs} <= {DOCUMENTS},
        spread=_find_spread(table, columns[name], row),
        seeds=_count_seeds(row[name]),
    )


def _write_value(cell: Cell) -> str:
    return cell.text or ("" if cell.value is None else str(cell.value))


def _find_spread(table: Table, column: Column, row: dict[str, Cell]) -> agreement_with_print.SeedSpread | None:
    """The spread of a row over its seeds, which stands in the column's `noise`; of a row that has none, being a single
    run, that of all rows which have one."""

    def read_spreads(cell: Cell) -> list[agreement_with_print.SeedSpread]:
        seeds = _count_seeds(cell)
        return [agreement_with_print.SeedSpread(float(cell.value), seeds - 1)] if cell.value and seeds > 1 else []

    if not column.noise:
        return None
    spreads = read_spreads(row[column.noise]) or [
        spread for other_row in table.rows for spread in read_spreads(other_row[column.noise])
    ]
    return agreement_with_print.SeedSpread.pool(spreads)


def _count_seeds(cell: Cell) -> int:
    """Count the seeds that the runs behind a cell are of."""
    return len({run.rpartition("/")[2] for run in cell.runs})


def describe_problem(path: Path) -> str:
    """Describe why a table that is there cannot be shown; empty if it can."""
    try:
        provenance.read(path)
    except PlumblineError as error:
        return str(error)
    return ""
