"""Finds the environments of a paper as they stand within each other, and the captions and labels in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from plumbline.audit.paper.latex.cell_text import plain_text
from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import group, option, read_name

#: Environments that float with a caption, of tables; what may stand in one with a caption of its own.
FLOATS = frozenset((
    "table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "longtable", "SCtable", "margintable",
    "longtblr", "longtabu", "xltabular", "supertabular", "longtable*", "ctable", "SCtable*", "floattable",
))  # fmt: skip
_PARTS = frozenset(("subtable", "minipage", "subfigure", "threeparttable", "measuredfigure"))
#: Commands that make a table by themselves.
COMMANDS = frozenset(("pgfplotstabletypeset", "csvreader", "csvautotabular", "DTLloaddb"))
_MARKS = frozenset(("begin", "end", "caption", "subcaption", "label", "includegraphics")) | COMMANDS
#: Most tokens of a caption, and environments within each other.
CAPTION, DEPTH = 2_000, 60


@dataclass(kw_only=True, slots=True, eq=False)
class Environment:
    """An environment: where it begins, its content begins, and it ends (None: it does not); what it stands in.

    Attributes:
        number: number of the floating table that it is or stands in, from 1; 0: it stands in none.
        pictures: whether a picture stands directly in it.
    """

    name: str
    begin: int
    inner: int
    end: int | None = None
    over: Environment | None = field(default=None, repr=False)
    number: int = 0
    caption: str | None = None
    label: str | None = None
    pictures: bool = False

    @property
    def captions(self) -> str:
        """Its own caption, and that of what it is a part of."""
        return " / ".join(filter(None, (self.caption, self.over.captions if self.over else "")))

    @property
    def labels(self) -> str:
        """Its own label, or else that of what it is a part of."""
        return self.label or (self.over.labels if self.over else "")


def find_environments(tokens: list[Token]) -> list[Environment]:
    """Every environment of a paper, and every command that makes a table, in the order of their beginnings."""
    environments: list[Environment] = []
    inside: list[Environment] = []
    floats = 0
    for place in [place for place, (kind, text, _) in enumerate(tokens) if kind == "command" and text in _MARKS]:
        text = tokens[place].text
        over = inside[-1] if inside else None
        if text == "begin":
            name, inner = read_name(tokens, place + 1)
            number = over.number if over else 0
            if not number and name in FLOATS:
                floats = number = floats + 1
            environments.append(Environment(name=name, begin=place, inner=inner, over=over, number=number))
            if len(inside) < DEPTH:
                inside.append(environments[-1])
        elif text == "end":
            name, _ = read_name(tokens, place + 1)
            if any(each.name == name for each in inside):
                while (each := inside.pop()).name != name:
                    pass
                each.end = place
        elif text in COMMANDS:
            number = over.number if over else 0
            environments.append(Environment(name=text, begin=place, inner=place, end=place, over=over, number=number))
        elif text == "includegraphics" and over:
            over.pictures = True
        else:
            _keep_caption(
                tokens, place, next((each for each in reversed(inside) if each.name in FLOATS | _PARTS), None)
            )
    return environments


def _keep_caption(tokens: list[Token], place: int, owner: Environment | None) -> None:
    """Keep the first caption, or the first label, of an environment."""
    attribute = "label" if tokens[place].text == "label" else "caption"
    if owner is None or not owner.number or getattr(owner, attribute) is not None:
        return
    _, end = option(tokens, place + 1)
    content, _ = group(tokens[end : end + CAPTION], 0)
    setattr(owner, attribute, plain_text(content) if attribute == "caption" else "".join(part.text for part in content))
