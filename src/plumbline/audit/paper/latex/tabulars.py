"""Finds the tabulars of a paper, and splits them into rows and cells with their heads, groups and sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from plumbline.audit.paper.latex.cell_text import CellText, cell_text
from plumbline.audit.paper.latex.source_files import Source
from plumbline.audit.paper.latex.tokens import Token, after_space, group, option

ENVIRONMENTS = {
    "tabular": 1, "tabular*": 2, "tabularx": 2, "tabulary": 2, "longtable": 1, "supertabular": 1, "xltabular": 2,
}  # fmt: skip
FLOATS = ("table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "longtable", "SCtable", "margintable")
RULES = (
    "toprule", "midrule", "bottomrule", "hline", "Xhline", "specialrule", "cmidrule", "cline", "hdashline", "cdashline",
    "addlinespace", "noalign", "morecmidrules", "thickhline",
    "cmidrule*", "specialrulec", "arrayrulecolor", "rowcolor", "noindent", "rowfont",
)  # fmt: skip
#: Rules that part groups of rows, or the head from the body.
PARTING = ("midrule", "hline", "Xhline", "specialrule", "hdashline", "toprule", "bottomrule", "thickhline")

#: What the rows before each of these are of a long table: its head, or what is repeated on other pages.
PAGES = ("endfirsthead", "endhead", "endfoot", "endlastfoot")

#: Commands that may stand before a cell over several columns, and whether they take an argument.
_BEFORE = {"cellcolor": True, "rowcolor": True, "centering": False}

#: Most columns, and cells of one table.
COLUMNS, CELLS = 200, 40_000
#: Most tokens of an environment's name, and of what a rule has in round brackets.
NAME = 40


@dataclass(kw_only=True)
class ReadCell:
    """A cell: its text with marks, over how many columns and rows it goes, and where it stands."""

    content: CellText
    columns: int = 1
    rows: int = 1
    where: str = ""
    filled: bool = False


@dataclass(kw_only=True)
class ReadTable:
    """A tabular: its rows, each with its number of the group, which of them are the head, and what was not read."""

    where: str
    rows: list[list[ReadCell]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    head: int = 0
    floating: int = 0
    caption: str = ""
    label: str = ""
    not_read: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class _Float:
    """A floating table: where its tokens begin and end, its caption and its label."""

    begin: int
    end: int
    caption: str | None = None
    label: str | None = None


def find_tables(tokens: list[Token], source: Source) -> list[ReadTable]:
    """Every tabular of a paper that is not inside another one's cell, in the order of its text."""
    floats, ends, tables = _find_floats(tokens), _find_ends(tokens), []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        begin, place = place, place + 1
        if token[:2] != ("command", "begin"):
            continue
        where = source.lines[token.line].where
        name, place = _read_name(tokens, place)
        if name in ENVIRONMENTS:
            end = ends.get(place)
            if end is None:
                source.not_read.append(f"{where}: a {name} that does not end")
                continue
            table = _read_table(tokens[place:end], ENVIRONMENTS[name], where, source)
            number = next((n for n, each in enumerate(floats) if each.begin <= begin < each.end), None)
            if number is not None:
                table.floating = number + 1
                table.caption, table.label = floats[number].caption or "", floats[number].label or ""
            tables.append(table)
            place = end
        elif name in ("tblr", "longtblr", "NiceTabular", "tabu", "longtabu"):
            source.not_read.append(f"{where}: a table of the kind {name}, which is not known")
    return tables


def _read_name(tokens: list[Token], place: int) -> tuple[str, int]:
    # Only so far: a brace that does not close would be looked for in all of the paper, again and again.
    begin = after_space(tokens, place)
    inner, after = group(tokens[begin : begin + NAME], 0)
    return "".join(token.text for token in inner), begin + after


