"""Reads the text of a table's cell as papers print numbers: signs, units, marks, a spread or a number in brackets.

`**48.2**` is a number in bold type, `_48.2_` an underlined one: so the CSV keeps what the paper marks. What is no
number in full is words; nothing is guessed from a part of a text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal

from plumbline.published.printed_number import THOUSANDS

#: Texts of a cell in which nothing is printed.
NOTHING = frozenset(("", "-", "--", "---", "–", "—", "−", "n/a", "N/A", "n.a.", "/", "·", "..."))

#: Longest text that is read as a number.
LONGEST = 120

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d{1,20})?|\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})"
_POWER = r"(?:[eE][+-]?\d{1,2}|\s?[x×·*]\s?10\^\{?[+-]?\d{1,2}\}?)"
_NUMBER = rf"{_DIGITS}{_POWER}?"
_UNIT = r"(?:%|pp|pts?|x|×|[KkMGBT](?![a-zA-Z])|ms|s|h)"
_UP, _DOWN = "↑▲△↗⬆⇑", "↓▼▽↘⬇⇓"
_ARROW = f"[{_UP}{_DOWN}]"
_CELL = re.compile(
    rf"(?P<arrow>{_ARROW})?\s?(?P<relation>[<≤=]\s?)?(?P<sign>[+-]?)(?P<number>{_NUMBER})\s?(?P<unit>{_UNIT}?)"
    rf"(?:\s?(?:±|\+/-|\+-)\s?(?P<sd>{_NUMBER})\s?(?P<sd_unit>{_UNIT}?))?(?:\s?(?P<after>{_ARROW}))?"
    rf"(?:\s?\(\s?(?:±\s?(?P<sd_inside>{_NUMBER})|(?P<way>{_ARROW})?\s?(?P<bracket>[+-]?{_NUMBER}))"
    rf"\s?(?P<bracket_unit>{_UNIT}?)\s?(?P<way_after>{_ARROW})?\s?\)"
    # A change below or next to a value: 81.7_+0.3, 81.7 ↓0.3.
    rf"|\s?_?(?P<beside>{_ARROW}\s?{_NUMBER}|(?<=[\s_])\+{_NUMBER}|(?<=_)-{_NUMBER})\s?{_UNIT}?)?",
    re.ASCII,
)
_BRACKETED = re.compile(
    rf"\((?P<arrow>{_ARROW})?\s?(?P<sign>[+-]?)(?P<number>{_NUMBER})\s?(?P<unit>{_UNIT}?)\s?(?P<after>{_ARROW})?\)",
    re.ASCII,
)
#: Marks of footnotes after a number; digits alone only after decimals, where they are not a power.
_FOOTNOTES = re.compile(
    r"(?:\s?[*†‡§¶⋆★♣♠♦♥]+|\^\{?(?:[a-z]|\*)(?:,[a-z])*\}?|\^\{?\([a-zA-Z0-9,*]{1,5}\)\}?|(?<=\.\d)\^\{?\d\}?"
    r"|(?<=\.\d\d)\^\{?\d\}?)+$"
)
#: Signs and blanks that look like others.
_LOOKS = str.maketrans(
    {"−": "-", "–": "-", "‒": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "＋": "+", "\ufe0f": ""}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedCell:
    """A cell of a table.

    Attributes:
        text: what is printed, without marks.
        number: the number's text as `Decimal` reads it, or None if the cell holds words or nothing.
        unit: what follows the number: "%", "M", "x"; empty: nothing.
        bound: it is printed as an upper bound.
        sd: the number after a ±, or None.
        bracket: the number in brackets after the number, or None.
        bold, underlined: how it is marked.
        arrow: 1 or -1 where an arrow points up or down next to the number, else 0; in a difference it is the sign.
        leading: the arrow stands before the number.
    """

    text: str
    number: str | None = None
    unit: str = ""
    bound: bool = False
    sd: str | None = None
    bracket: str | None = None
    bold: bool = False
    underlined: bool = False
    arrow: int = 0
    leading: bool = False

    @property
    def signed(self) -> bool:
        """Whether a sign is printed with the number, as a sign or as an arrow."""
        return self.number is not None and (self.arrow != 0 or self.text.translate(_LOOKS).strip("( ")[:1] in "+-")

    def with_sign(self) -> PrintedCell:
        """The cell of a difference: an arrow downwards is a minus where no sign is printed."""
        if self.number is None or self.arrow >= 0 or self.text.strip(f"( {_DOWN}")[:1] in ("+", "-", "−", "–"):
            return self
        return replace(self, number=f"-{self.number.lstrip('-')}")

    @property
    def has_footnote(self) -> bool:
        """Whether a footnote's mark stands after the number."""
        return self.number is not None and _FOOTNOTES.search(self.text.translate(_LOOKS).strip()) is not None

    @property
    def empty(self) -> bool:
        """Whether nothing is printed in it."""
        return self.text in NOTHING

    def part(self, name: str) -> str | None:
        """The text of one of the cell's numbers: of itself (no name), its `sd`, or the one in `brackets`."""
        return {"": self.number, "sd": self.sd, "brackets": self.bracket}[name]


