"""Follows the conditions of a paper's LaTeX as TeX does, where they are decided: what cannot be printed is left out."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from plumbline.audit.paper.latex.token import Token

#: Conditions of TeX that a brace may follow; others that one follows take their branches in braces, and have no \\fi.
_BEFORE_BRACES = frozenset(("iftrue", "iffalse", "ifmmode", "ifhmode", "ifvmode", "ifinner"))
#: Commands that print nothing which could be the digit that \\if0 compares with.
_NO_SIGNS = frozenset(("begin", "end", "section", "subsection", "paragraph", "par", "newpage", "clearpage"))

#: Lists of tokens that are still to be read, each with the place in it: the last is that of the innermost macro.
Stack = list[list]  # type: ignore[type-arg]


def begins_condition(tokens: Sequence[Token], place: int, switches: Container[str] = ()) -> bool:
    """Whether the command at that place begins a condition which a \\fi ends; `switches`: those that \\newif made."""
    name = tokens[place].text
    if not name.startswith("if") or name == "iff":
        return False
    braces = place + 1 < len(tokens) and tokens[place + 1][:2] == ("sign", "{")
    return not braces or name in _BEFORE_BRACES or name in switches


class Branches:
    """The conditions that are open at a place of a paper, and how the switches of \\newif are set there."""

    def __init__(self) -> None:
        """Begin outside of all conditions."""
        self.switches: dict[str, bool | None] = {"iftrue": True, "iffalse": False}
        self._decided: list[bool] = []  # of each open condition, whether it is known which branch is printed
        self._undecided = self._depth = self._counted = 0

    def follow(self, stack: Stack, out: Sequence[Token], character: Callable[[Token], str | None]) -> bool:
        """Pass over the command at the stack's place if it decides what is printed; False: it is text like others.

        Args:
            stack: what is to be read.
            out: what was read; a switch that is set within braces of it is restored at their end.
            character: the sign that a token is or a macro stands for, if it is only one.
        """
        tokens, place = stack[-1]
        name = tokens[place].text
        if not name.startswith(("if", "else", "fi", "newif", "let")) and not name.endswith(("true", "false")):
            return False
        if name in ("newif", "let"):
            return self._define(stack, name)
        for ending in ("true", "false"):
            if name.endswith(ending) and (switch := f"if{name.removesuffix(ending)}") in self.switches:
                sure = not self._undecided and not self._within_braces(out)
                self.switches[switch] = ending == "true" if sure else None
                stack[-1][1] += 1
                return True
        if name in ("else", "fi"):
            if not self._decided or not self._decided[-1]:
                self._undecided -= name == "fi" and bool(self._decided) and not self._decided.pop()
                return False
            stack[-1][1] += 1
            while name == "else" and self._skip(stack) == "else":
                pass
            self._decided.pop()
            return True
        if not begins_condition(tokens, place, self.switches):
            return False
        value, end = self._decide(tokens, place, character)
        if value is None:
            self._decided.append(False)
            self._undecided += 1
            return False
        stack[-1][1] = end
        if value or self._skip(stack) == "else":
            self._decided.append(True)
        return True

    def _define(self, stack: Stack, name: str) -> bool:
        """Make a switch, by \\newif\\iflong or \\let\\iflong\\iftrue."""
        tokens, place = stack[-1]
        new = tokens[place + 1] if place + 1 < len(tokens) else None
        if new is None or new.kind != "command" or not new.text.startswith("if"):
            return False
        end = place + 2
        if name == "let":
            end += end < len(tokens) and tokens[end].text == "="
            self.switches[new.text] = self.switches.get(tokens[end].text) if end < len(tokens) else None
            end += 1
        else:
            self.switches[new.text] = False
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
                other = place + 1 < len(tokens) and tokens[place + 1].text in _NO_SIGNS
                return (False if other else None), place + 1
            first += second
        if first[0] == first[1]:  # what follows the two signs in the same piece of text is printed
            tokens[place + 1] = tokens[place + 1]._replace(kind="text", text=first[2:])
        return first[0] == first[1], place + 1

    def _skip(self, stack: Stack) -> str:
        """Skip to the \\else or \\fi that ends a branch, and return which; macros in it are not replaced."""
        depth = 0
        while stack:
            tokens, begin = stack[-1]
            for place in range(begin, len(tokens)):
                kind, text, _ = tokens[place]
                if kind != "command":
                    continue
                if depth == 0 and text in ("else", "fi"):
                    stack[-1][1] = place + 1
                    return str(text)
                depth += begins_condition(tokens, place, self.switches) - (text == "fi")
            stack.pop()
        return "fi"

    def _within_braces(self, out: Sequence[Token]) -> bool:
        for kind, text, _ in out[self._counted :]:
            self._depth += kind == "sign" and {"{": 1, "}": -1}.get(text, 0)
        self._counted = len(out)
        return self._depth > 0
