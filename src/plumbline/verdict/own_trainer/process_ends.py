"""Reads how the processes of a run ended: its Python processes by the notes that they left
(`child/plumbline_process_end.py`), others as parts of a pipeline of its command.

One that failed counts against its run where it had written to the run's output, or may have. Others are named beside
it: probes of imports, workers that the run itself ended, filters that let no line through, and what wrote nothing.

Of a pipeline the shell gives the last part's code alone, and its own `pipefail` would change what a command does (`if
seq 9 | grep -q 1; then`, `set -e`). So bash notes the codes before each command of the top level, where one fails that
no condition asks for, and when it ends; nothing else of it is altered. A command that sets such a trap of its own is
left to the code that it ends with, as is what ends by `exec`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import re
import shlex
import signal
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from plumbline.core import process_record
from plumbline.core.files import read_json
from plumbline.core.formats import format_count

#: Letters of a command line that are reported, and commands that are.
_LETTERS, _COMMANDS = 80, 3
#: What is added to a process that the run itself ended.
_BY_ITSELF = ", ended by another process of it"
#: By which signals a program asks another one to end.
_ASKING = frozenset(number.name for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
_UNKNOWN_SIGNAL = "a signal"
#: The file in which bash notes the codes.
PIPELINE_FILE = "pipeline"
#: How a part ends that was left without a reader (`| head`).
NO_READER = 128 + signal.SIGPIPE
#: What stands between commands, and between the parts of one.
_ENDS, _BETWEEN = frozenset((";", "&", "&&", "||", "\n")), frozenset(("|", "|&"))
#: Filters that end with 1 where no line matches.
_FILTERS = re.compile(r"[efz]*grep|rg|ag")
_KEYWORDS = frozenset(["!", "(", "{", "do", "elif", "else", "if", "then", "time", "until", "while"])
_REDIRECTION = re.compile(r"\d*>&[\d-]*|&>")


class ProcessEnds(Struct, frozen=True):
    """The processes of a run that failed, each as text such as ``train.py: exit code 1 (...)``.

    Attributes:
        of_output: those that had written to the run's output, or may have.
        others: those that had not, those that only looked whether a module is there, and those that were ended by
            another process of the run.
        at_once: those that had, and ended well by `os._exit(0)`, so that nothing shows whether they were done.
    """

    of_output: list[str] = []
    others: list[str] = []
    at_once: list[str] = []


def list_running(folder: Path) -> set[int]:
    """List the processes of this machine that began a run's Python and have not ended."""
    host = platform.node()
    processes = [note["process"] for _, note in _read_begin_notes(folder) if note["host"] == host]
    return {process for process in processes if process_record.read_start_time(process) is not None}


def read(
    folder: Path,
    log: Path,
    left_running: Collection[int] = (),
    *,
    silent: bool = False,
    parts: Collection[PartEnd] = (),
    shell: int = 0,
) -> ProcessEnds:
    """Read the notes in a folder of reports.

    Args:
        left_running: processes that did not end by themselves.
        silent: one that wrote nothing may be the trainer, whose metric is in a file.
        parts: of pipelines, which ended otherwise than well; a Python process among them, a child of the `shell`, is
            known by its own notes.
    """
    ends, unmatched = ProcessEnds(), list(parts)
    every = [(path, note, _report(path)) for path, note in _read_begin_notes(folder)]
    ended_well = {note["process"]: report for path, note, report in every if not _describe_failure(path, report)}
    for path, note, report in every:
        how = _describe_failure(path, report)
        if note["process"] in left_running:
            continue
        code = _read_exit_code(path) if note["parent"] == shell else b""
        if code and (explained := [part for part in unmatched if part.code == code[0]]):
            unmatched.remove(explained[0])
        if not how:
            if path.with_suffix(".at_once").exists() and _has_written(path.with_suffix(".wrote"), log):
                ends.at_once.append(_shorten_command(note))
            continue
        rank = f"rank {note['rank']}, " if note.get("rank") else ""
        failure = f"{rank}{_shorten_command(note)}: {how}"
        if _is_ended_by_the_run(folder, note, how, ended_well.get(note["parent"])):
            ends.others.append(f"{failure}{_BY_ITSELF}")
        elif (_has_written(path.with_suffix(".wrote"), log) and not _is_a_probe(note, report)) or (
            silent and note["command"][:1] != ["-c"]
        ):
            ends.of_output.append(failure)
        else:
            ends.others.append(failure)
    for part in unmatched:
        (ends.others if part.is_filter else ends.of_output).append(f"{part.name}: {_describe_code(part.code)}")
    return ends


