"""Reads how the processes of a run ended: its Python processes by the notes that they left
(`child/plumbline_process_end.py`), others as parts of a pipeline of its command.

One that failed counts against its run where it had written to the run's output, or may have. Others are named beside
it: probes of imports, workers that the run itself ended, filters that let no line through, and what wrote nothing.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from plumbline.core import process_record
from plumbline.core.files import read_json
from plumbline.verdict.formatting import counted
from plumbline.verdict.own_trainer.pipeline import PartEnd

#: Letters of a command line that are told, and commands that are.
_LETTERS, _COMMANDS = 80, 3
#: What is added to a process that the run itself ended.
_BY_ITSELF = ", ended by another process of it"
#: By which signals a program asks another one to end.
_ASKING = frozenset(number.name for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
_UNKNOWN_SIGNAL = "a signal"


class ProcessEnds(Struct, frozen=True):
    """The processes of a run that failed, each in words such as ``train.py: exit code 1 (...)``.

    Attributes:
        of_output: those that had written to the run's output, or may have.
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


def read(
    folder: Path,
    log: Path,
    but: Collection[int] = (),
    *,
    silent: bool = False,
    parts: Collection[PartEnd] = (),
    shell: int = 0,
) -> ProcessEnds:
    """Read the notes in a folder of reports.

    Args:
        but: processes that did not end by themselves.
        silent: one that wrote nothing may be the trainer, whose metric is in a file.
        parts: of pipelines, which ended otherwise than well; a Python process among them, a child of the `shell`, is
            known by its own notes.
    """
    ends, left = ProcessEnds(), list(parts)
    every = [(path, known, _report(path)) for path, known in _began(folder)]
    ended_well = {known["process"]: report for path, known, report in every if not _failure(path, report)}
    for path, known, report in every:
        how = _failure(path, report)
        if known["process"] in but:
            continue
        code = _exit_code(path) if known["parent"] == shell else b""
        if code and (explained := [part for part in left if part.code == code[0]]):
            left.remove(explained[0])
        if not how:
            continue
        words = f"{_command(known)}: {how}"
        if _is_ended_by_the_run(folder, known, how, ended_well.get(known["parent"])):
            ends.others.append(f"{words}{_BY_ITSELF}")
        elif (_wrote(path.with_suffix(".wrote"), log) and not _is_a_probe(known, report)) or (
            silent and known["command"][:1] != ["-c"]
        ):
            ends.of_output.append(words)
        else:
            ends.others.append(words)
    for part in left:
        (ends.others if part.is_filter else ends.of_output).append(f"{part.name}: {_how(part.code)}")
    return ends


def in_words(ends: Collection[str]) -> str:
    """Name processes that failed: ``2 processes of it failed (train.py: exit code 1; ...)``."""
    distinct = list(dict.fromkeys(ends))
    more = "; ..." if len(distinct) > _COMMANDS else ""
    return f"{counted(len(ends), 'process', 'processes')} of it failed ({'; '.join(distinct[:_COMMANDS])}{more})"


def kind(words: str) -> str:
    """The program that failed, and by which code or exception: not what that said, which may be of the run."""
    begin, _, error = words.removesuffix(_BY_ITSELF).partition(" (")
    return f"{begin} {error.partition(':')[0]}"


def _began(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*.began")):
        known = read_json(path)
        if isinstance(known, dict):
            yield path, known


def _report(began: Path) -> dict[str, Any]:
    report = read_json(began.with_suffix(".json"))
    return report if isinstance(report, dict) else {}


def _how(code: int) -> str:
    """How a command ended, by what the shell has as its exit code."""
    with contextlib.suppress(ValueError):
        return signal.Signals(code - 128).name
    return f"exit code {code}"


def _exit_code(began: Path) -> bytes:
    """The exit code of a process; nothing of one that ended by a signal, or does not say it."""
    try:
        return began.with_suffix(".exit").read_bytes()[:1]
    except FileNotFoundError:
        return b""


def _failure(began: Path, report: dict[str, Any]) -> str:
    """How a process failed; nothing of one that did not."""
    if report.get("reader_gone"):
        return ""  # as `| head` ends what it reads from
    code, error = _exit_code(began), report.get("error", "")
    if code:
        return "" if code == b"\0" else f"exit code {code[0]}{f' ({error})' if error else ''}"
    if report.get("exit_known") is False:
        return error
    try:
        return signal.Signals(int(began.with_name(f"{began.stem.partition('-')[0]}.signal").read_text())).name
    except (FileNotFoundError, ValueError):
        return _UNKNOWN_SIGNAL


def _is_ended_by_the_run(folder: Path, known: dict[str, Any], how: str, parent: dict[str, Any] | None) -> bool:
    """Whether another Python process of the run sent the signal; or a program that the Python above it had asked to, or
    the system when that one had ended, which ended well (`parent`, its report).
    """
    senders: list[str] = []
    for name in {str(known["process"]), f"group-{known['group']}", f"group-{known['process']}"}:
        with contextlib.suppress(FileNotFoundError):
            senders += (folder / f"{name}.ended").read_text().split()
    if senders or parent is None:
        return any(sender != str(known["process"]) for sender in senders)
    return how in _ASKING or (how == _UNKNOWN_SIGNAL and known["process"] in parent.get("left", ()))


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
