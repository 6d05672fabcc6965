"""Finds the tabulars of a paper, and splits them into rows and cells with their heads, groups and sources."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from plumbline.audit.paper.latex.cell_text import skip_options
from plumbline.audit.paper.latex.conditions import OpenCondition, find_undecided, settle_conditions
from plumbline.audit.paper.latex.environments import COMMANDS, FLOATS, Environment, find_environments
from plumbline.audit.paper.latex.running_text import Sections
from plumbline.audit.paper.latex.source_files import Source
from plumbline.audit.paper.latex.table_cells import (
    COLUMNS,
    Columns,
    ReadCell,
    find_columns,
    read_cell,
    read_types,
    write_format,
)
from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import NAME, TOKENS, after_space, group, option
from plumbline.audit.paper.paper_source import UnreadTable

#: Environments of tables, and how many arguments stand before their rows; the last of them names the columns.
ENVIRONMENTS = {
    "tabular": 1, "tabular*": 2, "tabularx": 2, "tabulary": 2, "longtable": 1, "supertabular": 1, "xltabular": 2,
    "NiceTabular": 1, "NiceTabular*": 2, "NiceTabularX": 2, "tabu": 1, "longtabu": 1, "tblr": 1, "longtblr": 1,
    "talltblr": 1, "longtable*": 1, "tabularew": 1, "mpsupertabular": 1, "xtabular": 1, "tabularray": 1, "ltablex": 2,
}  # fmt: skip
#: Those in which a cell over several places is followed by empty ones; in which "to" may stand before the columns.
_FILLED, _TABU = ("tblr", "longtblr", "talltblr", "NiceTabular", "NiceTabular*", "NiceTabularX"), ("tabu", "longtabu")
#: Tables that are written otherwise than in rows and cells; beginnings of what only lays out what stands in it.
_OTHER = frozenset(("deluxetable", "deluxetable*", "tabbing")) | COMMANDS
_LAYOUT = (*FLOATS, "center", "small", "footnotesize", "adjustbox", "scriptsize", "flush", "minipage", "three", "sub")
#: Rules, and how many arguments each takes.
RULES = {
    "toprule": 0, "midrule": 0, "bottomrule": 0, "hline": 0, "Xhline": 1, "specialrule": 3, "cmidrule": 1, "cline": 1,
    "hdashline": 0, "cdashline": 1, "addlinespace": 0, "noalign": 1, "morecmidrules": 0, "thickhline": 0,
    "cmidrule*": 1, "specialrulec": 0, "arrayrulecolor": 1, "rowcolor": 1, "noindent": 0, "rowfont": 1, "hhline": 1,
    "Xcline": 2, "hlineB": 1, "clineB": 2, "hlinewd": 1, "cdashlinelr": 1, "tabucline": 1, "Hline": 0,
    "RowStyle": 1, "SetRow": 1, "SetHline": 1, "SetHlines": 1, "SetVline": 1, "SetVlines": 1, "SetColumn": 1,
    "dashedline": 0, "taburulecolor": 1, "firsthline": 0, "lasthline": 0,
}  # fmt: skip
#: Those of them that are none, or may stand anywhere.
_SPACING = frozenset(("noindent", "noalign", "addlinespace", "rowfont", "arrayrulecolor", "rowcolor"))
#: Rules that part groups of rows, or the head from the body.
PARTING = (
    "midrule", "hline", "Xhline", "specialrule", "hdashline", "toprule", "bottomrule", "thickhline", "hhline", "hlineB",
    "hlinewd", "tabucline", "Hline", "SetHline", "firsthline", "lasthline",
)  # fmt: skip

#: What the rows before each of these are of a long table: its head, or what is repeated on other pages.
PAGES = ("endfirsthead", "endhead", "endfoot", "endlastfoot")

#: Most cells of one table.
CELLS = 40_000


@dataclass(kw_only=True)
class ReadTable:
    """A tabular: its rows, each with its number of the group, which of them are the head, and where it stands.

    Attributes:
        columns: what the table's format says of its columns.
        problem: why it could not be read; empty: it was.
    """

    where: str
    kind: str = "tabular"
    rows: list[list[ReadCell]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    head: int = 0
    columns: Columns = field(default_factory=Columns)
    floating: int = 0
    caption: str = ""
    label: str = ""
    section: str = ""
    problem: str = ""


def find_tables(tokens: list[Token], source: Source, sections: Sections) -> tuple[list[ReadTable], list[UnreadTable]]:
    """Every tabular of a paper that is not inside another one's cell, in the order of its text; and each table of it
    that has no tabular that could be read."""
    environments, tables, unread = find_environments(tokens), [], []
    section, following, end, work, floats = "", 0, 0, 0, set()
    undecided, types = find_undecided(tokens), read_types(tokens)
    begins = [begin for begin, _ in undecided]

    def refuse(each: Environment, why: str) -> None:
        unread.append(UnreadTable(source.lines[tokens[each.begin].line].where, each.name, why))

    def find_condition(each: Environment) -> tuple[int, int]:
        """Begin and end of the condition that an environment stands in; both 0: it stands in none."""
        begin, last = undecided[bisect(begins, each.begin) - 1] if bisect(begins, each.begin) else (0, 0)
        return (begin, last) if each.begin < last else (0, 0)

    for place, each in enumerate(environments):
        while sections[following][0] < each.begin:
            section, following = sections[following][1], following + 1
        if each.begin >= end and each.name not in ENVIRONMENTS and each.name not in _OTHER and each.end is not None:
            work += each.end - each.begin
            if not each.number and work < 2 * TOKENS and _looks_like_table(tokens[each.inner : each.end]):
                refuse(each, "this kind of table is not known")
            continue
        if each.begin < end or (each.name not in ENVIRONMENTS and each.name not in _OTHER):
            continue
        floats.add(each.number)
        if each.name in _OTHER or each.end is None:
            refuse(each, "it does not end" if each.end is None else "this kind of table is not known")
            continue
        begin, last = find_condition(each)
        if last:
            why = _say_condition("stands in", tokens[begin], source)
            if tokens[last][:2] == ("command", "fi"):
                refuse(each, why)
                end = each.end
                continue
            # A style's own choice of a version, as a rule: what is printed in one of them.
            source.not_read.append(f"{source.lines[tokens[each.begin].line].where}: {each.name}: {why}; it is read")
        work += each.end - each.begin
        if work < 2 * TOKENS and _holds_tables(tokens, environments, place):
            continue
        end = each.end
        where = source.lines[tokens[each.begin].line].where
        table = _read_table(tokens[each.inner : end], each.name, where, source, types)
        table.floating, table.section = each.number, section
        if each.number:
            table.caption, table.label = each.captions, each.labels
        tables.append(table)
    for place, each in enumerate(environments):
        if each.name in FLOATS and each.number not in floats:
            floats.add(each.number)
            contents = _name_contents(environments, place)
            refuse(each, f"it has no tabular, but {', '.join(contents[:5]) or 'what no file of the paper has'}")
    return tables, unread


def _looks_like_table(tokens: Sequence[Token]) -> bool:
    """Whether an environment has cells, a rule and digits of its own: a matrix has no rule."""
    commands = {token.text for token in tokens if token.kind == "command"}
    return (
        not {"begin", "includegraphics"} & commands
        and any(map(_is_rule, commands - _SPACING))
        and any(token[:2] == ("sign", "&") for token in tokens)
        and any(any(map(str.isdigit, token.text)) for token in tokens)
    )


def _say_condition(verb: str, token: Token, source: Source) -> str:
    return f"it {verb} a condition (\\{token.text}, {source.lines[token.line].where}), which is not evaluated"


def _name_contents(environments: Sequence[Environment], place: int) -> list[str]:
    """What the floating table at that place has in the place of a tabular."""
    following = (environments[n] for n in range(place, len(environments)))
    inside = list(takewhile(lambda each: each.number == environments[place].number, following))
    names = dict.fromkeys(f"\\begin{{{each.name[:40]}}}" for each in inside if not each.name.startswith(_LAYOUT))
    return ["a picture"] * any(each.pictures for each in inside) + list(names)


def _holds_tables(tokens: list[Token], environments: Sequence[Environment], place: int) -> bool:
    """Whether the tabular at that place lays out other ones: one of those inside of it has cells of its own."""
    end = environments[place].end or 0
    following = (environments[n] for n in range(place + 1, len(environments)))
    read_end = 0
    for each in takewhile(lambda each: each.begin < end, following):
        if each.name in ENVIRONMENTS and each.begin >= read_end:  # those inside of it are read with it
            read_end = each.end or end
            if any(token[:2] == ("sign", "&") for token in tokens[each.inner : read_end]):
                return True
    return False


def _read_table(tokens: list[Token], name: str, where: str, source: Source, types: dict[str, str]) -> ReadTable:
    """Split the tokens of a tabular, from its arguments on, into rows."""
    table = ReadTable(where=where, kind=name)
    try:
        tokens = settle_conditions(tokens)
    except OpenCondition as error:
        table.problem = _say_condition("has", error.args[0], source)
        return table
    spec, place = _read_format(tokens, name)
    table.columns = find_columns(spec, types)
    ruled = {
        int(row) for rows in re.findall(r"hline\s*\{([^{}]*)\}", spec) for row in re.findall(r"\b[1-9]\d?\b", rows)
    }
    row: list[ReadCell] = []
    cell: list[Token] = []
    depth, nested, group_number, parted = 0, 0, 0, False
    heads: dict[str, list[list[ReadCell]]] = {}
    page = 0

    def end_cell(line: int) -> None:
        first = next((token.line for token in cell if token.kind != "space"), line)
        row.append(
            read_cell(
                list(cell), source.lines[first].where, sum(each.columns for each in row) in table.columns.uncertain
            )
        )
        cell.clear()
        if name in _FILLED and not row[-1].content.text and row[-1].columns == 1:
            over = next((n for n in range(2, len(row) + 1) if row[-n].content.text or row[-n].columns > 1), 0)
            if over and row[-over].spans >= over:
                row[-over].columns += 1
                row.pop()

    def end_row(line: int) -> None:
        nonlocal parted, group_number
        end_cell(line)
        row[-1].columns = max(row[-1].columns, row[-1].spans)
        if len(row) > 1 or row[0].content.text or row[0].columns > 1:
            if len(table.rows) + 1 in ruled:
                part()
            if parted and table.rows:
                group_number += 1
            parted = False
            table.rows.append(list(row))
            table.groups.append(group_number)
        row.clear()

    def part() -> None:
        nonlocal parted
        parted = True
        table.head = table.head or len(table.rows)

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
        elif outside and kind == "command" and _is_rule(text) and not any(part.kind != "space" for part in cell):
            if text == "bottomrule":
                parted = True
            elif text in PARTING or text not in RULES:
                part()
            place = _skip_rule(tokens, place, text)
        elif outside and kind == "command" and text == "CodeAfter":
            break
        elif cell or kind != "space":
            cell.append(token)
        if cells > CELLS or len(row) > COLUMNS:
            table.problem = f"more than {CELLS} cells or {COLUMNS} columns"
            return table
    if any(part.kind != "space" for part in cell) or row:
        end_row(line)
    return table


def _is_rule(name: str) -> bool:
    """Whether a command is a rule: a known one, or by its name one of the paper's own style."""
    return name in RULES or (name != "rule" and re.fullmatch("[A-Za-z]*(?:hline|rule)", name) is not None)


