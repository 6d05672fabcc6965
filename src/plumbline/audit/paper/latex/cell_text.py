"""Writes a cell's LaTeX as plain text with its marks, and names the commands in it that it does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pylatexenc.latex2text import get_default_latex_context_db
from pylatexenc.macrospec import LatexContextDb

from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import group, option
from plumbline.audit.paper.printed_cell import read_cell

#: Deepest nesting of groups in a cell.
DEPTH = 30

#: Commands that stand for a sign, where `pylatexenc` has another one or none.
SIGNS = {
    "uparrow": "↑", "Uparrow": "↑", "Downarrow": "↓", "ddagger": "‡", "ddag": "‡", "ast": "*", "star": "⋆", "S": "§",
    "P": "¶", "checkmark": "✓", "cmark": "✓", "xmark": "✗", "triangle": "△", "blacktriangle": "▲", "triangledown": "▽",
    "blacktriangledown": "▼", "vartriangle": "△", "faArrowUp": "↑", "faArrowDown": "↓", "faCaretUp": "▲",
    "faCaretDown": "▼", "milli": "m", "micro": "µ", "kilo": "K", "mega": "M", "giga": "G", "tera": "T", "second": "s",
    "hour": "h", "byte": "B", "day": "days", "sim": "~", "ldots": "...", "dots": "...", "cdots": "...", "lt": "<",
    "gt": ">", "less": "<", "textless": "<", "textgreater": ">", "textasteriskcentered": "*", "percent": "%", "%": "%",
    "bullet": "•", "circ": "°", "degree": "°", "textbar": "|", "ell": "l", "ne": "≠", "langle": "<", "rangle": ">",
    "Checkmark": "✓", "XSolidBrush": "✗", "sqrt": "sqrt", "textmu": "µ", "minus": "-", "simeq": "≈", "thicksim": "~",
    "bigstar": "★", "flat": "♭",
}  # fmt: skip
#: Commands without a meaning here: what follows in braces is read as it is.
PLAIN = frozenset((
    "textit", "emph", "text", "mathrm", "textrm", "textsc", "texttt", "textsf", "mbox", "hbox", "mathit", "mathsf",
    "mathtt", "mathcal", "mathbb", "operatorname", "textnormal", "textup", "textmd", "textsl", "ensuremath", "num",
    "numprint",
    "unit", "tablenum", "centering", "raggedright", "raggedleft", "normalfont", "rmfamily", "sffamily", "ttfamily",
    "itshape", "scshape", "si", "upshape", "mdseries", "em", "it", "rm", "sc", "tt", "sl", "tiny", "scriptsize",
    "footnotesize",
    "small", "normalsize", "large", "Large", "LARGE", "huge", "displaystyle", "textstyle", "scriptstyle", "left",
    "right", "big", "Big", "bigl", "bigr", "protect", "relax", "strut", "noindent", "leavevmode", "arraybackslash",
    "unboldmath", "textquotesingle", "smash", "thead", "fbox", "makebox", "framebox", "boxed",
    "overline", "hfill", "hfil", "bgroup", "egroup", "phantomsection", "selectfont", "/", "mathop",
    "mathbin", ",", ";", ":", "!", "quad", "qquad", "thinspace", "enspace", "enskip", "allowbreak", "newline",
    "break", "space", "-", "@", ">", "nobreakspace", "centerline", "unskip", "ignorespaces", "mathnormal", "textlf",
    "lowercase", "uppercase", "MakeUppercase", "limits", "nolimits", "rlap", "llap", "clap", "mathrlap", "mathllap",
    "(", ")",
))  # fmt: skip
#: Those of them that are a blank.
BLANKS = frozenset((
    ",", ";", ":", "quad", "qquad", "thinspace", "enspace", "enskip", "newline", "break", "space", ">",
    "nobreakspace", "\\", "\n", "hfill", "hfil",
))  # fmt: skip
#: Accents of formulas, which are written out before what they stand on: "bar d".
ACCENTS = {
    "bar": "bar", "hat": "hat", "widehat": "hat", "tilde": "tilde", "widetilde": "tilde", "vec": "vec", "dot": "dot",
    "ddot": "ddot", "mathring": "ring", "breve": "breve", "check": "check", "acute": "acute", "grave": "grave",
}  # fmt: skip
#: What \xspace stands before without a blank.
CLOSING = ".,'/?;:!~-)]}"
BOLD = frozenset((
    "textbf", "mathbf", "bm", "boldsymbol", "bf", "bfseries", "boldmath", "textbold", "pmb", "bfit", "npboldmath",
))  # fmt: skip
UNDERLINED = frozenset((
    "underline", "uline", "underbar", "dashuline", "uwave", "ul",
))  # fmt: skip
#: Commands whose arguments in braces are not part of the cell (how many), and those of which the last is read.
SILENT = {
    "section": 1, "section*": 1, "subsection": 1, "subsection*": 1, "subsubsection": 1, "paragraph": 1, "chapter": 1,
    "label": 1, "footnote": 1, "tablefootnote": 1, "footnotemark": 0, "tnote": 1, "phantom": 1, "hphantom": 1,
    "vphantom": 1, "pgfmathparse": 1, "pgfmathresult": 0, "pgfmathsetmacro": 2,
    "vspace": 1, "vspace*": 1, "hspace": 1, "hspace*": 1, "cellcolor": 1, "rowcolor": 1, "columncolor": 1,
    "rule": 2, "fontsize": 2, "setlength": 2, "kern": 0, "index": 1, "arrayrulecolor": 1, "rowcolors": 3,
    "addlinespace": 0, "nocite": 1, "includegraphics": 1, "parencite": 1, "textcite": 1,
    "autocite": 1, "renewcommand": 2, "tabcolsep": 0, "extrarowheight": 0, "hypersetup": 1, "linespread": 1,
    "fontseries": 1, "fontshape": 1, "color": 1,
}  # fmt: skip
LAST_READ = {
    "colorbox": 2, "rotatebox": 2, "scalebox": 2, "resizebox": 3, "parbox": 2, "raisebox": 2,
    "adjustbox": 2, "href": 2, "makecell": 1, "shortstack": 1, "fcolorbox": 3, "SI": 1, "hyperref": 1,
    "multirowcell": 2, "specialcell": 1, "rotcell": 1, "multirowthead": 2, "turnbox": 2, "tcbox": 1, "hl": 1,
    "url": 1, "adjincludegraphics": 1, "makecell*": 1, "cellcolor*": 1, "resizebox*": 3,
    "hyperlink": 2, "hypertarget": 2, "textcolor": 2,
}  # fmt: skip
#: Names of macros that print the direction of a change before its size: \\down{0.3}.
_WAY = re.compile(
    "(?:(?P<up>up|uparr|inc|incr|increase|gain|improve|plus)|(?:down|dn|downarr|dec|decr|decrease|drop|loss|minus))"
    "(?:arrow|num|val|bad|good|score|small|sub|red|green)?"
)
#: The same of a spread: \\std{0.3}.
_SPREAD = re.compile("std|stdev|stddev|stderr|sd|sem|pms")
#: What parts a cell's number from what stands beside it.
_BESIDE = re.compile(r"[±(↑↓▲▼△▽↗↘]|(?<=\d)_|@(?=\d)")
RAISED = ("textsuperscript", "textsubscript")
#: Beginnings of what is raised or lowered and stands next to a number without a sign for that.
_ALONE = re.compile("[±†‡*⋆§¶°↑↓▲▼△▽↗↘]")
#: References, which are shown as a sign that something stands there.
REFERENCES = frozenset((
    "ref", "cref", "Cref", "autoref", "eqref", "Sref", "secref", "tabref", "figref",
))  # fmt: skip


@dataclass(kw_only=True)
class CellText:
    """A cell as text; `unknown`: commands that stand in it and are not known."""

    text: str = ""
    bold: bool = False
    underlined: bool = False
    unknown: list[str] = field(default_factory=list)


@dataclass
class _State:
    """What holds inside a group."""

    bold: bool = False
    underlined: bool = False


class _Piece(NamedTuple):
    """A piece of a cell's text, and how it is set."""

    text: str
    bold: bool
    underlined: bool


