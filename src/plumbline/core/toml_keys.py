"""Refuses TOML whose keys have so many parts that Python's parser, which copies them, needs hours and all memory."""

from __future__ import annotations

import re

#: Characters of a line; parts of a key.
LINE, PARTS = 10_000, 20

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


def check_keys(text: str) -> None:
    """Look at a text before it is parsed.

    Raises:
        ValueError: a line is too long, or a key has too many parts.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > LINE:
            raise ValueError(f"line {number} has {len(line):,} characters, and at most {LINE:,} are read")
        if line.count(".") > PARTS and not line.lstrip().startswith("#"):
            key = _QUOTED.sub("q", line).partition("=")[0]
            if key.count(".") > PARTS:
                raise ValueError(f"line {number}: a key has more than {PARTS} parts")
