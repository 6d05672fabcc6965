"""What is kept of a paper's LaTeX beside its tables: places of cells, titles, running text, and what was not read.

`plumbline audit --from paper.tex FOLDER` writes it as FOLDER/sources.json; a folder of typed tables has none.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Struct, field

from plumbline.core.errors import UsageError

#: The file's name in the folder, and most bytes of it.
SOURCES, BYTES = "sources.json", 16_000_000

#: What a paper says of all its p-values: that tests are of one side; that they are corrected for several.
ONE_SIDED = re.compile(r"\b(?:one|1|single)[ -]?(?:sided|tailed)\b", re.IGNORECASE)
CORRECTED = re.compile(
    r"\b(?:Bonferroni|Holm|FDR|false discovery|Benjamini|Hochberg|[ŠS]id[áa]k|Tukey|"
    r"multiple (?:comparisons?|testing|tests)|(?:corrected|adjusted) (?:p\b|significance)|"
    r"p[- ]?values? (?:are|were) (?:corrected|adjusted))",
    re.IGNORECASE,
)
#: That p are corrected, said next to them; "adjusted" alone is also said of R².
_OF_TESTS = r"(?:p|significan\w+|stars?|levels?|tests?|comparisons)"
CORRECTED_HERE = re.compile(
    r"\b(?:un)?correct(?:ed|ions?)\b|\b(?:Holm|Bonferroni|FDR|BH|Hochberg)\b|"
    rf"\b{_OF_TESTS}\b[^.,;:]{{0,40}}\b(?:un)?adjusted\b|\b(?:un)?adjusted\b[^.,;:]{{0,40}}\b{_OF_TESTS}\b",
    re.IGNORECASE,
)


class TableSource(Struct, kw_only=True):  # unknown fields are passed over: earlier versions wrote `colours`
    """Where a table stands, and what its CSV does not say.

    Attributes:
        sha256: of the CSV as it was written; after an edit the places of its cells are not believed.
        titles: title above a group of rows, by the group's number.
        cells: for each row the place of each of its cells: "file:line", or nothing.
        lines: place of a cell -> the line of LaTeX there.
    """

    where: str
    caption: str = ""
    label: str = ""
    section: str = ""
    sha256: str = ""
    titles: dict[int, str] = field(default_factory=dict)
    cells: list[list[str]] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)


class UnreadTable(Struct, forbid_unknown_fields=True, frozen=True):
    """A table of the paper that was not read, and why."""

    where: str
    kind: str
    why: str


class Passage(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A paragraph ("text", "abstract"), or the caption of a table; references as "Table 3".

    Paragraphs have a number in them, or say what p-values mean.
    """

    kind: str
    section: str
    where: str
    text: str
    table: str = ""


class PaperSource(Struct, forbid_unknown_fields=True, kw_only=True):
    """A paper's sources: its tables by the name of their CSV, and of all that is in it, what was read.

    Attributes:
        tables_there: how many tables with numbers the sources have: those read, and `unread`.
        passages: captions and running text.
        not_read: places that were not read, in tables and outside of them.
    """

    paper: str = ""
    tables_there: int = 0
    unread: list[UnreadTable] = field(default_factory=list)
    tables: dict[str, TableSource] = field(default_factory=dict)
    passages: list[Passage] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)


def read_paper_source(folder: Path) -> PaperSource:
    """Read what is kept of the LaTeX in a folder of tables; of typed tables nothing is.

    Raises:
        UsageError: it is not as it was written.
    """
    path = folder / SOURCES
    if not path.is_file():
        return PaperSource()
    try:
        with path.open("rb") as handle:
            return msgspec.json.decode(handle.read(BYTES), type=PaperSource)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not as `plumbline audit --from` writes it ({error}); write it again") from error
