"""A table: declared columns, rows of cells, notes; each cell knows the runs it was made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from plumbline.results.runs import COMPLETED, DIVERGED, MISSING, RunFrames
from plumbline.specs.sheet import Study

#: Words that stand in a cell instead of a number.
NO_FLOOR, REFERENCE = "no noise floor", "reference"


def plain(value: Any) -> str:
    """Any value as it is."""
    return str(value)


def fixed(digits: int, *, sign: bool = False) -> Callable[[Any], str]:
    """Floats with so many decimals; counts and words as they are."""

    def show(value: Any) -> str:
        return f"{value:{'+' if sign else ''}.{digits}f}" if isinstance(value, float) else str(value)

    return show


def probability(value: Any) -> str:
    """A p-value: 1.00, 0.23, 0.027, 1.5e-04; one that underflows is a bound, since no p is zero."""
    if not isinstance(value, (int, float)):
        return str(value)
    if value == 0:
        return "<1e-300"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:#.2g}" if value >= 0.00095 else f"{value:.1e}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: `kind` says whose number it is; `show` is how the readable renderings print it."""

    name: str
    header: str
    kind: Literal["label", "reproduced", "published", "fact"]
    show: Callable[[Any], str] = plain
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """A value (a number, or a word that says why there is none) and what is behind it: the keys of runs, or a text."""

    value: Any
    runs: tuple[str, ...] = ()
    source: str = ""


@dataclass(kw_only=True, slots=True)
class Table:
    """A finished table. `key` is the column whose values name the rows."""

    name: str
    title: str
    study: str
    preset: str
    key: str
    columns: list[Column]
    rows: list[dict[str, Cell]]
    notes: list[str] = field(default_factory=list)
    published: str | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Values in declared order, objects: numbers and words."""
        names = [column.name for column in self.columns]
        return pd.DataFrame([[row[name].value for name in names] for row in self.rows], columns=names, dtype=object)

    def cell(self, row: str, column: str) -> Cell:
        """The cell of a row named by the key column."""
        return next(cells[column] for cells in self.rows if cells[self.key].value == row)


def number(value: float | None, word: str, runs: Iterable[str] = ()) -> Cell:
    """A cell with a number, or with `word` where there is none."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return Cell(word if missing else value, tuple(runs))


def joint_outcome(outcomes: Iterable[str]) -> str:
    """One word where all runs of a row ended the same way, else the counts: ``completed 2, missing 1``."""
    listed = list(outcomes)
    if not listed:
        return MISSING
    counts = {word: listed.count(word) for word in (COMPLETED, DIVERGED, MISSING) if word in listed}
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{word} {n}" for word, n in counts.items())


def absent(outcomes: Iterable[str]) -> str:
    """The word for a value that a row's runs do not have."""
    return DIVERGED if DIVERGED in set(outcomes) else MISSING


def notes_of(study: Study, frames: RunFrames | None = None, *, scores: bool = False) -> list[str]:
    """What must stand under every table: the preset, whose tasks were scored, rulings in force."""
    notes = [f"Preset: {study.preset}. " + PRESET_NOTES[study.preset]]
    if scores and frames is not None:
        sources = frames.task_sources
        stand_ins = [task for task, source in sources.items() if source != "benchmark"]
        if stand_ins:
            real = [task for task in sources if task not in stand_ins]
            notes.append(
                f"Stand-in: {len(stand_ins)} of {len(sources)} tasks are scored on proxies made here "
                f"({', '.join(stand_ins)}); the benchmark's own items: {', '.join(real) or 'none'}."
            )
    rulings = [
        ruling["id"] for ruling in study.sheet["rulings"] if study.preset in ruling.get("presets", [study.preset])
    ]
    notes.append(f"Rulings on what the document leaves open (deviations.md): {', '.join(rulings)}.")
    return notes


PRESET_NOTES = {
    "paper": "Sizes and budget as the document has them, under the rulings named below.",
    "mini": "The document's experiment on small models: not its scale. Its numbers are no reproduction of the printed.",
    "demo": "The path of the document's experiment on tiny models: its numbers show that the pipeline works, and "
    "say nothing about the methods.",
    "smoke": "A few steps of tiny models: its numbers mean nothing.",
}


#: What every table says of itself in each row.
CONTEXT = [
    Column(name="preset", header="preset", kind="fact", readable=False),
    Column(name="scale", header="scale", kind="fact", readable=False),
    Column(name="task_source", header="task source", kind="fact", readable=False),
]


def context(study: Study, scale: str, frames: RunFrames | None = None) -> dict[str, Cell]:
    """The cells of the CONTEXT columns; `task_source` only for a table that reads scores."""
    cells = {"preset": Cell(study.preset), "scale": Cell(study.scale_label(scale))}
    return cells | ({"task_source": Cell(task_source(frames))} if frames is not None else {})


def task_source(frames: RunFrames) -> str:
    """The `task_source` column: benchmark, or how many of the tasks are proxies."""
    sources = frames.task_sources
    proxies = sum(source != "benchmark" for source in sources.values())
    if not sources:
        return MISSING
    return "benchmark" if not proxies else f"proxy for {proxies} of {len(sources)} tasks"
