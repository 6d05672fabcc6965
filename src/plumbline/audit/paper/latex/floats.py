"""Finds the floating tables of a paper, and the parts of them that have a caption of their own."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.audit.paper.latex.cell_text import cell_text
from plumbline.audit.paper.latex.tokens import Token, group, option, read_name

FLOATS = (
    "table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "longtable", "SCtable", "margintable",
    "longtblr", "longtabu", "xltabular", "supertabular", "longtable*", "ctable", "SCtable*", "floattable",
)  # fmt: skip
#: What may stand in a floating table with a caption of its own.
_PARTS = ("subtable", "minipage", "subfigure", "threeparttable", "measuredfigure")
#: Most tokens of a caption, and parts of a floating table within each other.
CAPTION, DEPTH = 2_000, 20

#: Beginnings of environments that only lay out what stands in them.
LAYOUT = tuple(
    f"\\begin{{{name}"
    for name in (*FLOATS, *_PARTS, "center", "small", "footnotesize", "adjustbox", "scriptsize", "flush", "tablenotes")
)


@dataclass(kw_only=True, slots=True)
class Float:
    """A floating table, or a part of one: where its tokens begin and end, its caption and its label."""

    name: str
    begin: int
    end: int
    number: int
    over: Float | None = None
    caption: str | None = None
    label: str | None = None

    @property
    def captions(self) -> str:
        """Its own caption, and that of what it is a part of."""
        return " / ".join(filter(None, (self.caption, self.over.captions if self.over else "")))

    @property
    def labels(self) -> str:
        """Its own label, or else that of what it is a part of."""
        return self.label or (self.over.labels if self.over else "")


def find_floats(tokens: list[Token]) -> list[Float]:
    """Every floating table and every part of one, with its caption and label."""
    floats: list[Float] = []
    inside: list[Float] = []
    number = 0
    for place, token in enumerate(tokens):
        if token.kind != "command" or token.text not in ("begin", "end", "caption", "subcaption", "label"):
            continue
        if token.text in ("begin", "end"):
            name, _ = read_name(tokens, place + 1)
            if token.text == "end" and any(each.name == name for each in inside):
                while (each := inside.pop()).name != name:
                    each.end = place
                each.end = place
            elif token.text == "begin" and ((name in FLOATS and not inside) or (name in _PARTS and inside)):
                number += not inside
                over = inside[-1] if inside else None
                floats.append(Float(name=name, begin=place, end=len(tokens), number=number, over=over))
                if len(inside) < DEPTH:
                    inside.append(floats[-1])
        elif inside:
            attribute = "label" if token.text == "label" else "caption"
            if getattr(inside[-1], attribute) is None:
                _, after = option(tokens, place + 1)
                content, _ = group(tokens[after : after + CAPTION], 0)
                written = cell_text(content).text if attribute == "caption" else "".join(part.text for part in content)
                setattr(inside[-1], attribute, written)
    return floats
