"""The printed side: numbers of the five documents, as data under `config/published/<study>/`.

Numbers are read as the text that was printed: "0.4820" has four digits, 0.482 has three, and only the text
says how far the number was rounded. What a document does not print is an empty cell, read as missing.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from plumbline.cli import PlumblineError

#: The five documents, in the order in which they are shown.
STUDIES = ("transfer", "premature", "query_free", "quack", "key_norms")

#: Where the printed numbers lie, from the repository's root.
DEFAULT_ROOT = Path("config/published")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A checkable statement of a document. `values` are numbers as parsed: for digits, see the tables."""

    study: str
    id: str
    text: str
    kind: str
    values: dict[str, Any]
    source: str
    needs: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    tolerance: str = ""
    note: str = ""
    derived: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True, slots=True)
class ProseNumber:
    """A number printed in running text: its text, whether it is a count (never rounded), and where it is."""

    text: str
    exact: bool
    source: str


class Published:
    """Reader of the printed numbers of all documents.

    Args:
        root: the folder with one folder per study.

    Raises:
        PlumblineError: (from each method) a file, a row or a name that is not there, or is malformed.
    """

    def __init__(self, root: str | Path = DEFAULT_ROOT) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise PlumblineError(f"no published numbers at {self.root}; give the folder config/published")

    def tables(self, study: str) -> list[str]:
        """Names of a study's tables and lists of numbers, sorted; running text is `prose`."""
        return sorted(path.stem for path in self._folder(study).glob("*.csv") if path.stem != "prose")

    def table(self, study: str, name: str) -> pd.DataFrame:
        """A printed table as text, indexed by its first column; a cell that is not printed is missing."""
        path = self._file(study, f"{name}.csv")
        frame = pd.read_csv(path, dtype="string", keep_default_na=False, na_values=[""])
        return frame.set_index(frame.columns[0])

    def numbers(self, study: str, name: str) -> pd.DataFrame:
        """A printed table with every column that holds only numbers as float64; missing cells are NaN."""
        frame = self.table(study, name)
        for column in frame.columns:
            parsed = pd.to_numeric(frame[column], errors="coerce")
            if parsed.notna().sum() == frame[column].notna().sum():
                frame[column] = parsed.astype("float64")
        return frame

    def claims(self, study: str) -> list[Claim]:
        """A study's claims, in the document's order."""
        claims = []
        for entry in self._yaml(study, "claims.yaml"):
            entry = dict(entry)
            for key in ("needs", "lines", "derived"):
                entry[key] = tuple(entry.get(key) or ())
            try:
                claims.append(Claim(study=study, **entry))
            except TypeError as error:
                raise PlumblineError(f"{study}/claims.yaml: entry {entry.get('id')!r}: {error}") from error
        return claims

    def setup(self, study: str) -> dict[str, dict[str, Any]]:
        """The stated configuration: id -> values. Entries marked `external` are not the document's own."""
        return {entry["id"]: dict(entry["values"]) for entry in self._yaml(study, "setup.yaml")}

    def prose(self, study: str) -> dict[str, ProseNumber]:
        """Numbers printed only in running text, captions or figures: id -> text, exact, source."""
        path = self._file(study, "prose.csv")
        with path.open(newline="", encoding="utf-8") as handle:
            rows = list(csv.DictReader(handle))
        numbers = {
            row["id"]: ProseNumber(text=row["printed"], exact=row["exact"] == "yes", source=row["source"])
            for row in rows
        }
        if len(numbers) != len(rows):
            raise PlumblineError(f"{path}: an id is used twice")
        return numbers

    def _folder(self, study: str) -> Path:
        if study not in STUDIES:
            raise PlumblineError(f"unknown study {study!r}; known are {', '.join(STUDIES)}")
        return self.root / study

    def _file(self, study: str, name: str) -> Path:
        path = self._folder(study) / name
        if not path.is_file():
            raise PlumblineError(f"{path} is missing: restore it from the repository")
        return path

    def _yaml(self, study: str, name: str) -> list[dict[str, Any]]:
        path = self._file(study, name)
        try:
            entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise PlumblineError(f"{path} is not YAML: {error}") from error
        if not isinstance(entries, list):
            raise PlumblineError(f"{path} must be a list of entries with an id")
        return entries
