"""A terminal of 80 columns for a command, and what a person sees in it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

COLUMNS, ROWS = 80, 24
#: What the console uses of a terminal's language: up a line, clear a line, and colours.
_PIECES = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


def run(command: list[str], folder: Path, environment: dict[str, str], typed: bytes = b"") -> tuple[str, int]:
    """What a command writes to its terminal, on which something was typed, and its exit code."""
    descriptor, other_side = pty.openpty()
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment | {"TERM": "xterm"},
        stdin=other_side,
        stdout=other_side,
        stderr=other_side,
        start_new_session=True,
    )
    os.close(other_side)
    os.write(descriptor, typed)
    written = bytearray()
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # how Linux reports that the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(descriptor)
    return written.decode(), process.wait()


def screens(written: str) -> list[str]:
    """The screen each time before lines are cleared, and at the end; lines longer than the terminal stay long."""
    lines, row, column, texts, clearing = [""], 0, 0, [], False
    for piece in _PIECES.finditer(written):
        if piece[2] == "K":
            if not clearing:
                texts.append(_join_lines(lines))
            clearing = True
            lines[row] = ""
        elif piece[2] == "A":
            row -= int(piece[1] or 1)
        elif piece[0] == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif piece[0] == "\r":
            column = 0
        elif piece[2] is None:
            clearing = False
            lines[row] = lines[row].ljust(column)[:column] + piece[0] + lines[row][column + len(piece[0]) :]
            column += len(piece[0])
    return [*texts, _join_lines(lines)]


def _join_lines(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).rstrip()
