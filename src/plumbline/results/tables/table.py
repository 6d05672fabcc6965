"""Defines a table: declared columns, rows of cells, warnings and notes; each cell knows the runs it was made from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.published.printed_numbers import NOT_PRINTED, read_printed
from plumbline.results.tables.number_formats import AS_PRINTED, format_bound, format_number
from plumbline.specs.yaml_files import PRESET_NOTES

if TYPE_CHECKING:  # a finished table is shown and traced without loading what makes one
    import pandas as pd

    from plumbline.results.runs.finished_runs import RunFrames
    from plumbline.specs.paper import Paper
    from plumbline.specs.study_config import Study

#: Texts of cells without a number.
NO_FLOOR, REFERENCE = "no noise floor", "reference"

Value = float | int | str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of a table: `kind` states whose value it is, `format` how a number is written.

    Formats are those of `plumbline.results.tables.number_formats`; a column without one holds texts. `readable`: in the
    pages for people, not in the csv alone; `narrow`: in the terminal's 80 columns too; `paper`: in the table for a
    paper, where the narrow ones are not the right choice (`plumbline.results.tables.shown_table`). `noise`: the
    column whose cell in the same row is its standard deviation over seeds. `once`: where rows that follow each other
    have the same in all such columns, people read it in the first one alone.
    """

    name: str
    header: str
    kind: Literal["label", "reproduced", "published", "fact"]
    format: str = ""
    readable: bool = True
    narrow: bool = False
    paper: bool = False
    noise: str = ""
    once: bool = False

    @property
    def numeric(self) -> bool:
        """Whether the column's cells are numbers, or empty."""
        return self.format != ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table and what is behind it: the keys of runs and measurements, or a text (`source`).

    `word`: why a numeric cell is empty. `text`: how a paper prints the number.
    """

    value: Value
    runs: tuple[str, ...] = ()
    source: str = ""
    word: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PaperCell:
    """A cell of a paper's column: our text and the paper's, either empty; `bold`: the paper prints it so."""

    text: str
    printed: str = ""
    bold: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperColumn:
    """A column as the paper has it: its heading, and its cells by row. `names`: the columns that its texts are of."""

    heading: str
    numeric: bool
    names: tuple[str, ...]
    cells: dict[str, PaperCell]


@dataclass(kw_only=True, slots=True)
class Table:
    """A finished table. `key` is the column whose values name the rows; `warnings` stand above it, `notes` below.

    `paper`: the study's, which its head names (its name alone, where the table was read from its files).
    `interpretations`: those in force. `others`: what says of runs that they are of another spec or version.
    `paper_columns`: those that the paper's own table has, which are shown first; `transposed`: as its rows.
    """

    name: str
    title: str
    study: str
    preset: str
    key: str
    columns: list[Column]
    rows: list[dict[str, Cell]]
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    published: str | None = None
    paper: Paper | str | None = None
    interpretations: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    paper_columns: list[PaperColumn] = field(default_factory=list)
    transposed: bool = False

    def __post_init__(self) -> None:
        names = {column.name for column in self.columns}
        assert all(not column.noise or column.noise in names for column in self.columns), self.name
        for row in self.rows:
            for column in self.columns:
                value = row[column.name].value
                fits = value is None or isinstance(value, (int, float)) if column.numeric else isinstance(value, str)
                assert fits, f"{self.name}.{column.name}: {value!r} in a column of {column.format or 'words'}"

    @property
    def frame(self) -> pd.DataFrame:
        """The table's values in declared order; numeric columns are numbers, NaN in empty cells."""
        import pandas as pd

        columns = {column.name: [row[column.name].value for row in self.rows] for column in self.columns}
        frame = pd.DataFrame(columns, columns=[column.name for column in self.columns])
        for column in self.columns:
            frame[column.name] = pd.to_numeric(frame[column.name]) if column.numeric else frame[column.name]
        return frame

    def cell(self, row: str, column: str) -> Cell:
        """Find the cell of a row, which is named by its value in the key column."""
        return next(cells[column] for cells in self.rows if cells[self.key].value == row)

    def format_cell(self, row: dict[str, Cell], column: Column) -> str:
        """Write a cell as people read it."""
        cell = row[column.name]
        if cell.text or cell.value is None:
            return cell.text or cell.word
        return format_number(cell.value, column.format)

    def word(self, row: dict[str, Cell], column: Column) -> str:
        """Return why a numeric cell is empty, or the bound that its number stands for; empty for any other number."""
        cell = row[column.name]
        if not column.numeric:
            return ""
        return cell.word if cell.value is None else format_bound(cell.value, column.format)


def number_cell(value: float | int | None, word: str, runs: Iterable[str] = ()) -> Cell:
    """Make a cell with a number, or an empty one with `word`."""
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return Cell(None, tuple(runs), word=word) if is_missing else Cell(value, tuple(runs))


def make_printed_cell(text: str, *, bound: str = NOT_PRINTED, source: str = "") -> Cell:
    """Make a cell of a printed number with its digits; an empty one with a word if none, or a bound, is printed.

    `source`: its file, where that is not the table's own (`Table.published`).
    """
    if bound != NOT_PRINTED:
        return Cell(None, word=f"<{bound}", source=source)
    if text == NOT_PRINTED:
        return Cell(None, word=NOT_PRINTED, source=source)
    return Cell(float(text), text=text, source=source)