def _find_floats(tokens: list[Token]) -> list[_Float]:
    """Every floating table, with its caption and label."""
    floats: list[_Float] = []
    open_float: _Float | None = None
    for place, token in enumerate(tokens):
        if token.kind != "command" or token.text not in ("begin", "end", "caption", "label"):
            continue
        if token.text in ("begin", "end"):
            name, after = _read_name(tokens, place + 1)
            if name in FLOATS:
                if token.text == "begin" and open_float is None:
                    open_float = _Float(begin=place, end=len(tokens))
                    floats.append(open_float)
                elif token.text == "end" and open_float is not None:
                    open_float.end, open_float = place, None
        elif open_float is not None:
            if getattr(open_float, token.text) is not None:
                continue
            _, after = option(tokens, place + 1)
            content, _ = group(tokens, after)
            if token.text == "caption":
                open_float.caption = cell_text(content).text
            else:
                open_float.label = "".join(part.text for part in content)
    return floats


def _find_ends(tokens: list[Token]) -> dict[int, int]:
    """Where each tabular ends: the place after its \\begin{...} -> the place of its \\end."""
    ends: dict[int, int] = {}
    begun: dict[str, list[int]] = {name: [] for name in ENVIRONMENTS}
    for place, token in enumerate(tokens):
        if token.kind == "command" and token.text in ("begin", "end"):
            name, after = _read_name(tokens, place + 1)
            if name in begun and token.text == "begin":
                begun[name].append(after)
            elif begun.get(name):
                ends[begun[name].pop()] = place
    return ends


def _read_table(tokens: list[Token], takes: int, where: str, source: Source) -> ReadTable:
    """Split the tokens of a tabular, from its arguments on, into rows."""
    table = ReadTable(where=where)
    place = 0
    spec: list[Token] = []
    _, place = option(tokens, place)
    for _ in range(takes):
        spec, place = group(tokens, place)
        _, place = option(tokens, place)
    uncertain = _find_spread_columns(spec)
    row: list[ReadCell] = []
    cell: list[Token] = []
    depth, nested, group_number, parted = 0, 0, 0, False
    heads: dict[str, list[list[ReadCell]]] = {}
    page = 0

    def end_cell(line: int) -> None:
        first = next((token.line for token in cell if token.kind != "space"), line)
        row.append(_read_cell(list(cell), source.lines[first].where, sum(other.columns for other in row) in uncertain))
        cell.clear()

    def end_row(line: int) -> None:
        nonlocal parted, group_number
        end_cell(line)
        if len(row) > 1 or row[0].content.text or row[0].columns > 1:
            if parted and table.rows:
                group_number += 1
            parted = False
            table.rows.append(list(row))
            table.groups.append(group_number)
        row.clear()

    def end_page(name: str, line: int) -> None:
        """Set the rows before \\endhead or its like aside, and take those of the first head for the table's."""
        nonlocal parted, page
        if row or any(part.kind != "space" for part in cell):
            end_row(line)
        heads[name] = table.rows[page:]
        first = heads.get("endfirsthead") or heads.get("endhead") or []
        table.rows, table.groups, table.head, parted = list(first), [0] * len(first), len(first), True
        page = len(first)

    line, cells = 0, 0
    while place < len(tokens):
        token = tokens[place]
        kind, text, line = token
        place += 1
        if kind == "command" and (text in ("else", "fi") or (text.startswith("if") and text not in ("iff",))):
            table.rows, table.groups = [], []
            table.not_read.append(
                f"{source.lines[line].where}: the table has a condition (\\{text}), which is not evaluated"
            )
            return table
        outside = depth == 0 and nested == 0
        if kind == "sign" and text in "{}":
            depth += 1 if text == "{" else -1
            cell.append(token)
        elif kind == "command" and text in ("begin", "end"):
            nested += 1 if text == "begin" else -1
            cell.append(token)
        elif outside and kind == "sign" and text == "&":
            end_cell(line)
            cells += 1
        elif outside and kind == "command" and text in ("\\", "tabularnewline", "cr"):
            if place < len(tokens) and tokens[place].kind == "text" and tokens[place].text.startswith("*"):
                tokens[place] = tokens[place]._replace(text=tokens[place].text[1:])
            _, place = option(tokens, place)
            end_row(line)
            cells += 1
        elif outside and kind == "command" and text in PAGES:
            end_page(text, line)
        elif outside and kind == "command" and text in ("caption", "caption*", "label") and not row:
            _, place = option(tokens, place)
            _, place = group(tokens, place)
        elif outside and kind == "command" and text in RULES and not any(part.kind != "space" for part in cell):
            parted = parted or text in PARTING
            if text in PARTING and text != "bottomrule" and table.rows and not table.head:
                table.head = len(table.rows)
            place = _skip_rule(tokens, place, text)
        elif cell or kind != "space":
            cell.append(token)
        if cells > CELLS or len(row) > COLUMNS:
            table.rows, table.groups = [], []
            table.not_read.append(f"{where}: more than {CELLS} cells or {COLUMNS} columns")
            return table
    if any(part.kind != "space" for part in cell) or row:
        end_row(line)
    return table


