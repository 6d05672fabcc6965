"""Knows how the parts of the pipeline ended that ends a command, of which the shell gives the last one's code alone.

The shell's own `pipefail` would change what a command does (`if seq 9 | grep -q 1; then`, `set -e`). So bash notes the
codes when it ends, and nothing else of it is altered. A command that ends by `exit` or `exec`, or sets a trap of its
own for its end, is left to the code that it ends with.
"""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

from msgspec import Struct

#: The file in which bash notes the codes.
FILE = "pipeline"
#: How a part ends that was left without a reader (`| head`).
NO_READER = 128 + signal.SIGPIPE
#: What stands between commands, and between the parts of one.
_ENDS, _BETWEEN = frozenset((";", "&", "&&", "||", "\n")), frozenset(("|", "|&"))

_REDIRECTION = re.compile(r"\d*>&[\d-]*|&>")


class PipelineEnd(Struct, frozen=True):
    """How a command ended.

    Attributes:
        code: its exit code, 0 where it ended well.
        no_reader: whether a part, or all of it, was left without a reader.
        of_filter: the exit code of a part behind the trainer that counts for nothing; 0 without one.
    """

    code: int
    no_reader: bool = False
    of_filter: int = 0


def noting(command: str, file: Path) -> str:
    """Give a command for bash that does the same, and notes in a file how its last pipeline's parts ended."""
    if "|" not in command:
        return command
    codes = r'printf "%s\n" "${BASH_COMMAND%%[[:space:]]*}" "${PIPESTATUS[@]}"'
    note = f"{{ {codes} >| {shlex.quote(str(file))}; }} 2> /dev/null"  # which `set -x` would print, too
    return f"trap {shlex.quote(note)} EXIT\n{command}"


def read(file: Path, code: int, command: str, seed: int) -> PipelineEnd:
    """Read how a command ended whose shell ended with `code`.

    The last part that failed gives the code. A part that had no reader left has not failed; nor has one behind the
    trainer that ends with 1, as `grep` does where no line matches. The trainer is the first part that names the seed,
    or else the first.
    """
    if code:
        return PipelineEnd(0 if code == NO_READER else code, no_reader=code == NO_READER)
    try:
        last, *words = file.read_text().split("\n")
    except (OSError, ValueError):  # it never came there
        last, words = "exit", []
    codes = [int(word) for word in words if word.isdigit()] if last != "exit" else []
    parts = _parts(command)
    names_seed = re.compile(rf"(?<!\d){seed}(?!\d)")
    at = next((at for at, part in enumerate(parts) if names_seed.search(part)), 0) if len(parts) == len(codes) else 0
    failed = [part for part in codes[: at + 1] if part not in (0, NO_READER)]
    failed += [part for part in codes[at + 1 :] if part not in (0, 1, NO_READER)]
    return PipelineEnd(failed[-1] if failed else 0, no_reader=NO_READER in codes, of_filter=int(1 in codes[at + 1 :]))


def _parts(command: str) -> list[str]:
    """The parts of the last pipeline of a command, as far as its words tell."""
    lexer = shlex.shlex(_REDIRECTION.sub(" ", command), posix=False, punctuation_chars=";&|\n")
    lexer.whitespace = " \t\r"
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end, as in a here-document
        return []
    parts = [""]
    for at, word in enumerate(words):
        if word in _ENDS and any(each not in _ENDS for each in words[at + 1 :]):
            parts = [""]
        elif word in _BETWEEN:
            parts.append("")
        else:
            parts[-1] += f"{word} "
    return parts
