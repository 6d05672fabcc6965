"""Writes texts and numbers for TeX, so that pdflatex and lualatex print them without more than amssymb."""

from __future__ import annotations

import itertools
import re
import unicodedata

from tabulate import LATEX_ESCAPE_RULES

#: Signs that TeX's text fonts lack, as TeX's mathematics has them.
_MATHS = {
    "−": "-", "√": r"\surd", "±": r"\pm", "×": r"\times", "÷": r"\div", "·": r"\cdot", "°": r"^\circ", "µ": r"\mu",
    "↑": r"\uparrow", "↓": r"\downarrow", "→": r"\to", "←": r"\leftarrow", "↔": r"\leftrightarrow",
    "⇒": r"\Rightarrow", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "≡": r"\equiv", "∝": r"\propto",
    "∼": r"\sim", "≪": r"\ll", "≫": r"\gg", "∞": r"\infty", "∑": r"\sum", "∏": r"\prod", "∂": r"\partial",
    "∇": r"\nabla",
    "∈": r"\in", "⊙": r"\odot", "⊗": r"\otimes", "⊕": r"\oplus", "⊤": r"\top", "⊥": r"\bot", "‖": r"\Vert",
    "ℓ": r"\ell", "′": "'", "″": "''", "✓": r"\checkmark", "ε": r"\varepsilon", "φ": r"\varphi", "¬": r"\neg",
}  # fmt: skip

#: Signs that text has otherwise.
_WORDS = {"–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "§": r"\S{}"}
_WORDS |= {
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{THIN SPACE}": r"\,",
    "•": r"\textbullet{}",
    "|": r"\textbar{}",  # a dash in TeX's first fonts
}

#: Greek letters that TeX has no command for: they look like these.
_PLAIN_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo", strict=True))

#: Letters that both programs print as they are: Latin ones with accents.
_LETTERS = range(0xC0, 0x180)

_NUMBER = re.compile(r"(?P<bound><?)(?P<sign>[+−-]?)(?P<digits>\d[\d.,]*)(?:e(?P<power>[+-]?\d+))?")


#: A letter or a norm with a short index, as in ``d_k``, which mathematics sets below the line, and a power, which it
#: sets above.
_INDEX = re.compile(r"((?<![\w\\])[A-Za-zΓ-ω]|‖)_([A-Za-z0-9])(?![^\W²])|(?<=[\w)])\^(-?[A-Za-z0-9]+)")


def tex(text: str, *, broken: bool = False) -> str:
    """Write a text for TeX: special signs, code in backquotes, quotation marks, and signs that its fonts lack.

    A sign that is not known here stands as its number, such as [U+4E2D]. `broken`: let lines end after ``_`` and ``/``.
    """
    quotes = itertools.cycle("“”")  # over the whole text: indices and code lie between two that belong together
    parts = re.split(r"`([^`]+)`", re.sub('"', lambda _: next(quotes), text.replace("^2", "²")))
    tex_parts = [(_signs_to_tex if place % 2 else _text_to_tex)(part, broken) for place, part in enumerate(parts)]
    return "".join(rf"\texttt{{{part}}}" if place % 2 else part for place, part in enumerate(tex_parts))


def number_to_tex(text: str) -> str:
    """Write the text of a numeric cell for TeX: minus signs and powers of ten as mathematics has them."""
    match = _NUMBER.match(text)
    if match is None:
        return tex(text)
    if match.end() < len(text):  # followed by a unit or a deviation
        return number_to_tex(match[0]) + tex(text[match.end() :])
    bound, digits = match["bound"], match["digits"]
    sign = "-" if match["sign"] in ("-", "−") else match["sign"]
    if int(match["power"] or 0) == 0:
        lead = f"{bound}{sign}"
        return (f"${lead}$" if bound or sign == "-" else lead) + digits
    power = f"10^{{{int(match['power'])}}}"
    factor = digits.replace(",", "{,}")
    return f"${bound}{sign}{power}$" if digits == "1" else rf"${bound}{sign}{factor}\times{power}$"


def _text_to_tex(text: str, broken: bool) -> str:
    """Write a text without code for TeX; indices are set below the line."""
    parts, end = [], 0
    for match in _INDEX.finditer(text):
        parts.append(_signs_to_tex(text[end : match.start()], broken))
        if match[1]:
            parts.append(f"${match[1] if match[1].isascii() else _sign_to_maths(match[1])}_{match[2]}$")
        else:
            parts.append(f"$^{{{match[3]}}}$")
        end = match.end()
    return "".join([*parts, _signs_to_tex(text[end:], broken)])


def _signs_to_tex(text: str, broken: bool) -> str:
    """Write a text for TeX sign by sign."""
    parts = []
    for place, sign in enumerate(text):
        if sign == "-" and text[place + 1 : place + 2] == "-":
            parts.append("-{}")
        elif broken and sign in "_/":
            parts.append((r"\_" if sign == "_" else sign) + r"\allowbreak{}")
        else:
            parts.append(_sign_to_tex(sign))
    return "".join(parts)


def _sign_to_tex(sign: str) -> str:
    if sign in LATEX_ESCAPE_RULES:
        return LATEX_ESCAPE_RULES[sign]
    if sign in _WORDS:
        return _WORDS[sign]
    if " " <= sign <= "~" or (ord(sign) in _LETTERS and sign not in _MATHS):
        return sign
    maths = _sign_to_maths(sign)
    return f"${maths}$" if maths else " " if sign.isspace() else f"[U+{ord(sign):04X}]"


def _sign_to_maths(sign: str) -> str:
    """Write a sign as TeX's mathematics has it; empty if it is not known."""
    if sign in _MATHS or sign in _PLAIN_GREEK:
        return _MATHS.get(sign) or rf"\mathrm{{{_PLAIN_GREEK[sign]}}}"
    kind, _, code = unicodedata.decomposition(sign).partition(" ")
    if kind in ("<super>", "<sub>") and " " not in code:
        inner = chr(int(code, 16))
        inner = inner if inner.isascii() else _sign_to_maths(inner)
        return f"{'^' if kind == '<super>' else '_'}{inner if len(inner) == 1 else f'{{{inner}}}'}" if inner else ""
    name = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", unicodedata.name(sign, ""))
    if name is None or (name[1] == "CAPITAL" and sign not in "ΓΔΘΛΞΠΣΥΦΨΩ"):
        return ""
    letter = {"LAMDA": "LAMBDA"}.get(name[2], name[2]).lower()
    return "\\" + (letter.capitalize() if name[1] == "CAPITAL" else letter)
