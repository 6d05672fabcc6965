"""Audits the tables of a folder: the checks of its `audit.toml`, and those that need no instructions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from plumbline.audit.audit_csv import Row, make_row
from plumbline.audit.audit_rows import CONTRADICTION, MISMATCH, write_cells
from plumbline.audit.findings import Finding
from plumbline.audit.paper import audit_file
from plumbline.audit.paper.audit_file import AuditFile, CheckPart, parse_number
from plumbline.audit.paper.evaluate import Evaluation, Names, Work
from plumbline.audit.paper.grammar import ReferenceNode, parse_check
from plumbline.audit.paper.ledger import Ledger
from plumbline.audit.paper.lines import PLACES
from plumbline.audit.paper.named_cells import check_named_cells
from plumbline.audit.paper.paper_source import PaperSource, read_paper_source
from plumbline.audit.paper.paper_table import PaperTable, check_inside, join_names, read_tables
from plumbline.audit.paper.printed_cell import PARTS
from plumbline.audit.paper.relations import check_relations
from plumbline.audit.paper.sentence_checks import check_sentences, split_sentences
from plumbline.audit.paper.stated_sizes import check_sizes
from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.published.interval_arithmetic import Cell
from plumbline.published.printed_number import PrintedNumber, exact

CONTRADICTS, LIKELY, NOTHING_CHECKED = "contradicts", "likely", "nothing was checked"
NOTHING_CONTRADICTS = "nothing contradicts"

#: What an audit can come to, and the exit code of the command.
ANSWERS = {NOTHING_CONTRADICTS: 0, CONTRADICTS: 10, LIKELY: 15, NOTHING_CHECKED: 16}


@dataclass(frozen=True, kw_only=True)
class PaperAudit:
    """The audit of a folder.

    Attributes:
        stated: how many rows are checks of `audit.toml`; the others were found without it.
        relations: a sentence for each relation that was found, and one for each that was examined and dropped.
        doubted: those of the dropped that a name states, where so many rows agree that the others may be wrong.
        printed: how many numbers the tables have.
        read_cells: the cells that some row reads, a cell's second number by its name.
        rows_after: table -> rows after the last in which relations are looked for.
        unread: table -> column -> how many of its numbers no row reads.
        types: table -> row or column -> its type and what shows it, of those that are more than values.
        cells: id of a row -> the cell that it checks: table, row, column.
        source: what is kept of the paper's LaTeX: tables there, passages, what was not read.
        sentences, sentences_read: sentences with a number, and how many of them say what can be checked.
    """

    folder: Path
    title: str
    link: str
    tables: list[PaperTable]
    rows: list[Row]
    findings: list[Finding]
    stated: int
    relations: list[str]
    dropped: list[str]
    doubted: list[str]
    printed: int
    read_cells: frozenset[Cell]
    rows_after: dict[str, int]
    unread: dict[str, dict[str, int]]
    types: dict[str, dict[str, list[str]]]
    cells: dict[str, Cell]
    source: PaperSource
    sentences: int
    sentences_read: int

    @property
    def read(self) -> int:
        """How many numbers of the tables some row reads."""
        return len(self.read_cells)

    @property
    def names(self) -> frozenset[str]:
        """Names of the tables."""
        return frozenset(table.name for table in self.tables)

    @property
    def latex(self) -> dict[str, str]:
        """The lines of LaTeX on which cells stand, by their place."""
        return {where: line for table in self.source.tables.values() for where, line in table.lines.items()}

    @property
    def contradictions(self) -> list[Row]:
        """The rows that contradict the paper's own numbers."""
        return [row for row in self.rows if row["verdict"] == MISMATCH and row["evidence_kind"] == CONTRADICTION]

    @property
    def likely(self) -> list[Row]:
        """The rows that do not hold of a relation that no name states, or that something else may explain."""
        return [
            row
            for row in self.rows[self.stated :]
            if row["verdict"] == MISMATCH and row["evidence_kind"] != CONTRADICTION
        ]

    @property
    def answer(self) -> str:
        """What the audit comes to, a key of `ANSWERS`."""
        if self.contradictions:
            return CONTRADICTS
        if self.likely or self.doubted:
            return LIKELY
        return NOTHING_CONTRADICTS if self.rows else NOTHING_CHECKED


