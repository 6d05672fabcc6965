"""Holds a table as a page of the report shows it, and the sets of runs that its cells open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from plumbline.report.agreement_with_print import MARKS, CellMark
from plumbline.report.results_on_disk import FoundRun, ResultsOnDisk

#: How a page states that a claim about trained models has no verdict.
NOT_THIS_SIZE, NOT_THESE_TEXTS = "not judged at this size", "not judged on other texts"
#: Words that are shown as badges wherever they stand alone in a cell: outcomes, verdicts.
BADGES = {
    "completed": "good",
    "diverged": "bad",
    "missing": "none",
    "not run": "none",
    "unfinished": "none",
    "of another spec": "odd",
    "measured": "good",
    "reproduced": "good",
    "partly": "odd",
    "not reproduced": "bad",
    "not tested": "none",
    "match": "good",
    "within rounding": "good",
    "knife edge": "odd",
    "mismatch": "bad",
    NOT_THIS_SIZE: "preset",
    NOT_THESE_TEXTS: "preset",
}
_COUNTED = re.compile(rf"({'|'.join(map(re.escape, BADGES))}) (\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnHead:
    """A column's head. `kind`: a word that stands small below the name; `wide`: the column holds sentences.

    `printed`: the column's numbers are the paper's; `short`: it is shown where there is room for few columns;
    `first_of_ours`: the columns of the paper's table end before it, of all columns or of the few.
    """

    text: str
    kind: str = ""
    numeric: bool = False
    wide: bool = False
    printed: bool = False
    short: bool = True
    first_of_ours: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HtmlCell:
    """A cell of a page's table. `sort`: what its column is sorted by where that is not its text; None: always last.

    `again`: it repeats the cell above it, and is shown only where the rows are in another order, or not all there.
    `printed`: what the paper prints there, below; `bold`: as the paper has it.
    """

    text: str
    sort: str | float | None = None
    href: str = ""
    title: str = ""
    mark: CellMark | None = None
    word: bool = False
    badges: tuple[tuple[str, str], ...] = ()
    code: bool = False
    again: bool = False
    printed: str = ""
    bold: bool = False


@dataclass(kw_only=True)
class PageTable:
    """A finished table of a page. `above` and `beneath` are sentences around it, `below` notes that are folded.

    `files` are offered for download: name -> path from the page.
    """

    id: str
    title: str
    heads: list[ColumnHead]
    rows: list[list[HtmlCell]]
    name: str = ""
    above: Sequence[str] = ()
    beneath: Sequence[str] = ()
    below: Sequence[str] = ()
    files: dict[str, str] = field(default_factory=dict)

    @property
    def legend(self) -> list[tuple[CellMark, int]]:
        """The marks that occur in the table's cells, with how often."""
        cell_marks = [cell.mark for row in self.rows for cell in row]
        return [(mark, count) for mark in MARKS if (count := cell_marks.count(mark))]


def text_cell(value: object, **more: object) -> HtmlCell:
    """Make a cell that holds a text; it becomes badges where it is nothing but outcomes or verdicts."""
    text = "" if value is None else str(value)
    return HtmlCell(text=text, sort=text or None, badges=split_badges(text), **more)  # type: ignore[arg-type]


def number_cell(value: float | int | None, written: str, **more: object) -> HtmlCell:
    """Make a cell that holds a number, written as `written`; empty if there is no number."""
    is_missing = value is None or value != value
    return HtmlCell(text="" if is_missing else written, sort=None if is_missing else value, **more)  # type: ignore[arg-type]


def split_badges(cell_text: str) -> tuple[tuple[str, str], ...]:
    """Split a cell's text into badges: (class in the style sheet, words); none if any word of it is not known."""
    parts = cell_text.split(", ")
    if all(part in BADGES for part in parts):
        return tuple((BADGES[part], part) for part in parts)
    counted = [match for part in parts if (match := _COUNTED.fullmatch(part))]
    return tuple((BADGES[part[1]], part[0]) for part in counted) if len(counted) == len(parts) else ()


@dataclass(kw_only=True)
class RunLinks:
    """The sets of runs that the cells of one page link to. `root` leads from the page to the report's folder.

    A set of one run links to that run's page, any other to an entry of the list of sets on the cell's own page.
    """

    results: ResultsOnDisk
    root: str
    sets: dict[tuple[str, ...], int] = field(default_factory=dict)

    def href(self, keys: Iterable[str]) -> str:
        """Give the link of a cell that rests on these runs; empty without runs."""
        run_keys = tuple(dict.fromkeys(keys))
        if not run_keys:
            return ""
        if len(run_keys) == 1:
            return self.root + self.results.run(run_keys[0]).page
        return f"#runs-{self.sets.setdefault(run_keys, len(self.sets) + 1)}"

    def title(self, keys: Iterable[str]) -> str:
        """Give the text that appears when the pointer is over such a cell: the run's key, or how many runs."""
        run_keys = tuple(dict.fromkeys(keys))
        return run_keys[0] if len(run_keys) == 1 else f"{len(run_keys)} runs" if run_keys else ""

    def lists(self) -> list[tuple[int, int, list[tuple[str, list[FoundRun]]]]]:
        """List each set of runs for the page: its number, how many runs it has, and the runs by method."""
        listed = []
        for run_keys, set_number in self.sets.items():
            methods: dict[str, list[FoundRun]] = {}
            for key in run_keys:
                run = self.results.run(key)
                methods.setdefault(run.without_seed, []).append(run)
            listed.append((set_number, len(run_keys), list(methods.items())))
        return listed
