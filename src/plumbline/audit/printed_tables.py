"""Lays out the tables that a study's paper prints, with what the audit's rows come to on each number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markupsafe import Markup

from plumbline.audit.audit_csv import Row
from plumbline.audit.coverage import list_printed_cells
from plumbline.audit.printed_html import (
    HOLDS,
    MEANINGS,
    READ,
    STYLE,
    UNCHECKED,
    ShownNumber,
    ShownTable,
    describe_checks,
    judge_row,
    write_counts,
    write_remark,
    write_table,
    write_text,
)
from plumbline.core import fingerprint_file
from plumbline.core.csv_text import read_rows
from plumbline.published.printed_numbers import PrintedNumbers

#: The file of numbers that stand in no table, and its columns that are shown.
PROSE, PROSE_COLUMNS = "prose", ("id", "printed", "source")
#: Ends of two columns that print one number and its spread.
MEAN, SPREAD = "_mean", "_std"


@dataclass(frozen=True, kw_only=True)
class PrintedTables:
    """What a study's paper prints, and the rows of the audit that check it or read it."""

    published: PrintedNumbers
    rows: Sequence[Row]

    @classmethod
    def read(cls, study: str, root: Path, audit: Path) -> PrintedTables | None:
        """Read a study's rows of an audit's CSV; None without any, or where the file is not the one that was made."""
        if not audit.exists() or not fingerprint_file.is_unchanged(audit):
            return None
        with open(audit, encoding="utf-8", newline="") as handle:
            rows: list[Row] = [row for row in read_rows(handle) if row["study"] == study]
        for row in rows:
            row.update({name: float(row[name]) for name in ("recomputed", "recomputed_low", "recomputed_high")})
        return cls(published=PrintedNumbers.of(study, root), rows=rows) if rows else None

    @property
    def tables(self) -> list[tuple[str, str, Markup]]:
        """Each table: its id in the page, its name, and its HTML."""
        tables_by_file = {name: self._show(name) for name in self._names}
        return [
            (_make_id(table.name), table.name, Markup(self._write(name, table)))
            for name, table in tables_by_file.items()
            if table.counts
        ]

    @property
    def style(self) -> Markup:
        """The style of the tables."""
        return Markup(STYLE)

    @property
    def counts(self) -> Markup:
        """How many of all numbers are of each kind."""
        kinds = [self._judge(cell) for cell in self._printed]
        return Markup(write_counts({kind: kinds.count(kind) for kind in MEANINGS if kind in kinds}, with_meanings=True))

    @cached_property
    def _printed(self) -> dict[str, None]:
        return dict.fromkeys(".".join(cell) for cell in list_printed_cells(self.published))

    @cached_property
    def _checks(self) -> Mapping[str, list[Row]]:
        """Cell -> the rows that check its number, those that do not hold first."""
        checks: dict[str, list[Row]] = defaultdict(list)
        order = list(MEANINGS)
        for row in sorted(self.rows, key=lambda row: order.index(judge_row(row))):
            for cell in filter(None, row["cells"].split("; ")):
                checks[cell].append(row)
        return checks

    @cached_property
    def _read(self) -> frozenset[str]:
        return frozenset(cell for row in self.rows for cell in row["reads"].split("; "))

    def _judge(self, cell: str) -> str:
        if cell not in self._printed:
            return ""
        if cell in self._checks:
            return judge_row(self._checks[cell][0])
        return READ if cell in self._read else UNCHECKED

    @property
    def _names(self) -> list[str]:
        """Files of printed numbers, the paper's own tables by number first, the text last."""

        def rank(name: str) -> tuple[bool, int, str]:
            number = re.fullmatch(r"table(\d+)", name)
            return (number is None, int(number[1]) if number else 0, name)

        text = [PROSE] if self.published.path(PROSE).is_file() else []
        return sorted(self.published.tables(), key=rank) + text

    def _show(self, name: str) -> ShownTable:
        rows = self.published.rows(name)
        columns = [column for column in rows[0] if name != PROSE or column in PROSE_COLUMNS] if rows else []
        keys = list(self.published.cells(name))
        if columns[1:] and columns[1].startswith(columns[0].removesuffix("_id")):  # the name of a row for readers
            columns = columns[1:]
        spreads = {column: spread for column in columns if (spread := _find_spread(column, columns))}
        shown_columns = [column for column in columns if column not in spreads.values()]
        shown_rows = []
        for key, row in zip(keys, rows, strict=True):
            cells = []
            for column in shown_columns:
                numbers = [self._number(f"{name}.{key}.{column}", row[column])]
                if (spread := spreads.get(column)) and row[spread]:
                    numbers.append(self._number(f"{name}.{key}.{spread}", row[spread]))
                cells.append(numbers)
            shown_rows.append(cells)
        heads = [_write_head(column, column in spreads) for column in shown_columns]
        return ShownTable(name=_write_name(name), columns=heads, rows=shown_rows)

    def _number(self, cell: str, text: str) -> ShownNumber:
        kind = self._judge(cell)
        checks = self._checks[cell] if kind not in ("", READ, UNCHECKED) else []
        anchor = _make_id(cell) if kind not in ("", READ, UNCHECKED, HOLDS) else ""
        return ShownNumber(text=text, kind=kind, checks=describe_checks(checks), anchor=anchor)

    def _write(self, name: str, table: ShownTable) -> str:
        """A table with its counts before it and what does not hold after it."""
        remarks, anchors = [], set[str]()
        for cell, rows in self._checks.items():
            if not cell.startswith(f"{name}.") or cell not in self._printed:
                continue
            for row in rows:
                if (kind := judge_row(row)) != HOLDS:
                    anchor = _make_id(cell)
                    source_html = f"<small>{write_text(row['source'])}; <code>{write_text(row['id'])}</code></small>"
                    remarks.append(write_remark(kind, row, anchor, source_html, is_first=anchor not in anchors))
                    anchors.add(anchor)
        listed = f"<ul>{''.join(remarks)}</ul>" if remarks else ""
        return f"{write_counts(table.counts)}{write_table(table)}{listed}"


def _make_id(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _find_spread(column: str, columns: Sequence[str]) -> str | None:
    """The column of the spread of a column of means."""
    spread = column.removesuffix(MEAN) + SPREAD
    return spread if column.endswith(MEAN) and spread in columns else None


def _write_head(column: str, joined: bool) -> str:
    """A column's name as words; `1p2b` is a size with a decimal point."""
    name = column.removesuffix(MEAN) if joined else column
    return re.sub(r"(?<=\d)p(?=\d)", ".", name).replace("_", " ")


def _write_name(name: str) -> str:
    if name == PROSE:
        return "In the text"
    return re.sub(r"^table(?=\d)", "Table ", name).replace("_", " ").capitalize()
