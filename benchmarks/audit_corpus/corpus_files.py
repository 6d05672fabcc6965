"""Reads the corpus: which papers, at which commits, and what a reader said of the audit's findings there."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from plumbline.verdict.rule_rates import Share

HERE = Path(__file__).parent

#: Papers to work on, more of them for false alarms alone, those opened once at the end, and those kept back.
SPLITS = ("work", "extra", "last", "back")


@dataclass(frozen=True, slots=True)
class Paper:
    """A line of `papers.csv`: a paper of a public repository."""

    name: str
    repository: str
    commit: str
    file: str
    family: str
    split: str

    def main(self, sources: Path) -> Path:
        """Its main file in a folder of sources, which has a folder of each paper's name."""
        return sources / self.name / Path(self.file).name


@dataclass(frozen=True, slots=True)
class Label:
    """A line of `labels.csv`: what a reader said of an accused place.

    Attributes:
        source: the file and line that the audit names, or the table where it names no line.
        printed: the number that stands there.
        verdict: true, false or unclear, as the first reader has it; `second` and `third` as others have it who did not
            work on the audit and saw no other label, or empty.
    """

    paper: str
    source: str
    printed: str
    kind: str
    verdict: str
    reason: str
    second: str
    second_reason: str
    third: str
    third_reason: str


@dataclass(frozen=True, slots=True)
class LabelledTable:
    """A line of `relations.csv`: a table drawn by chance, and the kinds of relations that a reader saw hold in it."""

    paper: str
    file: str
    first_line: str
    last_line: str
    kinds: str

    def holds(self, source: str) -> bool:
        """Whether a place (file and line) stands in it."""
        file, _, line = source.rpartition(":")
        return file == self.file and line.isdigit() and int(self.first_line) <= int(line) <= int(self.last_line)


def read_labelled_tables() -> list[LabelledTable]:
    """The tables whose relations a reader labelled."""
    with (HERE / "relations.csv").open(encoding="utf-8", newline="") as file:
        return [LabelledTable(**row) for row in csv.DictReader(file)]


def read_papers(split: str = "") -> list[Paper]:
    """The papers of a split; all by default."""
    with (HERE / "papers.csv").open(encoding="utf-8", newline="") as file:
        papers = [Paper(**row) for row in csv.DictReader(file)]
    return [paper for paper in papers if split in ("", paper.split)]


def read_labels() -> dict[tuple[str, str, str], Label]:
    """The labels by paper, source and printed number."""
    with (HERE / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = [Label(**row) for row in csv.DictReader(file)]
    return {(label.paper, label.source, label.printed): label for label in labels}


def format_share(true: int, false: int) -> str:
    """A share with its interval of 95 % (Clopper and Pearson's); nothing of none."""
    if not true + false:
        return ""
    share = Share(true, true + false)
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"
