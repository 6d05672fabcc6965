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
Length and nesting are bounded; nothing is executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from plumbline.audit.paper.printed_cell import PARTS
from plumbline.core.errors import UsageError, nearest

#: Most characters of an expression, and how deep it may nest.
LENGTH, DEPTH = 2_000, 40

#: Appended to messages where a name may have been meant.
QUOTES = 'a name of more than the letters a to z, digits and _ stands in quotes: table."GPT-2 small"."Δ"'

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quote>\"(?:[^\"\\]|\\.)*\"|'[^']*')"
    r"|(?P<sign>\*\*|[-+*/()\[\].,:=<>]))"
)


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
    parser = _Parser(text, where)
    left = parser.sum(0)
    sign = parser.next
    if sign not in ("=", "<", ">"):
        parser.fail("a check is two sides with =, < or > between them")
    parser.take()
    right = parser.sum(0)
    if parser.next:
        parser.fail(f"nothing may follow here, and {parser.next!r} does")
    return left, sign, right


class _Parser:
    """Walks over the tokens of one text."""

    def __init__(self, text: str, where: str) -> None:
        self.where, self.text, self.place = where, text, 0
        if len(text) > LENGTH:
            raise UsageError(f"{where}: {len(text)} characters; an expression has at most {LENGTH}")
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                at = position + len(text[position:]) - len(text[position:].lstrip())
                raise UsageError(f"{where}, character {at + 1}: {text[at]!r} has no meaning in an expression; {QUOTES}")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind) + 1))
            position = match.end()

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else "end"

    @property
    def next(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    @property
    def position(self) -> int:
        return self.tokens[self.place][2] if self.place < len(self.tokens) else len(self.text) + 1

    def fail(self, message: str) -> None:
        raise UsageError(f"{self.where}, character {self.position}: {message}")

    def take(self, sign: str = "") -> str:
        if sign and self.next != sign:
            self.fail(f"{sign!r} is expected" + (f", and {self.next!r} is there" if self.next else " before the end"))
        self.place += 1
        return self.tokens[self.place - 1][1]

    def sum(self, depth: int) -> Node:
        left = self.product(depth)
        while self.kind == "sign" and self.next in ("+", "-"):
            position, sign = self.position, self.take()
            left = SignNode(position, sign, left, self.product(depth))
        return left

    def product(self, depth: int) -> Node:
        left = self.unary(depth)
        while self.kind == "sign" and self.next in ("*", "/"):
            position, sign = self.position, self.take()
            left = SignNode(position, sign, left, self.unary(depth))
        return left

    def unary(self, depth: int) -> Node:
        if depth > DEPTH:
            self.fail(f"brackets or signs nest deeper than {DEPTH}")
        position = self.position
        if self.kind == "sign" and self.next == "-":
            self.take()
            return SignNode(position, "neg", self.unary(depth + 1), None)
        base = self.atom(depth)
        if self.kind == "sign" and self.next == "**":
            self.take()
            return SignNode(position, "**", base, self.unary(depth + 1))
        return base

    def atom(self, depth: int) -> Node:
        position, kind = self.position, self.kind
        if kind == "number":
            return NumberNode(position, self.take())
        if kind == "sign" and self.next == "(":
            self.take()
            inner = self.sum(depth + 1)
            self.take(")")
            return inner
        if kind in ("name", "quote"):
            following = self.tokens[self.place + 1][1] if self.place + 1 < len(self.tokens) else ""
            return self.call(depth) if kind == "name" and following == "(" else self.reference()
        self.fail(
            "a number, a cell, a column or a function is expected" + (f", not {self.next!r}" if self.next else "")
        )
        raise AssertionError

    def call(self, depth: int) -> Node:
        position, name, arguments = self.position, self.take(), []
        self.take("(")
        while self.next != ")":
            arguments.append(self.argument(depth + 1))
            if self.next != ")":
                self.take(",")
        self.take(")")
        return CallNode(position, name, tuple(arguments))

    def argument(self, depth: int) -> Node:
        left = self.sum(depth)
        if self.kind == "sign" and self.next in ("<", ">"):
            position, sign = self.position, self.take()
            return SignNode(position, sign, left, self.sum(depth))
        return left

    def reference(self) -> Node:
        position, table = self.position, self.name()
        if self.next == "[":
            rows = self.choice()
            if self.next == "[":
                self.fail(
                    "rows and columns are not chosen together; name the columns one by one, "
                    f'sample_sd({table}[{rows.text}]."Seed 1", {table}[{rows.text}]."Seed 2"), '
                    f'or take one row, {table}.ROW["Seed 1", "Seed 2"]'
                )
            self.take(".")
            return ReferenceNode(position, table, rows, self.name(), self.part())
        if self.next != ".":
            return ReferenceNode(position, table)
        self.take()
        row = self.name()
        if self.next == "[":
            return ReferenceNode(position, table, row, self.choice(), self.part())
        if self.next != ".":
            return ReferenceNode(position, table, row)
        self.take()
        return ReferenceNode(position, table, row, self.name(), self.part())

    def part(self) -> str:
        if self.next != ".":
            return ""
        self.take()
        if self.next not in PARTS:
            self.fail(f"a cell has the parts {' and '.join(PARTS)}, not {self.next!r}{nearest(self.next, PARTS)}")
        return self.take()

    def choice(self) -> ChoiceNode:
        position = self.position
        self.take("[")
        if self.next == ":" and self.kind == "sign":
            self.take()
            self.take("]")
            return ChoiceNode(position, "all", ())
        if (
            self.kind == "name"
            and self.next == "others"
            and self.tokens[self.place + 1 : self.place + 2] == [("sign", "]", self.position + 6)]
        ):
            self.take()
            self.take("]")
            return ChoiceNode(position, "others", ())
        kind = "these"
        if self.kind == "name" and self.next == "not":
            self.take()
            kind = "not"
        names = [self.name()]
        while self.next == ",":
            self.take()
            names.append(self.name())
        self.take("]")
        return ChoiceNode(position, kind, tuple(names))

    def name(self) -> str:
        if self.kind == "quote":
            text = self.take()
            return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]
        if self.kind not in ("name",):
            self.fail(f"a name is expected; {QUOTES}")
        return self.take()