def _skip_rule(tokens: list[Token], place: int, name: str) -> int:
    """The place after what a rule takes: [..], (..) and braces."""
    _, place = option(tokens, place)
    begin = after_space(tokens, place)
    if begin < len(tokens) and tokens[begin].kind == "text" and tokens[begin].text.startswith("("):
        end = min(len(tokens), begin + NAME)
        while begin < end and ")" not in tokens[begin].text:
            begin += 1
        if begin < end:
            rest = tokens[begin].text.partition(")")[2]
            tokens[begin] = tokens[begin]._replace(text=rest)
            place = begin
    for _ in range(
        {"specialrule": 3}.get(
            name, 1 if name.startswith(("cmid", "cline", "noalign", "cdash", "row", "arrayrule")) else 0
        )
    ):
        if place < len(tokens) and tokens[place].text == "" and tokens[place].kind == "text":
            place += 1
        _, place = group(tokens, place)
    return place


def _find_spread_columns(spec: Sequence[Token]) -> frozenset[int]:
    """Places of the columns of siunitx (S), in which 48.2(3) is 48.2 with a spread of 0.3."""
    text = "".join(f"\\{token.text} " if token.kind == "command" else token.text for token in spec)
    for _ in range(20):
        # *{3}{S[..]} is SSS; bounded, for three may be a large number
        text, changed = re.subn(
            r"\*\s*\{(\d{1,3})\}\s*\{([^{}]{0,100})\}",
            lambda match: match[2] * min(int(match[1]), COLUMNS),
            text[:5_000],
            count=1,
        )
        if not changed:
            break
    text = re.sub(r"[@!<>]\s*\{(?:[^{}]|\{[^{}]*\})*\}|\[[^\[\]]*\]", "", text)
    letters = re.findall(r"[A-Za-z]", re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", text)))
    return frozenset(place for place, letter in enumerate(letters) if letter == "S")


def _read_cell(tokens: list[Token], where: str, uncertain: bool) -> ReadCell:
    """Read a cell: over how many columns and rows it goes, and its text."""
    columns, rows, unknown = 1, 1, []
    for _ in range(4):
        place = after_space(tokens, 0)
        while place < len(tokens) and tokens[place][:2] in (
            ("command", "cellcolor"),
            ("command", "rowcolor"),
            ("command", "centering"),
        ):
            if _BEFORE[tokens[place].text]:
                _, place = option(tokens, place + 1)
                _, place = group(tokens, place)
            else:
                place += 1
            place = after_space(tokens, place)
        if (
            place >= len(tokens)
            or tokens[place].kind != "command"
            or tokens[place].text not in ("multicolumn", "multirow")
        ):
            break
        kind = tokens[place].text
        place += 1
        if kind == "multirow":
            _, place = option(tokens, place)
        written, place = _read_name(tokens, place)
        if kind == "multirow":
            _, place = option(tokens, place)
        _, place = group(tokens, place)
        if kind == "multirow":
            _, place = option(tokens, place)
        inner, place = group(tokens, place)
        count = int(written) if re.fullmatch(r"[1-9]\d{0,2}", written) else 1
        if kind == "multicolumn":
            columns = min(count, COLUMNS)
        else:
            rows = count
            if written.startswith("-"):
                unknown.append("\\multirow upwards")
        tokens = [*inner, *tokens[place:]]
    content = cell_text(tokens)
    content.unknown += unknown
    if uncertain and (match := re.fullmatch(r"([+-]?\d+\.(\d+))\((\d{1,6})\)", content.text)):
        spread = int(match[3]) / 10 ** len(match[2])
        content.text = f"{match[1]} ± {spread:.{len(match[2])}f}"
    return ReadCell(content=content, columns=columns, rows=rows, where=where)
