"""Parses the expressions of an audit file: numbers, cells, columns, signs and named functions, and nothing else.

    check     = sum ("=" | "<" | ">") sum
    sum       = product {("+" | "-") product}
    product   = signed {("*" | "/") signed}
    signed    = "-" signed | atom ["**" signed]
    atom      = number | "(" sum ")" | function "(" argument {"," argument} ")" | reference
    argument  = sum [("<" | ">") sum]
    reference = name | name "." name "." name ["." part] | name "[" rows "]" "." name ["." part]
                | name "." name "[" columns "]"
    rows      = ":" | "others" | ["not"] name {"," name}
    part      = "sd" | "brackets"

`others`: all rows but the one for which the check is made. A name is letters (a to z), digits and `_`, or anything in
quotes.

Python's own parser makes the tree, of which only the kinds of nodes that are named here are taken: nothing is executed.
Length and nesting are bounded.
"""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from typing import Never

from plumbline.audit.paper.printed_cell import PARTS
from plumbline.core.errors import UsageError, nearest

#: Most characters and signs of an expression, and how deep it may nest.
LENGTH, SIGNS, DEPTH = 2_000, 200, 40

#: Appended to messages where a name may have been meant.
EXPECTED = "a number, a cell, a column or a function is expected"
QUOTES = 'a name of more than the letters a to z, digits and _ stands in quotes: table."GPT-2 small"."Δ"'