def _read_format(tokens: list[Token], name: str) -> tuple[str, int]:
    """What stands between the name of a table and its rows, as text: the format of its columns; and where it ends."""
    place = 0
    if name in _TABU:  # "to \\linewidth" before the columns
        place = next((n for n, token in enumerate(tokens[:NAME]) if token[:2] == ("sign", "{")), 0)
    spec: list[Token] = []
    _, place = option(tokens, place)
    for _ in range(ENVIRONMENTS[name]):
        spec, place = group(tokens, place)
        _, place = option(tokens, place)
    if tokens[after_space(tokens, place) : after_space(tokens, place) + 1] and name in _FILLED:
        first = tokens[after_space(tokens, place)]
        if first[:2] == ("command", "CodeBefore"):
            place = next((n + 1 for n in range(place, len(tokens)) if tokens[n][:2] == ("command", "Body")), place)
    return write_format(spec), place


def _skip_rule(tokens: list[Token], place: int, name: str) -> int:
    """The place after what a rule takes: [..], (..) and braces."""
    _, place = option(tokens, place)
    begin = after_space(tokens, place)
    if begin < len(tokens) and tokens[begin].kind == "text" and tokens[begin].text.startswith("("):
        end = min(len(tokens), begin + NAME)
        while begin < end and ")" not in tokens[begin].text:
            begin += 1
        if begin < end:
            text_after = tokens[begin].text.partition(")")[2]
            tokens[begin] = tokens[begin]._replace(text=text_after)
            place = begin
    for _ in range(RULES.get(name, 0)):
        if place < len(tokens) and tokens[place].text == "" and tokens[place].kind == "text":
            place += 1
        _, place = group(tokens, place)
    return skip_options(tokens, place) if RULES.get(name, 0) else place
