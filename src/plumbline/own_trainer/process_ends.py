"""Reads how the Python processes of a run ended, by the notes that they left (`child/plumbline_process_end.py`).

One that failed counts against its run where it had written to the run's output. Others are named beside it: probes
of imports, workers that another process ended, and what wrote nothing.
"""

from __future__ import annotations

import mmap
import os
import platform
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from plumbline.core import process_record
from plumbline.core.files import read_json
from plumbline.experiment.formatting import counted

#: Letters of a command line that are told, and commands that are.
_LETTERS, _COMMANDS = 80, 3


class ProcessEnds(Struct, frozen=True):
    """The Python processes of a run that failed, each in words such as ``train.py: exit code 1 (...)``.

    Attributes:
        of_output: those that had written to the run's output.
        others: those that had not, those that only looked whether a module is there, and those that were ended by
            another process of the run.
    """

    of_output: list[str] = []
    others: list[str] = []


def running(folder: Path) -> set[int]:
    """List the processes of this machine that began a run's Python and have not ended."""
    here = platform.node()
    every = [known["process"] for _, known in _began(folder) if known["host"] == here]
    return {process for process in every if process_record.started(process) is not None}


def read(folder: Path, log: Path, but: Collection[int] = (), *, silent: bool = False) -> ProcessEnds:
    """Read the notes in a folder of reports.

    Args:
        but: processes that did not end by themselves.
        silent: one that wrote nothing may be the trainer, whose metric is in a file.
    """
    ends = ProcessEnds()
    for path, known in _began(folder):
        report = read_json(path.with_suffix(".json"))
        report = report if isinstance(report, dict) else {}
        how = _failure(path, report)
        if not how or known["process"] in but:
            continue
        words = f"{_command(known)}: {how}"
        if any(
            _ended_by_another(folder / f"{of}.ended", known) for of in (known["process"], f"group-{known['group']}")
        ):
            ends.others.append(f"{words}, ended by another process of it")
        elif _is_a_probe(known, report) or not (silent or _wrote(path.with_suffix(".wrote"), log)):
            ends.others.append(words)
        else:
            ends.of_output.append(words)
    return ends


def in_words(ends: Collection[str]) -> str:
    """Name processes that failed: ``2 Python processes of it failed (train.py: exit code 1; ...)``."""
    distinct = list(dict.fromkeys(ends))
    more = "; ..." if len(distinct) > _COMMANDS else ""
    processes = counted(len(ends), "Python process", "Python processes")
    return f"{processes} of it failed ({'; '.join(distinct[:_COMMANDS])}{more})"


def _began(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*.began")):
        known = read_json(path)
        if isinstance(known, dict):
            yield path, known


def _failure(began: Path, report: dict[str, Any]) -> str:
    """How a process failed; nothing of one that did not."""
    if report.get("reader_gone"):
        return ""  # as `| head` ends what it reads from
    try:
        code = began.with_suffix(".exit").read_bytes()[:1]
    except FileNotFoundError:
        code = b""
    error = report.get("error", "")
    if code:
        return "" if code == b"\0" else f"exit code {code[0]}{f' ({error})' if error else ''}"
    if report.get("exit_known") is False:
        return error
    return "a signal"


def _ended_by_another(path: Path, known: dict[str, Any]) -> bool:
    try:
        senders = path.read_text().split()
    except FileNotFoundError:
        return False
    return any(sender != str(known["process"]) for sender in senders)


def _is_a_probe(known: dict[str, Any], report: dict[str, Any]) -> bool:
    """Whether it is code of the command line that only found that a module is not there."""
    return bool(report.get("import_failed")) and known["command"][:1] == ["-c"]


def _wrote(path: Path, log: Path) -> bool:
    """Whether a process has written to the run's output, or to one that passed it on."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    # What ended while a line was noted left a part of it, behind which there may be zeros.
    lines = {line.strip(b"\0 ") for line in content.split(b"\n")} - {b""}
    if not lines:
        return not content
    with open(log, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
            return any(text.find(line) >= 0 for line in lines)


def _command(known: dict[str, Any]) -> str:
    """What a process ran, without the flags and seeds behind that: ``train.py``, ``-m train``, ``-c import torch``."""
    words = list(known["command"])
    at = next(
        (place for place, word in enumerate(words) if word in ("-m", "-c") or not word.startswith("-")), len(words)
    )
    words = words[at : at + 2] if words[at : at + 1] in (["-m"], ["-c"]) else words[at : at + 1]
    line = " ".join(" ".join(words).split()) or "python"
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 3]}..."