_TOKEN = re.compile(
    r"(?P<word>[A-Za-z0-9_]+)|(?P<quote>\"(?:[^\"\\]|\\.)*\"|'[^']*')|(?P<open>[(\[])|(?P<close>[)\]])"
    r"|(?P<equal>=)|(?P<sign>[-+*/<>])|[.,:\s]"
)
_NUMBER = re.compile(r"(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.Lt: "<", ast.Gt: ">",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: what it is, and where it begins (characters, counted from 1)."""

    position: int


@dataclass(frozen=True, slots=True)
class NumberNode(Node):
    """A number, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class SignNode(Node):
    """Two expressions and the sign between them, or one with `neg` before it (`right` is None)."""

    sign: str
    left: Node
    right: Node | None


@dataclass(frozen=True, slots=True)
class CallNode(Node):
    """A named function and its arguments."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ChoiceNode(Node):
    """Names in brackets: all (":"), these, all but these ("not"), or all but the check's own ("others")."""

    kind: str
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """The choice as it is written."""
        if self.kind in ("all", "others"):
            return ":" if self.kind == "all" else "others"
        return ("not " if self.kind == "not" else "") + ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class ReferenceNode(Node):
    """A number by its name alone, a cell, a column of several rows, or a row of several columns."""

    table: str
    row: str | ChoiceNode | None = None
    column: str | ChoiceNode | None = None
    part: str = ""


def parse_check(text: str, where: str) -> tuple[Node, str, Node]:
    """Parse a check: its left side, the relation, and its right side.

    Args:
        text: the check.
        where: the file and key, which begin the message of an error.

    Raises:
        UsageError: it is not a check; the position is named.
    """
    return _Parser(text, where).check()


class _Parser:
    """Makes the nodes of one text from Python's tree of it."""

    def __init__(self, text: str, where: str) -> None:
        self.where, self.text, self.sign = where, text, ""
        if len(text) > LENGTH:
            raise UsageError(f"{where}: {len(text)} characters; an expression has at most {LENGTH}")
        #: Names that Python would not read as such, by the place where they end: in quotes, or words of Python's own.
        self.names: dict[int, str] = {}
        self.source = self._write_python()

    def fail(self, place: int | ast.AST, message: str) -> Never:
        position = place if isinstance(place, int) else getattr(place, "col_offset", 1)
        raise UsageError(f"{self.where}, character {position}: {message}")

    def _write_python(self) -> str:
        """The text for Python's parser, in round brackets and otherwise place by place: names as letters, a blank for
        each blank, < for =."""
        pieces, depth, signs, end, kind = ["("], 0, 0, 0, ""
        while end < len(self.text):
            match, previous_kind = _TOKEN.match(self.text, end), kind
            if match is None:
                self.fail(end + 1, f"{self.text[end]!r} has no meaning in an expression; {QUOTES}")
            piece, kind, begin, end = match[0], match.lastgroup or "", match.start(), match.end()
            depth += (kind == "open") - (kind == "close")
            signs += kind == "sign"
            if signs > SIGNS:
                self.fail(begin + 1, f"an expression has at most {SIGNS} signs")
            if depth > DEPTH:
                self.fail(begin + 1, f"brackets or signs nest deeper than {DEPTH}")
            if depth < 0 or (kind == "equal" and (depth or self.sign)):
                self.fail(begin + 1, f"nothing may follow here, and {piece!r} does")
            if piece[0].isdigit() and not re.fullmatch(r"\d+(?:[eE]\d*)?", piece):
                self.fail(begin + 1, f"{piece!r} is neither a number nor a name; {QUOTES}")
            if kind == "equal":
                self.sign, piece = "=", "<"
            elif kind == "quote" or (
                keyword.iskeyword(piece) and not (piece == "not" and "".join(pieces).rstrip().endswith("["))
            ):
                if previous_kind in ("word", "quote"):
                    self.fail(begin + 1, f"a sign is expected before {piece!r}")
                name = re.sub(r"\\(.)", r"\1", piece[1:-1]) if piece[0] == '"' else piece.strip("'")
                piece = "_" * len(piece)
                self.names[end + 1] = name
            if previous_kind == "quote" and kind == "word":
                self.fail(begin + 1, f"a sign is expected before {piece!r}")
            pieces.append(piece if piece.strip() else " ")
        if depth:
            self.fail(len(self.text) + 1, "a bracket is not closed before the end")
        return "".join(pieces) + ")"

    def check(self) -> tuple[Node, str, Node]:
        try:
            tree = ast.parse(self.source, mode="eval").body
        except SyntaxError as error:
            self.fail(max(1, (error.offset or 2) - 1), EXPECTED)
        except (RecursionError, MemoryError):
            self.fail(1, f"brackets or signs nest deeper than {DEPTH}")
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in _SIGNS:
            self.fail(len(self.text) + 1, "a check is two sides with =, < or > between them")
        sign = self.sign or _SIGNS[type(tree.ops[0])]
        return self.node(tree.left, 0), sign, self.node(tree.comparators[0], 0)

    def node(self, tree: ast.expr, depth: int, *, compares: bool = False) -> Node:
        if depth > DEPTH:
            self.fail(tree, f"brackets or signs nest deeper than {DEPTH}")
        position = tree.col_offset
        match tree:
            case ast.Constant() if _NUMBER.fullmatch(number := self.source[position : tree.end_col_offset]):
                return NumberNode(position, number)
            case ast.UnaryOp(op=ast.USub()):
                return SignNode(position, "neg", self.node(tree.operand, depth + 1), None)
            case ast.BinOp() if type(tree.op) in _SIGNS:
                # A sum of many is no deeper than its first: Python nests it to the left.
                left = self.node(tree.left, depth)
                return SignNode(position, _SIGNS[type(tree.op)], left, self.node(tree.right, depth + 1))
            case ast.Compare(ops=[op], comparators=[right]) if compares and type(op) in _SIGNS:
                return SignNode(position, _SIGNS[type(op)], self.node(tree.left, depth), self.node(right, depth))
            case ast.Call(func=ast.Name(id=name), keywords=[]) if tree.func.end_col_offset not in self.names:
                arguments = tuple(self.node(each, depth + 1, compares=True) for each in tree.args)
                return CallNode(position, name, arguments)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.reference(tree)
        self.fail(tree, EXPECTED)

    def reference(self, tree: ast.expr) -> Node:
        parts: list[str | ChoiceNode] = []
        below = tree
        while not isinstance(below, ast.Name):
            if len(parts) > 3 or not isinstance(below, ast.Attribute | ast.Subscript):
                self.fail(below, EXPECTED)
            parts.append(self.name(below) if isinstance(below, ast.Attribute) else self.choice(below.slice))
            below = below.value
        match self.name(below), *reversed(parts):
            case [str(table)]:
                return ReferenceNode(tree.col_offset, table)
            case [str(table), str(row)]:
                return ReferenceNode(tree.col_offset, table, row)
            case [str(table), str() | ChoiceNode() as row, str() | ChoiceNode() as column, *part] if isinstance(
                row, str
            ) or isinstance(column, str):
                if part and part[0] not in PARTS:
                    near = nearest(str(part[0]), PARTS)
                    self.fail(tree, f"a cell has the parts {' and '.join(PARTS)}, not {part[0]!r}{near}")
                return ReferenceNode(tree.col_offset, table, row, column, str(part[0]) if part else "")
            case [str(table), ChoiceNode() as row, ChoiceNode(), *_]:
                self.fail(
                    tree,
                    "rows and columns are not chosen together; name the columns one by one, "
                    f'sample_sd({table}[{row.text}]."Seed 1", {table}[{row.text}]."Seed 2"), '
                    f'or take one row, {table}.ROW["Seed 1", "Seed 2"]',
                )
        self.fail(tree, f"a column is expected after the rows; {QUOTES}")

    def choice(self, tree: ast.expr) -> ChoiceNode:
        position = tree.col_offset
        match tree:
            case ast.Slice(lower=None, upper=None, step=None):
                return ChoiceNode(position, "all", ())
            case ast.Name(id="others") if tree.end_col_offset not in self.names:
                return ChoiceNode(position, "others", ())
        first, *other_trees = tree.elts if isinstance(tree, ast.Tuple) and tree.elts else [tree]
        kind = "these"
        if isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.Not):
            kind, first = "not", first.operand
        return ChoiceNode(position, kind, tuple(map(self.name, (first, *other_trees))))

    def name(self, tree: ast.expr) -> str:
        if not isinstance(tree, ast.Name | ast.Attribute):
            self.fail(tree, f"a name is expected; {QUOTES}")
        identifier = tree.id if isinstance(tree, ast.Name) else tree.attr
        return self.names.get(tree.end_col_offset or 0, identifier)
