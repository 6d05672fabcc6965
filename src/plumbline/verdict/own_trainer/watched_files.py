"""Watches files while a run runs: those that measure, Plumbline's own records, the folders that all runs share, and
what else is outside of the run's copy.

Of the first three, whether the run changes them; of those that measure, which programs of it read them; of the last,
which it read and wrote, by the notes of its Python processes (`child/plumbline_fixed.py`, `plumbline_outside.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from plumbline.verdict.own_trainer.fingerprint import hash_data

#: By how many seconds the clock of a file system may lag.
LAG = 0.02
#: Seconds that a look before a run may take. Of more files than it comes to, the others are not looked at.
LOOK_SECONDS = 3.0
#: What Python writes wherever it imports.
_CACHES = ("__pycache__",)
_Stamp = tuple[int, int, int]

#: In the folder of reports, the list of what the child notes (`child/plumbline_fixed.py`), and how its notes end.
_LIST = "measures"


def hash_files(copy: Path, names: Sequence[str]) -> dict[str, str]:
    """Hash the content of files of a copy; of large ones, size, begin and end."""
    return {name: hash_data(copy, [name]) for name in names}


def read_stamps(folder: Path) -> dict[str, _Stamp]:
    """Read size, time and inode of the records in Plumbline's folder, but for those that grow with runs."""
    paths = [
        *(folder / name for name in ("decisions.jsonl", "session.json", "baseline.json")),
        *folder.glob("pages/*.json"),
    ]
    stamps = {}
    for path in sorted(paths):
        if os.path.lexists(path):
            status = os.lstat(path)
            stamps[str(path)] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return stamps


def list_differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """List the names of what differs, what has come and what has gone."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@dataclass(frozen=True, kw_only=True)
class Look:
    """The shared files as they were at one time.

    Attributes:
        files: size, time and inode of each file, by its path.
        folders: those whose every file was checked.
        left: those that it did not come to.
    """

    files: dict[str, _Stamp] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)


def scan(shared: Sequence[str], seconds: float = LOOK_SECONDS) -> Look:
    """List the files that are shared, folder by folder, as far as the time goes."""
    until, queue = time.monotonic() + seconds, list(reversed(shared))
    looked = Look()
    while queue:
        if time.monotonic() > until:
            return Look(files=looked.files, folders=looked.folders, left=set(queue))
        path = queue.pop()
        if os.path.isdir(path):
            files, folders = _list_folder(path)
            looked.files.update(_read_stamps(files))
            looked.folders.add(path)
            queue += reversed(folders)
        else:
            looked.files.update(_read_stamps([path]))
    return looked


def list_touched(look: Look) -> list[str]:
    """The files that differ from `look`, new ones and those that are gone among them, in what it listed."""
    stamps: dict[str, _Stamp] = {}
    listed_folders = look.folders | look.left
    for folder in look.folders:
        files, folders = _list_folder(folder)
        stamps.update(_read_stamps(files))
        stamps.update(scan([new for new in folders if new not in listed_folders]).files)
    stamps.update(_read_stamps(path for path in look.files if path not in stamps))
    return list_differing(look.files, stamps)


def _list_folder(folder: str) -> tuple[list[str], list[str]]:
    """The files and the folders in a folder; links to folders are neither, as `os.walk` has it."""
    files: list[str] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += [] if entry.name in _CACHES else [entry.path]
            elif not entry.is_dir():
                files.append(entry.path)
    return files, sorted(folders)


def _read_stamps(paths: Sequence[str] | Iterator[str]) -> Iterator[tuple[str, _Stamp]]:
    for path in paths:
        with suppress(OSError):  # it was there a moment ago, or is a link to nothing
            status = os.stat(path)
            yield path, (status.st_size, status.st_mtime_ns, status.st_ino)


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


class OutsideFiles(Struct, frozen=True):
    """The files outside of its copy that a run opened.

    Attributes:
        read: path -> when it was last written before it was read (seconds since the epoch).
        written: paths of those that it changed.
    """

    read: dict[str, float] = {}
    written: list[str] = []


def read_outside_files(folder: Path, began: float) -> OutsideFiles | None:
    """Read the notes in a folder of reports of a run that began then; None where no Python of it reported anything."""
    if not any(folder.glob("*.began")):
        return None
    read_times: dict[str, float] = {}
    opened_names: set[str] = set()
    for path in folder.glob("*.outside"):
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            with suppress(ValueError):  # the line of a process that was ended in it
                kind, name, time = json.loads(line)
                if kind in "ru" and time is not None:
                    read_times[name] = min(time, read_times.get(name, time))
                if kind in "wau":
                    opened_names.add(name)
    return OutsideFiles(
        read=dict(sorted(read_times.items())), written=sorted(each for each in opened_names if _is_new(each, began))
    )


def _is_new(path: str, began: float) -> bool:
    """Whether a file was changed since then; one that is gone was the run's own."""
    with suppress(OSError):
        return os.lstat(path).st_ctime >= began - LAG
    return False