def audit_folder(folder: Path, file: Path | None = None, *, untold: bool = True) -> PaperAudit:
    """Audit a folder of tables.

    Args:
        folder: the folder of the tables.
        file: the audit file; `audit.toml` of the folder by default.
        untold: also check what needs no instructions.

    Raises:
        UsageError: the folder, a table or the file cannot be meant.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder; name the one with the paper's tables (*.csv)")
    if file is not None and not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    if file is None:
        check_inside(folder / audit_file.NAME, folder)
    settings = audit_file.load(file or folder / audit_file.NAME)
    tables = {table.name: table for table in read_tables(folder)}
    _check_tables(settings, tables)
    ledger = Ledger(folder)
    numbers = _collect_numbers(settings)
    _make_stated_checks(settings, Names(tables=tables, numbers=numbers), ledger)
    check_sizes(settings, numbers, ledger)
    stated_rows = len(ledger.rows.rows)
    ledger.stated_cells = frozenset(ledger.tested)
    source, sentences_read = read_paper_source(folder), 0
    sentences = split_sentences(source.passages)
    types: dict[str, dict[str, list[str]]] = {}
    if untold:
        for table in tables.values():
            part = settings.tables.get(table.name, audit_file.TablePart())
            types[table.name] = check_relations(table, part, sentences, ledger)
        sentences_read = check_sentences(sentences, ledger)
        sentences_read += check_named_cells(sentences, list(tables.values()), ledger)
        ledger.settle()
    of_row = {row: finding for finding in ledger.findings for row in finding.rows}
    rows: list[Row] = []
    for row in ledger.rows.rows:
        places = row.cells or write_cells([cell] if (cell := ledger.cells.get(row.id)) else [])
        rows.append(make_row(row, of_row.get(row.id)) | {"cells": places})
    cells = [cell for table in tables.values() for cell in table.printed]
    return PaperAudit(
        folder=folder,
        title=settings.paper.title,
        link=settings.paper.link,
        tables=list(tables.values()),
        rows=rows,
        findings=ledger.findings,
        stated=stated_rows,
        relations=ledger.relations,
        dropped=ledger.dropped,
        doubted=ledger.doubted,
        printed=len(cells),
        read_cells=frozenset(cell for cell in cells if cell in ledger.rows.read),
        rows_after={name: len(table.rows) - PLACES for name, table in tables.items() if len(table.rows) > PLACES},
        unread={name: _count_unread(table, ledger) for name, table in tables.items()},
        types=types,
        cells=ledger.cells,
        source=source,
        sentences=len(sentences),
        sentences_read=sentences_read,
    )


def _count_unread(table: PaperTable, ledger: Ledger) -> dict[str, int]:
    """Count the numbers of each column of a table that no row reads; a cell's parts are the column's own."""
    column_of = {f"{column}{end}": column for column in table.columns for end in ("", *(f".{part}" for part in PARTS))}
    return dict(Counter(column_of[cell[2]] for cell in table.printed if cell not in ledger.rows.read))


def _check_tables(settings: AuditFile, tables: dict[str, PaperTable]) -> None:
    for name, part in settings.tables.items():
        where = f"{settings.path}: tables.{name}"
        if name not in tables:
            raise UsageError(
                f"{where}: there is no {name}.csv{nearest(name, tables)} (known: {join_names(list(tables))})"
            )
        table = tables[name]
        if part.baseline and part.baseline not in table.rows:
            raise UsageError(f"{where}.baseline: there is no row {part.baseline!r}{nearest(part.baseline, table.rows)}")
        columns = [*part.better, *part.items, *part.skip, *(key for key in part.items.values() if isinstance(key, str))]
        for column in columns:
            if column not in table.columns:
                raise UsageError(f"{where}: there is no column {column!r}{nearest(column, table.columns)}")


def _collect_numbers(settings: AuditFile) -> dict[str, PrintedNumber]:
    """Collect the single numbers that expressions may name, by name."""
    numbers = {
        name: parse_number(entry, name, f"{settings.path}: numbers.{name}") for name, entry in settings.numbers.items()
    }
    for part in ("model", "training"):
        entry = getattr(settings, part)
        for key in entry.__struct_fields__ if entry else ():
            value = getattr(entry, key)
            if key != "where" and value not in ("", None) and not isinstance(value, bool):
                numbers[f"{part}.{key}"] = parse_number(value, f"{part}.{key}", f"{settings.path}: {part}.{key}")
    return numbers


def _make_stated_checks(settings: AuditFile, names: Names, ledger: Ledger) -> None:
    """Make the checks that the audit file states."""
    work = Work()
    for id, entry in settings.checks.items():
        check = entry if isinstance(entry, CheckPart) else CheckPart(check=entry)
        where = f"{settings.path}: checks.{id}"
        left_side, sign, right_side = parse_check(check.check, where)
        evaluation = Evaluation(names, where, work)
        broken, count = [], 0
        for row in evaluation.rows(left_side, right_side):
            name, printed = f"{id}.{row.name}" if row.name else id, row.left
            count += 1
            if sign == "=":
                if not isinstance(printed, PrintedNumber):
                    evaluation.fail(
                        left_side, "the left side of = is what the paper prints: a cell, a column or a number by name"
                    )
                assert isinstance(printed, PrintedNumber)
                # A printed count may itself be a rounded result: only exact(...) states that it is not.
                target = printed.as_rounded() if isinstance(left_side, ReferenceNode) and left_side.column else printed
                formula, quantity = row.right, check.what or f"{printed.name or printed} of check {id}"
                place = check.where or printed.where
            else:
                formula = printed < row.right if sign == "<" else printed > row.right
                target, quantity, place = exact(1), check.what or f"check {id}: 1 where it holds", check.where
            try:
                verdict = ledger.add(name, quantity, place or "text", target, formula, check.basis)
            except UsageError:
                raise
            except PlumblineError as error:
                raise UsageError(f"{where}: {error}") from None
            if verdict == MISMATCH:
                broken.append(name)
        if broken:
            share = f"; {count - len(broken)} of {count} rows hold" if count > 1 else ""
            ledger.find(id, f"{check.what or check.check}: does not hold{share}.", broken)
        if evaluation.left_out:
            rows = (
                "1 row is left out that does"
                if evaluation.left_out == 1
                else f"{evaluation.left_out} rows are left out that do"
            )
            ledger.dropped.append(f"check {id}: {rows} not print each number of its right side")
