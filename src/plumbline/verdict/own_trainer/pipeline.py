"""Knows how the parts of the pipelines of a command ended, of which the shell gives the last one's code alone.

The shell's own `pipefail` would change what a command does (`if seq 9 | grep -q 1; then`, `set -e`). So bash notes the
codes before each command of the top level, where one fails that no condition asks for, and when it ends; nothing else
of it is altered. A command that sets such a trap of its own is left to the code that it ends with, as is what ends by
`exec`.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

#: The file in which bash notes the codes.
FILE = "pipeline"
#: How a part ends that was left without a reader (`| head`).
NO_READER = 128 + signal.SIGPIPE
#: What stands between commands, and between the parts of one.
_ENDS, _BETWEEN = frozenset((";", "&", "&&", "||", "\n")), frozenset(("|", "|&"))
#: Filters that end with 1 where no line matches.
_FILTERS = re.compile(r"[efz]*grep|rg|ag")
_KEYWORDS = frozenset(["!", "(", "{", "do", "elif", "else", "if", "then", "time", "until", "while"])
_REDIRECTION = re.compile(r"\d*>&[\d-]*|&>")


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


def noting(command: str, file: Path) -> str:
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


def read(file: Path, code: int, command: str) -> PipelineEnd:
    """Read how a command ended whose shell ended with `code`.

    As with `pipefail`, the last part of the last pipeline that failed gives the code; but for a 1 of a part behind the
    first one, by which filters say that no line matched, and where what follows a `||` may be for that very end. These,
    and what failed in pipelines before the last, are parts to be compared with the baseline's. A part that had no
    reader left has not failed.
    """
    if code:
        return PipelineEnd(0 if code == NO_READER else code, no_reader=code == NO_READER)
    parts: list[PartEnd] = []
    pipelines, no_reader = _pipelines(command), False
    for when, last, codes in _notes(file):
        seen = codes[:-1] if when == "DEBUG" else codes  # a condition may be what the last one is
        if when == "EXIT" and last == "exit":
            continue
        if when == "EXIT":
            no_reader = NO_READER in codes
            failed = [one for place, one in enumerate(codes) if one not in (0, NO_READER) and (one > 1 or not place)]
            if failed and "||" not in command:
                return PipelineEnd(failed[-1], no_reader=no_reader)
        if len(codes) > 1:
            parts += [_part(codes, place, pipelines) for place, one in enumerate(seen) if one not in (0, NO_READER)]
    return PipelineEnd(0, no_reader=no_reader, parts=list(dict.fromkeys(parts)))


def _notes(file: Path) -> Iterator[tuple[str, str, list[int]]]:
    """What bash noted: when, which command it was at, and how the parts of the pipeline before that ended."""
    try:
        text = file.read_text(errors="replace")
    except OSError:  # it never came there
        return
    for note in re.split(r"^:(?=(?:DEBUG|ERR|EXIT)$)", text, flags=re.MULTILINE)[1:]:
        when, command, *words = note.split("\n")
        yield when, command, [int(word) for word in words[:-2] if word.isdigit()]


def _part(codes: list[int], place: int, pipelines: list[list[str]]) -> PartEnd:
    alike = [parts[place] for parts in pipelines if len(parts) == len(codes)]
    name = f", {alike[0]}" if len(set(alike)) == 1 else ""
    is_filter = codes[place] == 1 and any(map(_FILTERS.fullmatch, alike))
    return PartEnd(f"part {place + 1} of {len(codes)} of a pipeline{name}", codes[place], is_filter)


def _pipelines(command: str) -> list[list[str]]:
    """The pipelines of a command, each with the names of its parts' programs, as far as its words tell."""
    lexer = shlex.shlex(_REDIRECTION.sub(" ", command), posix=False, punctuation_chars=";&|\n")
    lexer.whitespace = " \t\r"
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end, as in a here-document
        return []
    pipelines = [[""]]
    for word in words:
        if word in _ENDS:
            pipelines.append([""])
        elif word in _BETWEEN:
            pipelines[-1].append("")
        elif not pipelines[-1][-1] and "=" not in word and word not in _KEYWORDS:
            pipelines[-1][-1] = word.lstrip("({")
    return pipelines