@cache
def _find_sign(name: str) -> str | None:
    """The sign or letter that a command stands for: ± of \\pm, α of \\alpha; None if it is none."""
    if name in SIGNS:
        return SIGNS[name]
    replacement = getattr(_load_signs().get_macro_spec(name), "simplify_repl", None)
    is_sign = isinstance(replacement, str) and (len(replacement.strip()) == 1 or replacement.isalpha())
    return replacement if is_sign and name not in PLAIN else None


@cache
def _load_signs() -> LatexContextDb:
    return get_default_latex_context_db()


def cell_text(tokens: Sequence[Token]) -> CellText:
    """Write the tokens of a cell as text.

    It is bold or underlined if all of its letters and digits are, except what follows a ± or stands in brackets.
    """
    pieces, text, unknown = _write(tokens)
    main_pieces = [
        piece for piece in (_keep_main(pieces) if _BESIDE.search(text) else pieces) if re.search(r"\w", piece.text)
    ]
    return CellText(
        text=text,
        bold=bool(main_pieces) and all(piece.bold for piece in main_pieces),
        underlined=bool(main_pieces) and all(piece.underlined for piece in main_pieces),
        unknown=unknown,
    )


def plain_text(tokens: Sequence[Token]) -> str:
    """The tokens as text alone."""
    return _write(tokens)[1]