def list_published_cells(
    frame: pd.DataFrame, row: object, names: dict[str, str], *, source: str = ""
) -> dict[str, Cell]:
    """Make the cells ``<name>_published`` of a row of a printed table; `names` maps each name to the printed column.

    `source`: as of `make_printed_cell`.
    """
    return {
        f"{name}_published": make_printed_cell(read_printed(frame, row, column), source=source)
        for name, column in names.items()
    }


def make_published_column(name: str, header: str, *, readable: bool = True, narrow: bool = False) -> Column:
    """Make the column of printed numbers that stands next to the column `name`."""
    return Column(
        name=f"{name}_published", header=header, kind="published", format=AS_PRINTED, readable=readable, narrow=narrow
    )


def summarize_outcomes(outcomes: Iterable[str]) -> str:
    """Write how the runs of a row ended: one word where all ended the same way, else counts: ``completed 2, missing
    1``.
    """
    listed = list(outcomes)
    if not listed:
        return MISSING
    counts = {word: listed.count(word) for word in (COMPLETED, DIVERGED, MISSING) if word in listed}
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{word} {n}" for word, n in counts.items())


def missing_word(outcomes: Iterable[str]) -> str:
    """Choose the word for a value that a row's runs do not have: diverged if one of them did, else missing."""
    return DIVERGED if DIVERGED in set(outcomes) else MISSING


def require_reference(study: Study, target: str) -> str:
    """Look up the method that a study compares the others with.

    Raises:
        PlumblineError: the study has no noise floor.
    """
    if study.reference is None:
        raise PlumblineError(
            f"{study.file}: noise_floor: {target} measures distances from a reference and "
            "the study names none; add `noise_floor: {reference: …, others: […]}` or drop the target"
        )
    return study.reference


#: What stands above a table of runs, or of claims, whose sizes alone are the paper's.
OTHER_TEXTS_NOTE = (
    "Other texts than the paper's: they come from the source {}. Its numbers are no reproduction of the printed ones."
)

#: What stands above a table of scores of a study that extends another one, and is scored on a suite of its own.
OTHER_SUITE_NOTE = (
    "Another suite than the paper's: every average that was reproduced here, whatever its heading says, is "
    "{suite.average} of the suite {suite.name} ({suite.words}); printed numbers are of the paper's suite {extended}."
)

#: What stands above a table that no run or measurement is behind.
EXACT_NOTE = "This table needs no training: it is computed, and the same at every preset."


def write_warnings(study: Study, frames: RunFrames | None = None, *, demo: str = PRESET_NOTES["demo"]) -> list[str]:
    """Write the warnings that stand above a table: the preset, and for a table of scores (`frames`) whose tasks they
    are.

    `demo`: the study's own note on what its demo can show.
    """
    notes = PRESET_NOTES | {"demo": demo}
    warnings = [f"Preset: {study.preset}. " + notes[study.preset]]
    warnings += [OTHER_TEXTS_NOTE.format(study.other_texts)] * bool(study.other_texts)
    if frames is not None and study.other_suite is not None:
        warnings.append(OTHER_SUITE_NOTE.format(suite=study.other_suite, extended=study.definition["extended_suite"]))
    sources = {} if frames is None else frames.task_sources
    stand_ins = [task for task, source in sources.items() if source != "benchmark"]
    if stand_ins:
        real = [task for task in sources if task not in stand_ins]
        warnings.append(
            f"Stand-in: {len(stand_ins)} of {len(sources)} tasks are scored on proxies made here "
            f"({', '.join(stand_ins)}); the benchmark's own items: {', '.join(real) or 'none'}."
        )
    return warnings


def list_interpretations(study: Study) -> list[str]:
    """List the interpretations that are in force."""
    return [
        interpretation["id"]
        for interpretation in study.definition["interpretations"]
        if study.preset in interpretation.get("presets", [study.preset])
    ]


def write_interpretations_note(study: Study, table: str) -> list[str]:
    """Write the notes that stand under every table of a study: how many interpretations are in force, and which file
    names them."""
    count = len(list_interpretations(study))
    pointer = f"{table}.provenance.json names them, interpretations.md says what each is"
    return [f"Interpretations of what the paper leaves open: {count}; {pointer}."] if count else []


#: Columns that every row of a table has: of a table without runs, one without scores, and one with scores.
PRESET = Column(name="preset", header="preset", kind="fact", readable=False)
CONTEXT_ALONE = [PRESET, Column(name="scale", header="scale", kind="fact", readable=False)]
CONTEXT = [*CONTEXT_ALONE, Column(name="task_source", header="task source", kind="fact", readable=False)]


def context_cells(study: Study, scale: str, frames: RunFrames | None = None) -> dict[str, Cell]:
    """Make a row's cells of the CONTEXT columns; `task_source` only for a table that reads scores."""
    cells = {"preset": Cell(study.preset_named), "scale": Cell(study.scale_label(scale))}
    return cells | ({"task_source": Cell(describe_task_source(frames))} if frames is not None else {})


def describe_task_source(frames: RunFrames) -> str:
    """Write the cell of the `task_source` column: benchmark, or how many of the tasks are proxies."""
    sources = frames.task_sources
    proxies = sum(source != "benchmark" for source in sources.values())
    if not sources:
        return MISSING
    return "benchmark" if not proxies else f"proxy for {proxies} of {len(sources)} tasks"
