"""Reads a cell of a table: over how many columns and rows it goes, its text, and what the format of its column adds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.audit.paper.latex.cell_text import CellText, cell_text, skip_options
from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import after_space, group, option, read_name

#: Most columns of a table.
COLUMNS = 200
#: Most characters of the format of a table's columns, and tokens of a type of columns.
FORMAT, TYPE = 5_000, 200
#: What the format says of a column, written before its letter: parted by ±, by a decimal point; not printed.
SIGNS = "±•∅"


@dataclass(kw_only=True)
class ReadCell:
    """A cell: its text with marks, over how many columns and rows it goes (upwards: less than 0), and where it stands.

    `spans`: over how many it goes where empty cells follow it, each of which then is one of its columns.
    """

    content: CellText
    columns: int = 1
    rows: int = 1
    spans: int = 1
    where: str = ""
    filled: bool = False


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Places of columns of which a table's format says something.

    Attributes:
        uncertain: of siunitx (S), in which 48.2(3) is 48.2 with a spread of 0.3.
        spread: parted by ± from the one before.
        decimals: parted by a decimal point from the one before, which has the digits left of it.
        hidden: not printed: what stands in them is kept in a box, or thrown away.
    """

    uncertain: frozenset[int] = frozenset()
    spread: frozenset[int] = frozenset()
    decimals: frozenset[int] = frozenset()
    hidden: frozenset[int] = frozenset()


#: What throws a column's content away, or keeps it in a box; what prints that box.
_HIDES = re.compile(r"\\(?:setbox|lrbox|begin \{lrbox|@?gobble|iffalse)")
_PRINTS = re.compile(r"\\(?:usebox|un[hv]box|un[hv]copy|copy|box) ")


def write_format(tokens: Sequence[Token]) -> str:
    """The format of a table's columns as text."""
    return "".join(f"\\{token.text} " if token.kind == "command" else token.text for token in tokens)


def read_types(tokens: Sequence[Token]) -> dict[str, str]:
    """Types of columns that a paper defines by \\newcolumntype, and their formats."""
    types = {}
    for begin in [place for place, token in enumerate(tokens) if token[:2] == ("command", "newcolumntype")]:
        part = list(tokens[begin + 1 : begin + TYPE])
        name, place = group(part, 0)
        _, place = option(part, place)
        types["".join(token.text for token in name)] = _sign_columns(write_format(group(part, place)[0]))
    return types


def find_columns(text: str, types: Mapping[str, str]) -> Columns:
    """What the format of a table's columns says of them; `types`: those of the paper, by their letter."""
    text = _sign_columns(re.sub(r".*colspec\s*=\s*\{", "", text[:FORMAT], flags=re.DOTALL))
    for _ in range(5):  # a type may stand in the format of another one
        text = re.sub("[A-Za-z]", lambda match: types.get(match[0], match[0]), text)[:FORMAT]
    columns = re.findall(f"([{SIGNS}]*)[^A-Za-z{SIGNS}]*([A-Za-z])", text)
    places = {
        sign: frozenset(place for place, (signs, letter) in enumerate(columns) if sign in signs + letter)
        for sign in ("S", *SIGNS)
    }
    return Columns(uncertain=places["S"], spread=places["±"] - {0}, decimals=places["•"] - {0}, hidden=places["∅"])


def _sign_columns(text: str) -> str:
    """A format with a letter for each column, and before it signs for what it says of that column."""
    is_printed = _PRINTS.search(text) is not None

    def sign(match: re.Match[str]) -> str:
        if match[1] == ">":
            return "∅" * (not is_printed and _HIDES.search(match[2]) is not None)
        between = re.sub(r"[\s${}]", "", match[2])
        return "±" if "\\pm" in between or "±" in between else "•" * (between in (".", "\\cdot"))

    # Before *{3}{..} is repeated, which is found only if what it repeats has no braces within braces.
    text = re.sub(r"([@!<>])\s*\{((?:[^{}]|\{[^{}]*\})*)\}", sign, text)
    for _ in range(20):
        # *{3}{S[..]} is SSS; bounded, for three may be a large number
        text, changed = re.subn(
            r"\*\s*\{(\d{1,3})\}\s*\{((?:[^{}]|\{[^{}]*\}){0,100})\}",
            lambda match: match[2] * min(int(match[1]), COLUMNS),
            text[:FORMAT],
            count=1,
        )
        if not changed:
            break
    return re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", re.sub(r"\[[^\[\]]*\]", "", text)))


def read_cell(tokens: list[Token], where: str, uncertain: bool) -> ReadCell:
    """Read a cell: over how many columns and rows it goes, and its text."""
    columns, rows, spans = 1, 1, 1
    for _ in range(6):
        place = after_space(tokens, 0)
        kind = tokens[place].text if place < len(tokens) and tokens[place].kind == "command" else ""
        if kind in ("cellcolor", "rowcolor"):
            _, place = option(tokens, place + 1)
            _, place = group(tokens, place)
            tokens = tokens[skip_options(tokens, place) :]
        elif kind == "centering":
            tokens = tokens[place + 1 :]
        elif kind in ("SetCell", "Block"):
            choice, place = option(tokens, place + 1)
            size, place = group(tokens, place)
            text = "".join(token.text for token in (size if kind == "Block" else choice or ()))
            sizes = re.fullmatch(r"(?P<r>\d{0,3})-(?P<c>\d{0,3})", text) if kind == "Block" else None
            sizes = sizes or re.fullmatch(r"(?=.*?\br\s*=\s*(?P<r>\d{1,3})|)(?=.*?\bc\s*=\s*(?P<c>\d{1,3})|).*", text)
            rows, spans = (min(int((sizes and sizes[key]) or 1), COLUMNS) for key in "rc")
            tokens = tokens[place:]
        elif kind in ("multicolumn", "multirow"):
            _, place = option(tokens, place + 1)
            count_text, place = read_name(tokens, place)
            _, place = option(tokens, place)
            _, place = group(tokens, place)
            if kind == "multirow":
                _, place = option(tokens, place)
            inner, place = group(tokens, place)
            count = int(count_text) if re.fullmatch(r"-?[1-9]\d{0,2}", count_text) else 1
            if kind == "multicolumn":
                columns = max(1, min(count, COLUMNS))
            else:
                rows = count
            tokens = [*inner, *tokens[place:]]
        else:
            break
    content = cell_text(tokens)
    if uncertain and (match := re.fullmatch(r"([+-]?\d+\.(\d+))\((\d{1,6})\)", content.text)):
        spread = int(match[3]) / 10 ** len(match[2])
        content.text = f"{match[1]} ± {spread:.{len(match[2])}f}"
    return ReadCell(content=content, columns=columns, rows=rows, spans=spans, where=where)