def _write(tokens: Sequence[Token]) -> tuple[list[_Piece], str, list[str]]:
    """The pieces of a text, the text, and what in it is not known."""
    pieces: list[_Piece] = []
    unknown: list[str] = []
    _render(list(tokens), _State(), pieces, unknown, 0)
    text = re.sub(r"\s+", " ", re.sub(r"\[\s*\]|\(\s*\)", "", "".join(piece.text for piece in pieces))).strip()
    if unknown:
        # A macro that only sets words is no loss; before a number it may print a sign, and after one begin another.
        known_text = re.sub("|".join(map(re.escape, sorted(unknown, key=len, reverse=True))), "", text).strip()
        if known_text and read_cell(known_text).number is None and re.search(r"[^\W\d_]|^\D+$", known_text):
            text, unknown = known_text, []
    text = text.replace("---", "—").replace("--", "–").replace("``", '"').replace("''", '"')
    text = re.sub(r"_?\s?±\s?", " ± ", text).strip() if re.search(r"\d_?\s?±", text) else text
    return pieces, text, unknown


def _keep_main(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces of a cell before a ±, a bracket or the arrow of a change."""
    main: list[_Piece] = []
    for piece in pieces:
        head = _BESIDE.split(piece.text, maxsplit=1)[0]
        main.append(piece._replace(text=head))
        if head != piece.text and any(re.search(r"\w", each.text) for each in main):
            break
    return main


def _render(tokens: list[Token], state: _State, out: list[_Piece], unknown: list[str], depth: int) -> None:
    if depth > DEPTH:
        unknown.append("groups that nest too deep")
        return

    def put(text: str) -> None:
        out.append(_Piece(text, state.bold, state.underlined))

    def inside(inner: list[Token], *, bold: bool = False, underlined: bool = False) -> None:
        inner_state = _State(state.bold or bold, state.underlined or underlined)
        _render(inner, inner_state, out, unknown, depth + 1)

    place = 0
    while place < len(tokens):
        kind, text, _ = tokens[place]
        place += 1
        if kind == "text":
            put(text)
        elif kind == "space" or (kind == "sign" and text == "~"):
            put(" ")
        elif kind == "sign" and text == "{":
            inner, place = group(tokens, place - 1)
            inside(inner)
        elif (kind == "sign" and text in "^_") or (kind == "command" and text in RAISED):
            inner, place = group(tokens, place)
            put("_" if text in ("_", "textsubscript") else "^")
            start = len(out)
            inside(inner)
            script = "".join(piece.text for piece in out[start:]).strip()
            lowered = text in ("_", "textsubscript")
            if _ALONE.match(script) or (lowered and re.match(r"\(\d", script)) or (not lowered and not script):
                out[start - 1] = _Piece("", state.bold, state.underlined)
        elif kind == "sign":
            if text not in "$}":
                put(text)
        elif text in ("begin", "end"):
            name, place = group(tokens, place)
            if text == "begin":
                _, place = option(tokens, place)
                if "".join(token.text for token in name).startswith(("tabular", "array", "minipage", "varwidth")):
                    _, place = group(tokens, place)
            put(" ")
        else:
            place = _write_command(tokens, place, text, state, put, inside, unknown)


def _write_command(tokens, place, text, state, put, inside, unknown) -> int:  # type: ignore[no-untyped-def]
    """Write a command's text, and return the place after what it takes."""
    if (sign := _find_sign(text)) is not None:
        put(sign)
    elif text in BLANKS or text in ("\\", "\n", " ", "tabularnewline"):
        if text == "\\":
            _, place = option(tokens, place)
        put("" if text == "," else " ")
    elif text in ACCENTS:
        inner, place = group(tokens, place)
        put(f"{ACCENTS[text]} ")
        inside(inner)
    elif text == "xspace":
        if place < len(tokens) and tokens[place].text[:1] not in CLOSING:
            put(" ")
    elif text in BOLD or text in UNDERLINED:
        if text in ("bf", "bfseries", "boldmath", "npboldmath"):
            state.bold = True
        else:
            inner, place = group(tokens, place)
            inside(inner, bold=text in BOLD, underlined=text in UNDERLINED)
    elif text in PLAIN:
        _, place = option(tokens, place) if text in ("num", "numprint") else (None, place)
    elif (way := _WAY.fullmatch(text)) is not None:
        # A macro of the paper's style that is not among its sources, and is named after what it prints.
        put("↑" if way["up"] else "↓")
    elif _SPREAD.fullmatch(text) and read_cell(plain_text(group(tokens[place : place + 8], 0)[0])).number:
        put("±")
    elif text in SILENT:
        place = skip_options(tokens, place)
        for _ in range(SILENT[text]):
            _, place = group(tokens, place)
    elif text in LAST_READ:
        inner = []
        place = skip_options(tokens, place)
        for _ in range(LAST_READ[text]):
            inner, place = group(tokens, place)
            place = skip_options(tokens, place) if text in ("parbox", "raisebox") else place
        inside(inner)
    elif text in ("frac", "tfrac", "dfrac", "nicefrac"):
        above, place = group(tokens, place)
        below, place = group(tokens, place)
        inside(above)
        put("/")
        inside(below)
    elif text == "ding":
        shape, place = group(tokens, place)
        number = "".join(token.text for token in shape)
        put("✓" if number in ("51", "52") else "✗" if number in ("55", "56") else f"\\ding{number}")
    elif text in REFERENCES:
        _, place = group(tokens, place)
        put("[ref]")
    elif text in ("'", "`", '"', "^", "~", "=", ".", "c", "v", "u", "H", "k"):
        inner, place = group(tokens, place)
        inside(inner)
    elif text == "qty":
        _, place = option(tokens, place)
    elif text.startswith("cite"):
        place = skip_options(tokens, place)
        _, place = group(tokens, place)
    elif not text.endswith(("space", "strut")):
        unknown.append(f"\\{text}")
        put(f"\\{text}")
    return place


def skip_options(tokens: list[Token], place: int) -> int:
    """The place after up to two [...] that stand next to each other."""
    for _ in range(2):
        content, end = option(tokens, place)
        if content is None or (place < len(tokens) and tokens[place].kind == "space"):
            return place
        place = end
    return place
