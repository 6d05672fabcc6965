"""Follows the conditions of a paper's LaTeX as TeX does, where they are decided: what cannot be printed is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence

from plumbline.audit.paper.latex.token import Token

#: Conditions of TeX that a brace may follow; others that one follows take their branches in braces, and have no \\fi.
_BEFORE_BRACES = frozenset(("iftrue", "iffalse", "ifmmode", "ifhmode", "ifvmode", "ifinner"))
#: Conditions of etoolbox, \\ifdef\\name{one branch}{the other}, which have no \\fi either; \\ifdefined has.
_WITH_BRANCHES = re.compile(r"ifdef(?!ined$)\w*|ifundef")
#: Commands that print nothing which could be the digit that \\if0 compares with.
_NO_SIGNS = frozenset(("begin", "end", "section", "subsection", "paragraph", "par", "newpage", "clearpage"))

#: Switches that nothing sets.
_CONSTANT = ("iftrue", "iffalse")
#: What sets a switch by its name; and the beginning of a table.
_SETTING = re.compile(
    r"\\(?:setbool(?:ean)?\s*\{([^{}]*)\}\s*\{([^{}]*)\}|bool(true|false)\s*\{([^{}]*)\}|"
    r"csname\s*((?:(?!\\endcsname)[^{}])*?)(true|false)\\endcsname)"
)
_TABLE = re.compile(r"\{((?:long|wrap|side)?tab[a-zA-Z]*)")

#: Lists of tokens that are still to be read, each with the place in it: the last is that of the innermost macro.
Stack = list[list]  # type: ignore[type-arg]


def begins_condition(
    tokens: Sequence[Token], place: int, switches: Container[str] = (), macros: Container[str] = ()
) -> bool:
    """Whether the command at that place begins a condition which a \\fi ends.

    Args:
        tokens: the paper's.
        place: of the command.
        switches: those that \\newif made.
        macros: the paper's own, which begin none: "\\ifeval" may print the name of a benchmark.
    """
    name = tokens[place].text
    if name in switches:
        return True
    if not name.startswith("if") or name == "iff" or name in macros or _WITH_BRANCHES.fullmatch(name):
        return False
    braces = place + 1 < len(tokens) and tokens[place + 1][:2] == ("sign", "{")
    return not braces or name in _BEFORE_BRACES


def _join(tokens: Sequence[Token]) -> str:
    return "".join("\\" * (token.kind == "command") + token.text for token in tokens)


class Branches:
    """The conditions that are open at a place of a paper, and how the switches of \\newif are set there."""

    def __init__(self, macros: Container[str] = ()) -> None:
        """Begin outside of all conditions.

        Args:
            macros: the paper's own, as far as they are defined.
        """
        self.switches: dict[str, bool | None] = {"iftrue": True, "iffalse": False}
        self._macros = macros
        self.notes: list[tuple[int, str]] = []  # lines at which something is left out that may be missed, and what
        self._decided: list[str] = []  # the name of each open condition of which it is known what is printed, or ""
        self._undecided = self._depth = self._counted = 0

    def follow(self, stack: Stack, out: list[Token], character: Callable[[Token], str | None]) -> bool:
        """Pass over the command at the stack's place if it decides what is printed; False: it is text like others.

        Args:
            stack: what is to be read.
            out: what was read; a switch that is set within braces of it is restored at their end.
            character: the sign that a token is or a macro stands for, if it is only one.
        """
        tokens, place = stack[-1]
        name = tokens[place].text
        if name in ("setboolean", "setbool", "booltrue", "boolfalse", "csname"):
            self._read_setting(stack, out)
            return False
        if not name.startswith(("if", "else", "fi", "newif", "let")) and not name.endswith(("true", "false")):
            return False
        if name in ("newif", "let"):
            return self._define(stack, name)
        for ending in ("true", "false"):
            if name.endswith(ending) and (switch := f"if{name.removesuffix(ending)}") in self.switches:
                self._set(switch, ending, out)
                stack[-1][1] += 1
                return True
        if name in ("else", "fi"):
            if not self._decided or not self._decided[-1]:
                self._undecided -= name == "fi" and bool(self._decided) and not self._decided.pop()
                return False
            stack[-1][1] += 1
            condition = self._decided.pop()
            while name == "else" and self._skip(stack, condition) == "else":
                pass
            return True
        if not begins_condition(tokens, place, self.switches):
            return False
        value, end = self._decide(tokens, place, character)
        if value is not None and out and out[-1][:2] == ("command", "unless"):
            out.pop()
            self._counted = min(self._counted, len(out))
            value = not value
        if value is None:
            self._decided.append("")
            self._undecided += 1
            return False
        stack[-1][1] = end
        if value or self._skip(stack, name) == "else":
            self._decided.append(name)
        return True

    def _define(self, stack: Stack, name: str) -> bool:
        """Make a switch, by \\newif\\iflong or \\let\\iflong\\iftrue."""
        tokens, place = stack[-1]
        switch = tokens[place + 1] if place + 1 < len(tokens) else None
        if switch is None or switch.kind != "command" or not switch.text.startswith("if"):
            return False
        end = place + 2
        if name == "let":
            end += end < len(tokens) and tokens[end].text == "="
            self.switches[switch.text] = self.switches.get(tokens[end].text) if end < len(tokens) else None
            end += 1
        else:
            self.switches[switch.text] = False
        stack[-1][1] = end
        return True

    def _decide(
        self, tokens: list[Token], place: int, character: Callable[[Token], str | None]
    ) -> tuple[bool | None, int]:
        """Whether a condition holds, None if that is not known; and where its first branch begins."""
        if tokens[place].text != "if":
            return self.switches.get(tokens[place].text), place + 1
        first = character(tokens[place + 1]) if place + 1 < len(tokens) else None
        if not first:
            return None, place + 1
        if len(first) == 1:
            place += 1
            second = character(tokens[place + 1]) if place + 1 < len(tokens) else None
            if not second:
                is_no_sign = place + 1 < len(tokens) and tokens[place + 1].text in _NO_SIGNS
                return (False if is_no_sign else None), place + 1
            first += second
        if first[0] == first[1]:  # what follows the two signs in the same piece of text is printed
            tokens[place + 1] = tokens[place + 1]._replace(kind="text", text=first[2:])
        return first[0] == first[1], place + 1

    def _skip(self, stack: Stack, condition: str) -> str:
        """Skip to the \\else or \\fi that ends a branch, and return which; macros in it are not replaced."""
        depth = 0
        first = stack[-1][0][stack[-1][1] - 1].line
        table = None if condition in _CONSTANT else ""  # what is commented out is no loss
        while stack:
            tokens, begin = stack[-1]
            for place in range(begin, len(tokens)):
                kind, text, line = tokens[place]
                if kind != "command":
                    continue
                if table == "" and text == "begin" and (name := _TABLE.match(_join(tokens[place + 1 : place + 4]))):
                    table = name[1]
                    self.notes.append((line, f"{table}: \\{condition} leaves it out"))
                if depth == 0 and text in ("else", "fi"):
                    stack[-1][1] = place + 1
                    return str(text)
                depth += begins_condition(tokens, place, self.switches, self._macros) - (text == "fi")
            stack.pop()
        self.notes.append((first, f"no \\fi ends \\{condition}; nothing is read from here on"))
        return "fi"

    def _read_setting(self, stack: Stack, out: Sequence[Token]) -> None:
        """Set the switch that \\setboolean{long}{true} names; it is undecided from here on where there is no value, and
        all are where there is no name."""
        tokens, place = stack[-1]
        if match := _SETTING.match(_join(tokens[place : place + 12])):
            name, value = match[1] or match[4] or match[5], match[2] or match[3] or match[6]
            every = [switch for switch in self.switches if switch not in _CONSTANT]
            for switch in [f"if{name}"] if re.fullmatch(r"[\w@]+", name or "") else every:
                if switch in every:
                    self._set(switch, value, out)

    def _set(self, switch: str, value: str | None, out: Sequence[Token]) -> None:
        is_known = value in ("true", "false") and not self._undecided and not self._within_braces(out)
        self.switches[switch] = value == "true" if is_known else None

    def _within_braces(self, out: Sequence[Token]) -> bool:
        for kind, text, _ in out[self._counted :]:
            self._depth += kind == "sign" and {"{": 1, "}": -1}.get(text, 0)
        self._counted = len(out)
        return self._depth > 0
