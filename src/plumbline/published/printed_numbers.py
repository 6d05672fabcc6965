"""Reads the printed numbers of one paper, data under ``studies/<study>/published/``.

Numbers are read as the text that was printed: "0.4820" has four digits, 0.482 has three, and only the text
states how far the number was rounded. What a paper does not print is an empty cell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.csv_text import read_cells, read_rows
from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT, read_yaml

if TYPE_CHECKING:  # tables compare with frames; the audit reads cells, and works without pandas
    import pandas as pd

#: The word in a cell where the paper prints nothing.
NOT_PRINTED = "not printed"


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperClaim:
    """A checkable statement of a paper. `values` are numbers as parsed: for their printed digits, see the tables."""

    id: str
    text: str
    kind: str
    values: dict[str, Any]
    source: str
    needs: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    tolerance: str = ""
    note: str = ""
    derived: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProseNumber:
    """A number printed in running text: its text, whether it is a count (never rounded), and where it is printed."""

    text: str
    exact: bool
    source: str


class PrintedNumbers:
    """Reader of the numbers that one paper prints.

    Args:
        directory: the study's folder of printed numbers.
        reads: the files that may be read, without their ending; None: all. A table or figure declares what it reads in
            the study's YAML, so that an edit of a printed number remakes exactly what shows it.

    Raises:
        PlumblineError: (from each method) a file, a row or a name that is not there, not declared, or malformed.
    """

    def __init__(self, directory: str | Path, reads: Collection[str] | None = None) -> None:
        self.directory, self.reads = Path(directory), reads

    @classmethod
    def of(cls, study: str, root: Path = ROOT, reads: Collection[str] | None = None) -> PrintedNumbers:
        """Open the printed numbers of a study of the project."""
        return cls(study_folders.folder(study, root) / study_folders.PUBLISHED, reads)

    @property
    def study(self) -> str:
        """The name of the study: that of the folder above `published/`."""
        return self.directory.resolve().parent.name

    def path(self, name: str, suffix: str = "csv") -> Path:
        """The file of the printed table `name`, or of a list with another suffix."""
        return self.directory / f"{name}.{suffix}"

    def format_path(self, name: str, suffix: str = "csv") -> str:
        """The file's path for readers: relative to the project where it lies inside it."""
        path = self.path(name, suffix).resolve()
        return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()

    def tables(self) -> list[str]:
        """Names of the tables and lists of numbers, sorted; running text is `prose`."""
        return sorted(path.stem for path in self.directory.glob("*.csv") if path.stem != "prose")

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a printed table: column -> what is printed, or an empty text.

        Raises:
            PlumblineError: also where a row has more or fewer cells than the table's head.
        """
        path = self._require_file(f"{name}.csv")
        with path.open(newline="", encoding="utf-8") as handle:
            head, *rows = (row for row in read_cells(handle) if row)
        odd = next((row for row in rows if len(row) != len(head)), None)
        if odd is not None:
            raise PlumblineError(f"{path}: the row {odd[0]!r} has {len(odd)} cells, and the head {len(head)}")
        return [dict(zip(head, row, strict=True)) for row in rows]

    def cells(self, name: str) -> dict[str, dict[str, str]]:
        """The texts of a printed table: row -> column -> what is printed, or an empty text; without the first column.

        That one names the rows. Where it is the same for several, `#1`, `#2`, ... in the file's order follow.

        Raises:
            PlumblineError: as `rows`.
        """
        rows = [tuple(row.items()) for row in self.rows(name)]
        times, count_so_far = Counter(key for (_, key), *_ in rows), Counter[str]()
        cells = {}
        for (_, key), *row_cells in rows:
            count_so_far[key] += 1
            cells[f"{key}#{count_so_far[key]}" if times[key] > 1 else key] = dict(row_cells)
        return cells

    def table(self, name: str, key: str | list[str] | None = None) -> pd.DataFrame:
        """A printed table indexed by `key` (by default its first column), every cell as printed or empty."""
        import pandas as pd

        frame = pd.DataFrame(self.rows(name), dtype=str)
        return frame.set_index(frame.columns[0] if key is None else key)

    def numbers(self, name: str) -> pd.DataFrame:
        """A printed table with every column that holds only numbers as float64; missing cells are NaN."""
        import pandas as pd

        frame = self.table(name)
        for column in frame.columns:
            parsed = pd.to_numeric(frame[column], errors="coerce")
            if parsed.notna().sum() == (frame[column] != "").sum():
                frame[column] = parsed.astype("float64")
        return frame

    def claims(self) -> list[PaperClaim]:
        """The paper's claims, in its order; empty if the study checks none."""
        if not (self.directory / "claims.yaml").exists():
            return []
        claims = []
        for entry in self._read_entries("claims.yaml"):
            fields = {**entry, **{key: tuple(entry.get(key) or ()) for key in ("needs", "lines", "derived")}}
            fields["source"] = str(fields.get("source", ""))
            try:
                claims.append(PaperClaim(**fields))
            except TypeError as error:
                raise PlumblineError(f"{self.directory / 'claims.yaml'}: entry {entry.get('id')!r}: {error}") from error
        return claims

    def claim(self, name: str) -> dict[str, Any]:
        """The printed values of a claim, for numbers that stand in the text and in no table."""
        entries = {entry["id"]: entry for entry in self._read_entries("claims.yaml")}
        if name not in entries:
            raise PlumblineError(
                f"{self.directory / 'claims.yaml'}: there is no claim {name!r}{nearest(name, entries)}"
            )
        return entries[name]["values"]

    def setup(self) -> dict[str, dict[str, Any]]:
        """The stated configuration: id -> values. Entries marked `external` are not from the paper itself."""
        return {entry["id"]: dict(entry["values"]) for entry in self._read_entries("setup.yaml")}

    def prose(self) -> dict[str, ProseNumber]:
        """Numbers printed only in running text, captions or figures, by id."""
        path = self._require_file("prose.csv")
        with path.open(newline="", encoding="utf-8") as handle:
            rows = list(read_rows(handle))
        numbers = {
            row["id"]: ProseNumber(text=row["printed"], exact=row["exact"] == "yes", source=row["source"])
            for row in rows
        }
        if len(numbers) != len(rows):
            raise PlumblineError(f"{path}: an id is used twice")
        return numbers

    def _require_file(self, name: str) -> Path:
        stem = name.partition(".")[0]
        if self.reads is not None and stem not in self.reads:
            raise PlumblineError(
                f"{self.directory.parent / study_folders.YAML}: targets: {stem!r} is read but not declared; add it to "
                f"the target's `published:` (there {sorted(self.reads)})"
            )
        path = self.directory / name
        if not path.is_file():
            stems = sorted(file.stem for file in self.directory.glob("*"))
            raise PlumblineError(f"{path} is missing{nearest(stem, stems)}; restore it from the repository")
        return path

    def _read_entries(self, name: str) -> list[dict[str, Any]]:
        path = self._require_file(name)
        entries = read_yaml(path)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
            raise PlumblineError(f"{path} must be a list of entries with an id")
        return entries


def read_printed(frame: pd.DataFrame, row: Any, column: str) -> str:
    """The printed cell of a table, or "not printed" if it is empty or its row is missing."""
    if row not in frame.index:
        return NOT_PRINTED
    return frame.loc[row, column] or NOT_PRINTED


def read_printed_value(frame: pd.DataFrame, row: Any, column: str) -> float:
    """A printed number as a float; NaN where the paper prints none."""
    text = read_printed(frame, row, column)
    return math.nan if text == NOT_PRINTED else float(text)
