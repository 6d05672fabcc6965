"""Makes a board of a project's own records and verdicts: bundles that were kept, and pages of experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.experiment.board.board_rows import Board, BoardRow
from plumbline.experiment.gate.bounded_reading import files_below, read_text

RECORD, BUNDLE = "record.json", "bundle.tar.xz"
#: What "logs checked" means of one's own: nothing is computed again here.
CHECKED = (
    "a bundle's archive is the one that was recorded (plumbline rebuild makes it again), or a verdict's numbers lie "
    "beside its page"
)


def project_board(folder: Path, title: str = "") -> Board:
    """Read the `record.json` and the verdicts below a folder.

    Raises:
        PlumblineError: there is none.
    """
    if not folder.is_dir():
        raise PlumblineError(f"{folder}: no such folder; name the one that holds records or verdicts")
    rows, left_out = list[BoardRow](), list[str]()
    for path in files_below(folder, (".json",)):
        is_record = path.name == RECORD
        if not is_record and not path.with_suffix(".md").is_file():
            continue
        try:
            read = json.loads(read_text(path))
        except (ValueError, RecursionError, PlumblineError):
            left_out.append(f"{path.relative_to(folder)} cannot be read as JSON.")
            continue
        if isinstance(read, dict) and (row := (_record if is_record else _verdict)(path, read)) is not None:
            rows.append(row)
    if not rows:
        raise PlumblineError(
            f"{folder}: neither a {RECORD} nor a verdict (a page with its .json) is below it; the records of another "
            "community are read with --rules"
        )
    rows.sort(key=lambda row: (row.date, row.name))
    return Board(
        title=title or f"Records and verdicts of {folder.resolve().name}",
        headline="what",
        rows=rows,
        checked=CHECKED,
        left_out=left_out,
    )


def _record(path: Path, read: dict[str, Any]) -> BoardRow:
    """A bundle: checked where its archive is the one that was recorded."""
    archive = path.parent / BUNDLE
    same = archive.is_file() and sha256_file(archive) == read.get("sha256")
    said = "the archive is the recorded one" if same else "the archive is not there, or is another one"
    lines = (
        str(read.get("words", ""))[:400],
        f"Bundle of {read.get('products')} targets at commit {str(read.get('commit', ''))[:12]}: {said}.",
    )
    return BoardRow(
        name=path.parent.name,
        description=lines[0],
        shown=f"{read.get('products')} targets",
        tier="logs checked" if same else "claimed",
        verdict="",
        faults=() if same else ("archive",),
        lines=lines,
    )


def _verdict(path: Path, read: dict[str, Any]) -> BoardRow | None:
    """A page of an experiment, by its numbers."""
    sentence = read.get("sentence")
    if not isinstance(sentence, str):
        return None
    verdict, runs = read.get("verdict", ""), read.get("runs")
    p = read.get("p")
    return BoardRow(
        name=path.stem,
        description=sentence[:400],
        date=str(read.get("at", ""))[:10],
        shown="",
        runs=len(runs) if isinstance(runs, list) else 0,
        tier="logs checked",
        verdict=verdict if isinstance(verdict, str) else "",
        p_predecessor=float(p) if isinstance(p, int | float) and not isinstance(p, bool) else None,
        lines=(sentence[:2000],),
    )
