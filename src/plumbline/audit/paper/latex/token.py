"""A token of LaTeX: what the reading of a paper is made of."""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    """A token: "command" (without its backslash), "sign", "text" or "space"; and the number of its line."""

    kind: str
    text: str
    line: int
