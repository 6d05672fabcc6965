"""Reads all records of a board, and sees which runs stand in the folders of two of them."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.core.files import shown
from plumbline.verdict.formatting import name
from plumbline.verdict.gate.evidence import Evidence, examine
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.submission_records import read_submissions
from plumbline.verdict.gate.table_records import read_table
from plumbline.verdict.gate.training_log import LoggedRun


def read_board(folder: Path, rules: Rules) -> list[Evidence]:
    """Read and examine every record, the oldest first.

    Raises:
        PlumblineError: there is no such folder, or it holds no records as the rules describe them.
    """
    if not folder.is_dir():
        raise PlumblineError(f"{folder}: no such folder; name the one that holds the records")
    records = read_table(folder, rules) if rules.table is not None else read_submissions(folder, rules)
    if not records:
        raise PlumblineError(f"{folder}: no record in the table that the rules name")
    board = [examine(record, rules, folder) for record in records]
    _across(board, folder)
    return board


def find(board: list[Evidence], record: str | None) -> Evidence:
    """The record of a name; the newest where none is given.

    Raises:
        UsageError: none has the name.
    """
    if record is None:
        return board[-1]
    names = [each.record.name for each in board]
    if record not in names:
        raise UsageError(f"--record {record!r} is none of the {len(names)} records{nearest(record, names)}")
    return board[names.index(record)]


def _across(board: list[Evidence], folder: Path) -> None:
    """Note each run that another record's folder holds too."""
    ends: dict[tuple[object, str], list[tuple[Evidence, LoggedRun]]] = {}
    for found in board:
        shared = dict[str, tuple[int, str]]()
        for value in found.values:
            run = value.run
            for key in list(run.values.items())[-3:]:
                for other, one in ends.get(key, ())[:50]:
                    if other is not found and one.file != run.file and run.same_as(one):
                        times = shared.get(other.record.name, (0, ""))[0]
                        shared[other.record.name] = (times + 1, shown(one.file, folder))
                        break
                else:
                    continue
                break
            for key in list(run.values.items())[-3:]:
                ends.setdefault(key, []).append((found, run))
        for record, (times, file) in shared.items():
            found.notes.append(f"{times} of its runs stand in the folder of {name(record)} too ({name(file)}, say).")