def describe_failed_processes(ends: Collection[str]) -> str:
    """Name processes that failed: ``2 processes of it failed (train.py: exit code 1; ...)``."""
    texts = list(dict.fromkeys(ends))
    tail = "; ..." if len(texts) > _COMMANDS else ""
    return f"{format_count(len(ends), 'process', 'processes')} of it failed ({'; '.join(texts[:_COMMANDS])}{tail})"


def describe_new_exits(programs: Collection[str], other_runs: Iterable[Collection[str]]) -> list[str]:
    """State which programs of a run end by `os._exit(0)`, where none of `other_runs` does."""
    other_programs = {program for of_run in other_runs for program in of_run}
    return [
        f"{program} ended by os._exit(0), as no run of the baseline did: whether it was done is not known"
        for program in dict.fromkeys(programs)
        if program not in other_programs
    ]


def kind(failure: str) -> str:
    """The program that failed, and its code or exception; not its rank, nor its message, which may be of the run."""
    failure = re.sub(r"^rank \d+, ", "", failure)
    begin, _, error = failure.removesuffix(_BY_ITSELF).partition(" (")
    return f"{begin} {error.partition(':')[0]}"


def _read_begin_notes(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*.began")):
        note = read_json(path)
        if isinstance(note, dict):
            yield path, note


def _report(began: Path) -> dict[str, Any]:
    report = read_json(began.with_suffix(".json"))
    return report if isinstance(report, dict) else {}


def _describe_code(code: int) -> str:
    """How a command ended, by what the shell has as its exit code."""
    with contextlib.suppress(ValueError):
        return signal.Signals(code - 128).name
    return f"exit code {code}"


def _read_exit_code(began: Path) -> bytes:
    """The exit code of a process; nothing of one that ended by a signal, or does not state it."""
    try:
        return began.with_suffix(".exit").read_bytes()[:1]
    except FileNotFoundError:
        return b""


def _read_handled_error(began: Path) -> str:
    """The exception that a process was handling when it called `os._exit(0)`; empty of any other end."""
    try:
        return began.with_suffix(".at_once").read_text()
    except FileNotFoundError:
        return ""


def _describe_failure(began: Path, report: dict[str, Any]) -> str:
    """How a process failed; nothing of one that did not."""
    if report.get("reader_gone"):
        return ""  # as `| head` ends what it reads from
    code, error = _read_exit_code(began), report.get("error", "")
    if code == b"\0" and (handled := _read_handled_error(began)):
        return f"exit code 0 by os._exit while it handled an error ({handled})"
    if code:
        return "" if code == b"\0" else f"exit code {code[0]}{f' ({error})' if error else ''}"
    if report.get("exit_known") is False:
        return error
    try:
        return signal.Signals(int(began.with_name(f"{began.stem.partition('-')[0]}.signal").read_text())).name
    except (FileNotFoundError, ValueError):
        return _UNKNOWN_SIGNAL


def _is_ended_by_the_run(folder: Path, note: dict[str, Any], end: str, parent: dict[str, Any] | None) -> bool:
    """Whether another Python process of the run sent the signal; or a program that the Python above it had asked to, or
    the system when that one had ended, which ended well (`parent`, its report).
    """
    senders: list[str] = []
    for name in {str(note["process"]), f"group-{note['group']}", f"group-{note['process']}"}:
        with contextlib.suppress(FileNotFoundError):
            senders += (folder / f"{name}.ended").read_text().split()
    if senders or parent is None:
        return any(sender != str(note["process"]) for sender in senders)
    return end in _ASKING or (end == _UNKNOWN_SIGNAL and note["process"] in parent.get("left", ()))


def _is_a_probe(note: dict[str, Any], report: dict[str, Any]) -> bool:
    """Whether it is code of the command line that only found that a module is not there."""
    return bool(report.get("import_failed")) and note["command"][:1] == ["-c"]


def _has_written(path: Path, log: Path) -> bool:
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


def _shorten_command(note: dict[str, Any]) -> str:
    """What a process ran, without the flags and seeds behind that: ``train.py``, ``-m train``, ``-c import torch``."""
    arguments = list(note["command"])
    at = next(
        (place for place, text in enumerate(arguments) if text in ("-m", "-c") or not text.startswith("-")),
        len(arguments),
    )
    arguments = arguments[at : at + 2] if arguments[at : at + 1] in (["-m"], ["-c"]) else arguments[at : at + 1]
    line = " ".join(" ".join(arguments).split()) or "python"
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 3]}..."


