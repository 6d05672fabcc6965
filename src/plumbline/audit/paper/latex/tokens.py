"""Splits LaTeX into tokens and replaces the paper's own simple macros by their text. Work and depth are bounded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.audit.paper.latex.branches import Branches, Stack
from plumbline.audit.paper.latex.source_files import Source
from plumbline.audit.paper.latex.token import Token

#: Most tokens of a paper after its macros are replaced, how deep they nest, and tokens of one macro.
TOKENS, DEPTH, BODY = 600_000, 20, 2_000

#: Most tokens of an environment's name, and of what stands in [...]; commands that do not stand in it.
NAME, OPTION = 40, 500
_PARTING = frozenset(("begin", "end", "\\", "section", "subsection", "paragraph", "item", "par"))

#: Most tokens of a macro with its arguments.
FILLED = 100_000

_TOKEN = re.compile(r"\\[a-zA-Z@]+\*?[ \t]*\n?|\\.|[{}&$^_~#]|[^\\{}&$^_~#\s]+|\s+", re.DOTALL)
_DEFINES = (
    "newcommand",
    "renewcommand",
    "providecommand",
    "newcommand*",
    "renewcommand*",
    "providecommand*",
    "DeclareRobustCommand",
    "def",
    "gdef",
    "DeclareMathOperator",
    "DeclareMathOperator*",
)
#: Beginnings of the names of environments that an environment of the paper's own is replaced by.
_TABLES = ("tabular", "longtable", "tabu", "tblr", "NiceTabular", "xltabular", "supertabular", "table", "longtblr")


@dataclass(frozen=True, slots=True)
class _Macro:
    """A macro: how many arguments it takes, what the first is if it is optional, and its text."""

    takes: int
    default: tuple[Token, ...] | None
    body: tuple[Token, ...]


def read_tokens(source: Source) -> list[Token]:
    """The tokens of a paper, with its own macros replaced. What is not replaced is listed in `source.not_read`."""
    tokens: list[Token] = []
    parts: dict[str, tuple[str, str]] = {}
    make = tuple.__new__  # as Token(...) does, which takes twice the time
    for number, line in enumerate(source.lines):
        for piece in _TOKEN.findall(line.text):
            if piece not in parts:
                parts[piece] = _name_kind(piece)
            kind, text = parts[piece]
            tokens.append(make(Token, (kind, text, number)))
        if len(tokens) > TOKENS:
            source.not_read.append(f"{line.where}: the paper is longer than {TOKENS} tokens; the rest is not read")
            break
    return _expand_macros(tokens, source)


def _name_kind(piece: str) -> tuple[str, str]:
    """The kind of a token and its text: a command is without its backslash and the blanks after it."""
    if piece[0] == "\\":
        return "command", piece[1:].rstrip(" \t\n") if piece[1].isalpha() or piece[1] == "@" else piece[1]
    return "sign" if piece in "{}&$^_~#" else "space" if piece[0].isspace() else "text", piece


def group(tokens: Sequence[Token], start: int) -> tuple[list[Token], int]:
    """The argument that begins at `start` (after blanks): the content of braces, or one token; and where it ends."""
    start = after_space(tokens, start)
    if start >= len(tokens):
        return [], start
    if tokens[start][:2] != ("sign", "{"):
        return [tokens[start]], start + 1
    depth = 0
    for place in range(start, len(tokens)):
        if tokens[place].kind == "sign":
            depth += {"{": 1, "}": -1}.get(tokens[place].text, 0)
            if depth == 0:
                return list(tokens[start + 1 : place]), place + 1
    return list(tokens[start + 1 :]), len(tokens)


def option(tokens: Sequence[Token], start: int) -> tuple[list[Token] | None, int]:
    """The optional argument [...] that begins at `start` (after blanks), or None; and where it ends."""
    begin = after_space(tokens, start)
    if begin >= len(tokens) or tokens[begin].kind != "text" or not tokens[begin].text.startswith("["):
        return None, start
    depth, inner = 0, []
    for place in range(begin, min(len(tokens), begin + OPTION)):
        token = tokens[place]
        if token.kind == "sign":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        if depth < 0 or (depth == 0 and token.kind == "command" and token.text in _PARTING):
            break
        text = token.text[1:] if place == begin else token.text
        if token.kind == "text" and depth == 0 and "]" in text:
            before, _, rest = text.partition("]")
            inner += [Token("text", before, token.line)] * bool(before)
            if rest and isinstance(tokens, list):  # what follows the bracket in the same piece of text
                tokens[place] = Token("text", rest, token.line)
                return inner, place
            return inner, place + 1
        if text:
            inner.append(Token(token.kind, text, token.line))
    return None, start


def after_space(tokens: Sequence[Token], start: int) -> int:
    """The place of the first token from `start` on that is not a blank."""
    while start < len(tokens) and tokens[start].kind == "space":
        start += 1
    return start


def read_name(tokens: list[Token], place: int) -> tuple[str, int]:
    """The name in braces that begins at `place`, such as that of an environment; and where it ends."""
    # Only so far: a brace that does not close would be looked for in all of the paper, again and again.
    begin = after_space(tokens, place)
    inner, end = group(tokens[begin : begin + NAME], 0)
    return "".join(token.text for token in inner), begin + end


def _expand_macros(tokens: list[Token], source: Source) -> list[Token]:
    macros: dict[str, _Macro] = {}
    environments: dict[str, tuple[_Macro, _Macro]] = {}
    out: list[Token] = []
    refused: set[str] = set()
    # Each entry: tokens that are still to be read, the place in them, and how deep they came from macros.
    stack: Stack = [[tokens, 0]]
    work = 0
    branches = Branches(macros)

    def character(token: Token) -> str | None:
        """The sign that a token, or the macro it calls, is."""
        body = macros[token.text].body if token.kind == "command" and token.text in macros else (token,)
        return body[0].text if len(body) == 1 and body[0].kind != "command" and body[0].text != "#" else None

    while stack:
        current, place = stack[-1]
        while place < len(current) and current[place][0] != "command" and len(out) <= TOKENS:
            out.append(current[place])
            place, work = place + 1, work + 1
        stack[-1][1] = place
        if place >= len(current):
            stack.pop()
            continue
        token = current[place]
        work += 1
        if len(out) > TOKENS or work > 2 * TOKENS:
            source.not_read.append(
                f"{source.lines[token.line].where}: macros make the paper too long; the rest is not read"
            )
            break
        if token.text in _DEFINES:
            stack[-1][1] = _define(current, place, macros)
        elif token.text == "newcolumntype":  # a condition in it is one of the column's cells
            _, end = group(current, place + 1)
            _, end = option(current, end)
            _, end = group(current, end)
            out += current[place:end]
            stack[-1][1] = end
        elif token.text in ("newenvironment", "newenvironment*", "renewenvironment"):
            stack[-1][1] = _define_environment(current, place, environments)
        elif token.text in ("begin", "end") and (ends := environments.get(read_name(current, place + 1)[0])):
            macro, end = ends[token.text == "end"], read_name(current, place + 1)[1]
            arguments, end = _read_arguments(current, end, macro)
            stack[-1][1] = end
            if len(stack) > DEPTH:
                refused.add(token.text)
            else:
                stack.append([_fill_macro(macro, arguments, token.line), 0])
        elif token.text in macros and token.text not in refused:
            macro = macros[token.text]
            if len(stack) > DEPTH:
                refused.add(token.text)
                source.not_read.append(
                    f"{source.lines[token.line].where}: the macro \\{token.text} nests deeper than {DEPTH}"
                )
                continue
            arguments, end = _read_arguments(current, place + 1, macro)
            if len(macro.body) * (1 + max((len(argument) for argument in arguments), default=0)) > FILLED:
                refused.add(token.text)
                source.not_read.append(f"{source.lines[token.line].where}: the macro \\{token.text} is too long here")
                continue
            stack[-1][1] = end
            stack.append([_fill_macro(macro, arguments, token.line), 0])
        elif not branches.follow(stack, out, character):
            out.append(token)
            stack[-1][1] = place + 1
    source.not_read += [f"{source.lines[line].where}: {note}" for line, note in branches.notes]
    return out


def _define(tokens: list[Token], place: int, macros: dict[str, _Macro]) -> int:
    """Keep a definition, and return where it ends; one that is not simple is left out, and its command then unknown."""
    kind = tokens[place].text
    name, place = group(tokens, place + 1)
    name = [token for token in name if token.kind != "space"]
    takes, default = 0, None
    if kind in ("def", "gdef"):
        begin = place
        while place < len(tokens) and tokens[place][:2] != ("sign", "{") and place - begin < 20:
            takes += tokens[place][:2] == ("sign", "#")
            place += 1
        simple = all(
            (token.kind == "sign" and token.text == "#") or token.text.isdigit() for token in tokens[begin:place]
        )
    else:
        count, place = option(tokens, place)
        count_text = "".join(token.text for token in count or ())
        takes, simple = int(count_text) if count_text.isdigit() and len(count_text) == 1 else 0, True
        optional, place = option(tokens, place)
        default = tuple(optional) if optional is not None else None
    body, place = group(tokens, place)
    if simple and len(name) == 1 and name[0].kind == "command" and len(body) <= BODY and takes <= 9:
        macros[name[0].text] = _Macro(takes, default, tuple(body))
    return place


def _define_environment(tokens: list[Token], place: int, environments: dict[str, tuple[_Macro, _Macro]]) -> int:
    """Keep an environment in which a table begins, and return where its definition ends."""
    name, place = read_name(tokens, place + 1)
    count, place = option(tokens, place)
    count_text = "".join(token.text for token in count or ())
    default, place = option(tokens, place)
    begin, place = group(tokens, place)
    end, place = group(tokens, place)
    tables = [read_name(begin, n + 1)[0] for n, token in enumerate(begin[:BODY]) if token[:2] == ("command", "begin")]
    if len(begin) + len(end) <= BODY and len(count_text) <= 1 and any(table.startswith(_TABLES) for table in tables):
        takes = int(count_text) if count_text.isdigit() else 0
        first = None if default is None else tuple(default)
        environments[name] = _Macro(takes, first, tuple(begin)), _Macro(0, None, tuple(end))
    return place


def _read_arguments(tokens: list[Token], place: int, macro: _Macro) -> tuple[list[list[Token]], int]:
    arguments: list[list[Token]] = []
    if macro.default is not None:
        first, place = option(tokens, place)
        arguments.append(list(macro.default) if first is None else first)
    while len(arguments) < macro.takes:
        argument, place = group(tokens, place)
        arguments.append(argument)
    return arguments, place


def _fill_macro(macro: _Macro, arguments: list[list[Token]], line: int) -> list[Token]:
    """The text of a macro with its arguments in place of #1, #2, ..."""
    tokens: list[Token] = []
    body, place = macro.body, 0
    while place < len(body):
        token = body[place]
        if token[:2] == ("sign", "#") and place + 1 < len(body) and body[place + 1].text[:1].isdigit():
            digit, rest = body[place + 1].text[0], body[place + 1].text[1:]
            number = int(digit) if digit.isascii() else 0
            if 1 <= number <= len(arguments):
                tokens += arguments[number - 1]
            if rest:
                tokens.append(Token("text", rest, line))
            place += 2
        else:
            tokens.append(token._replace(line=line))
            place += 1
    return tokens