#: Names of a cell's other numbers in expressions.
PARTS = ("sd", "brackets")


def read_cell(text: str) -> PrintedCell:
    """Read a cell's text; a number only if all of the text is one."""
    plain, bold, underlined = _without_marks(text.strip())
    if len(plain) > LONGEST or plain in NOTHING:
        return PrintedCell(text=plain, bold=bold, underlined=underlined)
    bare = _FOOTNOTES.sub("", plain.translate(_LOOKS).strip()).strip()
    bare = bare.replace("{,}", ",").replace("\\%", "%")
    match = _CELL.fullmatch(bare) or _BRACKETED.fullmatch(bare)
    if match is None:
        return PrintedCell(text=plain, bold=bold, underlined=underlined)
    parts = defaultdict(str, {name: text or "" for name, text in match.groupdict().items()})
    sd, arrow = parts["sd"] or parts["sd_inside"], parts["arrow"] or parts["after"]
    bracket = parts["beside"] or (parts["bracket"] and f"{parts['way'] or parts['way_after']}{parts['bracket']}")
    return PrintedCell(
        text=plain,
        number=_parse_decimal(parts["sign"] + parts["number"]),
        unit=parts["unit"],
        bound=parts["relation"].strip() in ("<", "≤"),
        sd=_parse_decimal(sd) if sd else None,
        bracket=_parse_decimal(_replace_arrow(bracket)) if bracket else None,
        bold=bold,
        underlined=underlined,
        arrow=_find_way(arrow),
        leading=bool(parts["arrow"]),
    )


def _find_way(arrow: str) -> int:
    return 0 if not arrow else 1 if arrow in _UP else -1


def _replace_arrow(text: str) -> str:
    """A number with a minus in place of an arrow downwards, if it has no sign yet."""
    bare = text.lstrip(f"{_UP}{_DOWN} ")
    return f"-{bare}" if text[0] in _DOWN and bare[0] not in "+-" else bare


def apply_unit(number: str, unit: str) -> str:
    """Multiply a number by its unit, and as many digits as are printed: "1.3" B is "1.3E+9"."""
    return str(Decimal(number).scaleb(THOUSANDS.get(unit, 0)))


def mark_text(text: str, *, bold: bool, underlined: bool) -> str:
    """Write a cell's text with its marks, as `read_cell` reads it."""
    inner = f"_{text}_" if underlined and text else text
    return f"**{inner}**" if bold and text else inner


def _without_marks(text: str) -> tuple[str, bool, bool]:
    bold = underlined = False
    for _ in range(3):
        if len(text) > 4 and text.startswith("**") and text.endswith("**"):
            text, bold = text[2:-2].strip(), True
        elif len(text) > 2 and text.startswith("_") and text.endswith("_"):
            text, underlined = text.strip("_").strip(), True
    return text, bold, underlined


def _parse_decimal(text: str) -> str:
    """The text of a number as `Decimal` reads it: without separators of thousands, powers of ten as an exponent."""
    plain = text.replace(",", "").replace("{", "").replace("}", "").lstrip("+")
    return re.sub(r"\s?[x×·*]\s?10\^", "e", plain)
