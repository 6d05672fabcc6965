"""Reads a cell of a table: over how many columns and rows it goes, its text, and what the format of its column adds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plumbline.audit.paper.latex.cell_text import CellText, cell_text
from plumbline.audit.paper.latex.tokens import Token, after_space, group, option, read_name

#: Most columns of a table.
COLUMNS = 200


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


def find_columns(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the columns of siunitx (S), in which 48.2(3) is 48.2 with a spread of 0.3, and of those with a ± before
    them, from the format of a table's columns."""
    text = re.sub(r".*colspec\s*=\s*\{", "", text[:5_000], flags=re.DOTALL)
    for _ in range(20):
        # *{3}{S[..]} is SSS; bounded, for three may be a large number
        text, changed = re.subn(
            r"\*\s*\{(\d{1,3})\}\s*\{((?:[^{}]|\{[^{}]*\}){0,100})\}",
            lambda match: match[2] * min(int(match[1]), COLUMNS),
            text[:5_000],
            count=1,
        )
        if not changed:
            break
    text = re.sub(r"[@!<>]\s*\{((?:[^{}]|\{[^{}]*\})*)\}", lambda match: "±" * ("\\pm" in match[1]), text)
    text = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", re.sub(r"\[[^\[\]]*\]", "", text)))
    columns = re.findall("(±?)[^A-Za-z±]*([A-Za-z])", text)
    return (
        frozenset(place for place, (_, letter) in enumerate(columns) if letter == "S"),
        frozenset(place for place, (sign, _) in enumerate(columns) if sign and place),
    )


def read_cell(tokens: list[Token], where: str, uncertain: bool) -> ReadCell:
    """Read a cell: over how many columns and rows it goes, and its text."""
    columns, rows, spans = 1, 1, 1
    for _ in range(6):
        place = after_space(tokens, 0)
        kind = tokens[place].text if place < len(tokens) and tokens[place].kind == "command" else ""
        if kind in ("cellcolor", "rowcolor"):
            _, place = option(tokens, place + 1)
            _, place = group(tokens, place)
            tokens = tokens[place:]
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
            written, place = read_name(tokens, place)
            _, place = option(tokens, place)
            _, place = group(tokens, place)
            if kind == "multirow":
                _, place = option(tokens, place)
            inner, place = group(tokens, place)
            count = int(written) if re.fullmatch(r"-?[1-9]\d{0,2}", written) else 1
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
