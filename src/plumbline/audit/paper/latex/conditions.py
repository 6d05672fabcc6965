"""Settles the conditions in a table whose branches print the same, such as those of a macro that colours a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plumbline.audit.paper.latex.branches import begins_condition
from plumbline.audit.paper.latex.cell_text import plain_text
from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import after_space, group

#: Most conditions within each other.
DEPTH = 12

#: What of a comparison is left of it as text: "3.2pt < 40pt".
_COMPARISON = re.compile(r"^[^<>=]{0,40}[<>=]\s*-?[\d.]+\s*(?:pt|sp|em)?")


class OpenCondition(Exception):
    """A condition whose branches print different things; it has the condition's token."""


def settle_conditions(tokens: Sequence[Token], depth: int = 0) -> list[Token]:
    """The tokens without conditions: of each what is printed either way.

    Raises:
        OpenCondition: what is printed depends on one.
    """
    settled: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.kind != "command" or not (_begins(token) or token.text in ("else", "fi")):
            settled.append(token)
            continue
        middle, end = _find_end(tokens, place)
        if end is None or depth == DEPTH or token.text in ("else", "fi"):
            raise OpenCondition(token)
        first = settle_conditions(tokens[place : middle or end], depth + 1)
        second = settle_conditions(tokens[middle + 1 : end], depth + 1) if middle else []
        parts = any(part.text in ("&", "\\", "tabularnewline") and part.kind != "text" for part in (*first, *second))
        if parts or _COMPARISON.sub("", plain_text(first)).strip() != plain_text(second):
            raise OpenCondition(token)
        settled += second
        place = end + 1
    return settled


def find_undecided(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Places of the first and last token of each condition that is left, without those inside of others, in order."""
    ranges, open_places, work = [], list[int](), 0
    for place in [place for place, token in enumerate(tokens) if token.kind == "command"]:
        if tokens[place].text == "fi" and open_places:
            ranges.append((open_places.pop(), place))
        elif begins_condition(tokens, place):
            open_places.append(place)
        elif _begins(tokens[place]) and work <= len(tokens):  # \iftoggle{name}{one branch}{the other}
            end = place + 1
            for _ in range(3):
                if (brace := after_space(tokens, end)) < len(tokens) and tokens[brace][:2] == ("sign", "{"):
                    _, end = group(tokens, end)
            work += end - place
            ranges.append((place, end - 1))
    outer: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if not outer or begin > outer[-1][1]:
            outer.append((begin, end))
    return outer


def _begins(token: Token) -> bool:
    return token.text.startswith("if") and token.text != "iff"


def _find_end(tokens: Sequence[Token], place: int) -> tuple[int | None, int | None]:
    """The places of a condition's \\else and \\fi."""
    depth, middle = 0, None
    for end in range(place, len(tokens)):
        if tokens[end].kind != "command":
            continue
        if tokens[end].text == "fi":
            if depth == 0:
                return middle, end
            depth -= 1
        elif tokens[end].text == "else" and depth == 0:
            middle = end
        else:
            depth += _begins(tokens[end])
    return middle, None
