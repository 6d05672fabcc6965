"""Looks after the files that measure while a run runs: whether it changes them, and which programs of it read them.

So are the files looked after in which Plumbline keeps its decisions, to which no run has to write.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.verdict.own_trainer.fingerprint import hash_data

#: In the folder of reports, the list of what the child notes (`child/plumbline_fixed.py`), and how its notes end.
_LIST = "measures"


def hash_files(copy: Path, names: Sequence[str]) -> dict[str, str]:
    """Hash the content of files of a copy; of large ones, size, begin and end."""
    return {name: hash_data(copy, [name]) for name in names}


def read_stamps(own: Path) -> dict[str, tuple[int, int, int]]:
    """Read size, time and inode of the records in Plumbline's folder, but for those that grow with runs."""
    paths = [*(own / name for name in ("decisions.jsonl", "session.json", "baseline.json")), *own.glob("pages/*.json")]
    stamps = {}
    for path in sorted(paths):
        if os.path.lexists(path):
            there = os.lstat(path)
            stamps[str(path)] = (there.st_size, there.st_mtime_ns, there.st_ino)
    return stamps


def list_differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """List the names of what differs, what has come and what has gone."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def ask_for_readers(reports: Path, names: Sequence[str]) -> None:
    """Have the Python processes of a run note which files they read: all of these, and others of the arm's copy."""
    (reports / _LIST).write_text("\n".join(names), errors="surrogateescape")


def list_readers(reports: Path) -> dict[str, list[str]]:
    """List the files that each program of a run read: program -> files."""
    readers: dict[str, set[str]] = {}
    for path in reports.glob(f"*.{_LIST}"):
        for line in path.read_text(errors="surrogateescape").splitlines():
            program, _, file = line.partition("\t")
            readers.setdefault(program, set()).add(file)
    return {program: sorted(files) for program, files in sorted(readers.items())}
