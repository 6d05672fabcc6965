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

_DIGITS = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d{1,20})?|[1-9]\d{0,2}(?: \d{3})+(?:\.\d{1,20})?|\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})"
)
_POWER = r"(?:[eE][+-]?\d{1,2}|\s?[x×·*]\s?10\^\{?[+-]?\d{1,2}\}?)"
_NUMBER = rf"(?:10\^\{{?[+-]?\d{{1,2}}\}}?|{_DIGITS}{_POWER}?)"
#: Units that are words, as the letters that multiply.
_MULTIPLES = {"thousand": "K", "million": "M", "billion": "B", "bn": "B", "trillion": "T"}
_MULTIPLES |= {word.capitalize(): letter for word, letter in _MULTIPLES.items()}
_UNIT = (
    r"(?:%|pp|pts?|points|x|×|[KkMGBT](?![a-zA-Z])|[KMGT]i?B|[mµμn]?s|sec|min|h|hours?|hrs?|days?|"
    + "|".join(_MULTIPLES)
    + ")"
)
_UP, _DOWN = "↑▲△▴▵↗⬆⇑", "↓▼▽▾▿↘⬇⇓"
_ARROW = f"[{_UP}{_DOWN}]"
_CELL = re.compile(
    rf"(?:p\s?(?=[<≤=>≥]))?(?P<arrow>{_ARROW})?\s?(?P<relation>[<≤>≥=~≈∼]\s?)?(?P<sign>[+-]?)(?:(?:US\s?)?[$€£]\s?)?(?P<number>{_NUMBER})"
    rf"\s?(?P<unit>{_UNIT}?)(?:\s?(?:±|\+/-|\+-)\s?(?P<sd>{_NUMBER})\s?(?P<sd_unit>{_UNIT}?))?"
    rf"(?:\s?(?P<after>{_ARROW}))?(?:\s?\(\s?(?:(?:±|\+/-|\+-|std\.?|sd)\s?(?P<sd_inside>{_NUMBER})|(?P<way>{_ARROW})?\s?"
    rf"(?P<bracket>[+-]?{_NUMBER}))\s?(?P<bracket_unit>{_UNIT}?)\s?(?P<way_after>{_ARROW})?\s?\)"
    rf"|\s?\(\s?[nN]\s?=\s?\d{{1,9}}\s?\)"
    rf"|\s?[\[(]\s?(?P<low>[+-]?{_NUMBER})%?(?:\s?[,-]\s?|\sto\s)(?P<high>[+-]?{_NUMBER})%?\s?[\])]"
    rf"|\s@\s?{_NUMBER}\s?{_UNIT}?"  # at which coverage or threshold it was measured
    rf"|\^\{{?\+{_NUMBER}\}}?_\{{?-{_NUMBER}\}}?|_\{{?-{_NUMBER}\}}?\^\{{?\+{_NUMBER}\}}?"  # how far it may be off
    # A change or a spread below, above or next to a value: 81.7_+0.3, 81.7_0.3, 81.7^+0.3, 81.7 ↓0.3.
    rf"|\s?[_^]?\{{?(?P<beside>{_ARROW}\s?{_NUMBER}|(?<=[\s_^{{])\+{_NUMBER}|(?<=[_^{{])-\d+\.\d+|(?<=_)-?{_NUMBER})"
    rf"\s?(?P<beside_unit>{_UNIT}?)\}}?)?",
    re.ASCII,
)
_BRACKETED = re.compile(
    rf"\((?P<arrow>{_ARROW})?\s?(?P<sign>[+-]?)(?P<number>{_NUMBER})\s?(?P<unit>{_UNIT}?)\s?(?P<after>{_ARROW})?\)",
    re.ASCII,
)
#: Several numbers of a cell, such as those of seeds; with decimals, for "2, 4, 8" is a setting.
_LIST = re.compile(r"[+-]?\d+\.\d+%?(?:\s?[/;,|]\s?[+-]?\d+\.\d+%?){1,19}", re.ASCII)
_RELATIONS = {"": "=", "=": "=", "<": "<", "≤": "<", ">": ">", "≥": ">", "~": "~", "≈": "~", "∼": "~"}
#: Marks of footnotes after a number; digits alone only after decimals, where they are not a power.
_FOOTNOTES = re.compile(
    r"(?:\s?[*†‡§¶⋆★♣♠♦♥♭]+|\^\{?(?:[a-z]|\*)(?:,[a-z])*\}?|\^\{?\([a-zA-Z0-9,*]{1,5}\)\}?|(?<=\.\d)\^\{?\d\}?"
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
        number: the number's text as `Decimal` reads it, or None if the cell holds words, a list or nothing.
        unit: what follows the number: "%", "M" (also where "million" is printed), "x"; empty: nothing.
        relation: "=", or how the number is printed as a bound ("<", ">") or as about right ("~").
        sd: the number after a ±, or None.
        bracket: the number in brackets after the number, or None; its unit; whether it has a sign or an arrow.
        values: the numbers of a list, which a cell has in place of one number.
        bold, underlined: how it is marked; `stars`: how many stars stand after the number.
        arrow: 1 or -1 where an arrow points up or down next to the number, else 0; in a difference it is the sign.
        leading: the arrow stands before the number.
    """

    text: str
    number: str | None = None
    unit: str = ""
    relation: str = "="
    sd: str | None = None
    bracket: str | None = None
    bracket_unit: str = ""
    bracket_signed: bool = False
    values: tuple[str, ...] = ()
    bold: bool = False
    underlined: bool = False
    stars: int = 0
    arrow: int = 0
    leading: bool = False

    @property
    def bound(self) -> bool:
        """Whether the number is printed as a bound, or as about right: it is not what was rounded."""
        return self.relation != "="

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
    bare = re.sub(r"(?<=\d)[*†‡§¶⋆]+(?=\s?±)", "", bare).replace("{,}", ",").replace("\\%", "%")
    match = _CELL.fullmatch(bare) or _BRACKETED.fullmatch(bare)
    parts = defaultdict(str, {name: text or "" for name, text in match.groupdict().items()} if match else {})
    number = _parse_decimal(parts["sign"] + parts["number"]) if match else None
    ends = [Decimal(_parse_decimal(parts[end])) for end in ("low", "high") if parts[end]]
    if number is None or (ends and not ends[0] <= Decimal(number) <= ends[1]):  # no interval of this number
        several = _LIST.fullmatch(bare) and tuple(re.findall(r"[+-]?\d+\.\d+", bare.replace("+", "")))
        return PrintedCell(text=plain, values=several or (), bold=bold, underlined=underlined)
    sd, arrow = parts["sd"] or parts["sd_inside"], parts["arrow"] or parts["after"]
    bracket = parts["beside"] or (parts["bracket"] and f"{parts['way'] or parts['way_after']}{parts['bracket']}")
    return PrintedCell(
        text=plain,
        number=number,
        unit=_MULTIPLES.get(unit := parts["unit"] or parts["sd_unit"], unit),
        relation=_RELATIONS[parts["relation"].strip()],
        sd=_parse_decimal(sd) if sd else None,
        bracket=_parse_decimal(_replace_arrow(bracket)) if bracket else None,
        bracket_unit=parts["bracket_unit"] or parts["beside_unit"] if bracket else "",
        bracket_signed=bool(bracket) and not bracket[0].isdigit(),
        bold=bold,
        underlined=underlined,
        stars=len(re.sub(r"[^*]", "", re.sub(r".*[\w).\]]", "", plain))),
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
    plain = text.replace(",", "").replace(" ", "").replace("{", "").replace("}", "").lstrip("+")
    return re.sub(r"^([+-]?)10\^", r"\g<1>1e", re.sub(r"[x×·*]10\^", "e", plain))