class PartEnd(Struct, frozen=True):
    """How a part of a pipeline ended that may have failed: its name, its exit code, and whether it is a filter that
    let no line through.
    """

    name: str
    code: int
    is_filter: bool = False


class PipelineEnd(Struct, frozen=True):
    """How a command ended.

    Attributes:
        code: its exit code, 0 where it ended well.
        no_reader: whether a part, or all of it, was left without a reader.
        parts: those that ended otherwise than well, and do not give the code.
    """

    code: int
    no_reader: bool = False
    parts: list[PartEnd] = []


def note_parts(command: str, file: Path) -> str:
    """Give a command for bash that does the same, and notes in a file how its pipelines' parts ended."""
    if "|" not in command:
        return command
    traps = []
    for when in ("DEBUG", "ERR", "EXIT"):
        # The last word leaves `$_` as it was; the braces hide what `set -x` would print, too.
        codes = f'printf "%q\\n" :{when} "${{BASH_COMMAND%%[[:space:]]*}}" "${{PIPESTATUS[@]}}" "$_"'
        note = f"{{ {codes} >> {shlex.quote(str(file))}; }} 2> /dev/null || :"
        traps.append(f"trap {shlex.quote(note)} {when}\n")
    return "".join(reversed(traps)) + command


def read_pipeline(file: Path, code: int, command: str) -> PipelineEnd:
    """Read how a command ended whose shell ended with `code`.

    As with `pipefail`, the last part of the last pipeline that failed gives the code; but for a 1 of a part behind the
    first one, by which filters say that no line matched, and where what follows a `||` may be for that very end. These,
    and what failed in pipelines before the last, are parts to be compared with the baseline's. A part that had no
    reader left has not failed.
    """
    if code:
        return PipelineEnd(0 if code == NO_READER else code, no_reader=code == NO_READER)
    parts: list[PartEnd] = []
    pipelines, no_reader = _split_pipelines(command), False
    for when, last, codes in _read_notes(file):
        ends = codes[:-1] if when == "DEBUG" else codes  # a condition may be what the last one is
        if when == "EXIT" and last == "exit":
            continue
        if when == "EXIT":
            no_reader = NO_READER in codes
            failed = [end for place, end in enumerate(codes) if end not in (0, NO_READER) and (end > 1 or not place)]
            if failed and "||" not in command:
                return PipelineEnd(failed[-1], no_reader=no_reader)
        if len(codes) > 1:
            parts += [_part(codes, place, pipelines) for place, end in enumerate(ends) if end not in (0, NO_READER)]
    return PipelineEnd(0, no_reader=no_reader, parts=list(dict.fromkeys(parts)))


def _read_notes(file: Path) -> Iterator[tuple[str, str, list[int]]]:
    """What bash noted: when, which command it was at, and how the parts of the pipeline before that ended."""
    try:
        text = file.read_text(errors="replace")
    except OSError:  # it never came there
        return
    for note in re.split(r"^:(?=(?:DEBUG|ERR|EXIT)$)", text, flags=re.MULTILINE)[1:]:
        when, command, *codes = note.split("\n")
        yield when, command, [int(code) for code in codes[:-2] if code.isdigit()]


def _part(codes: list[int], place: int, pipelines: list[list[str]]) -> PartEnd:
    commands = [parts[place] for parts in pipelines if len(parts) == len(codes)]
    name = f", {commands[0]}" if len(set(commands)) == 1 else ""
    is_filter = codes[place] == 1 and any(map(_FILTERS.fullmatch, commands))
    return PartEnd(f"part {place + 1} of {len(codes)} of a pipeline{name}", codes[place], is_filter)


def _split_pipelines(command: str) -> list[list[str]]:
    """The pipelines of a command, each with the names of its parts' programs, as far as its text shows."""
    lexer = shlex.shlex(_REDIRECTION.sub(" ", command), posix=False, punctuation_chars=";&|\n")
    lexer.whitespace = " \t\r"
    try:
        tokens = list(lexer)
    except ValueError:  # a quote without its end, as in a here-document
        return []
    pipelines = [[""]]
    for token in tokens:
        if token in _ENDS:
            pipelines.append([""])
        elif token in _BETWEEN:
            pipelines[-1].append("")
        elif not pipelines[-1][-1] and "=" not in token and token not in _KEYWORDS:
            pipelines[-1][-1] = token.lstrip("({")
    return pipelines
