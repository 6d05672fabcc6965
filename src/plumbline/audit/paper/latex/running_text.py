"""Reads a paper's running text by paragraphs, each with the title of its section; those without a number are left, but
for what is said of p-values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plumbline.audit.paper.latex.cell_text import REFERENCES, plain_text
from plumbline.audit.paper.latex.source_files import Source
from plumbline.audit.paper.latex.token import Token
from plumbline.audit.paper.latex.tokens import group, option
from plumbline.audit.paper.paper_source import CORRECTED, ONE_SIDED, Passage
from plumbline.core.errors import visible

#: Most paragraphs, tokens of one, and environments and sections of which the sections are taken.
PARAGRAPHS, LENGTH, MARKS = 2_000, 2_000, 20_000

SECTIONS = frozenset(("section", "section*", "subsection", "subsection*", "subsubsection", "paragraph", "chapter"))
#: Places and titles of sections, in order; the last one is behind the end.
Sections = list[tuple[int, str]]
#: Beginnings of the names of environments that are no running text.
_ASIDE = (
    "table", "figure", "tabular", "longt", "tblr", "tabu", "Nice", "equation", "align", "gather", "multline",
    "algorithm", "tikz", "thebib", "wrap", "sideways", "displaymath", "eqnarray", "xltab", "filecontents", "lstlisting",
)  # fmt: skip
_PARTING = (*_ASIDE, "abstract", "docu")


def read_sections(tokens: Sequence[Token]) -> Sections:
    """The places where sections begin, with their titles; the abstract is one."""
    sections = []
    marks = SECTIONS | {"begin"}
    for place in [place for place, (kind, text, _) in enumerate(tokens) if kind == "command" and text in marks][:MARKS]:
        if tokens[place].text != "begin":
            _, begin = option(tokens, place + 1)
            title, _ = group(tokens[begin : begin + 100], 0)
            sections.append((place, visible(plain_text(title))[:200]))
        elif place + 2 < len(tokens) and tokens[place + 2].text == "abstract":
            sections.append((place, "Abstract"))
    return [*sections, (len(tokens) + 1, "")]


def read_passages(
    tokens: Sequence[Token], source: Source, sections: Sections, numbers: Mapping[str, int]
) -> list[Passage]:
    """The paragraphs that have a digit or say what p-values mean, in order, without tables, figures and equations.

    Args:
        tokens: those of the paper.
        source: where they stand; gets what is not read.
        sections: where they begin.
        numbers: label of a table -> its number, which references to it are written as.
    """
    passages: list[Passage] = []
    section, following = "", 0
    for begin, end in _split(tokens):
        while sections[following][0] < end:
            section, following = sections[following][1], following + 1
        part = tokens[begin : min(end, begin + LENGTH)]
        raw_text = "".join(token.text for token in part if token.kind in ("text", "space"))
        if not any(map(str.isdigit, raw_text)) and not ONE_SIDED.search(raw_text) and not CORRECTED.search(raw_text):
            continue
        where = source.lines[_find_line(part)].where
        if len(passages) == PARAGRAPHS:
            source.not_read.append(f"{where}: after {PARAGRAPHS} paragraphs no text is read")
            break
        text = visible(plain_text(_write_references(part, numbers)))
        passages.append(Passage("abstract" if section == "Abstract" else "text", section, where, text))
    return passages


def _find_line(tokens: Sequence[Token]) -> int:
    """The line on which a paragraph's words begin, behind the title of its section and what else parts it."""
    place = 0
    if tokens[0].kind == "command" and (tokens[0].text in SECTIONS or tokens[0].text in ("begin", "end")):
        _, place = option(tokens, 1)
        _, place = group(tokens, place)
    return next((token.line for token in tokens[place:] if token.kind == "text"), tokens[0].line)


def _write_references(tokens: Sequence[Token], numbers: Mapping[str, int]) -> list[Token]:
    """References to tables as "Table 3", or "3" where the text has the word itself."""
    new_tokens: list[Token] = []
    place = 0
    while place < len(tokens):
        token, place = tokens[place], place + 1
        if token.kind == "command" and token.text in REFERENCES:
            label, place = group(tokens, place)
            names = [numbers.get(name.strip(), "?") for name in "".join(part.text for part in label).split(",")]
            word = "" if token.text == "ref" else "Table "
            token = Token("text", ", ".join(f"{word}{name}" for name in names), token.line)
        new_tokens.append(token)
    return new_tokens


def _split(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Begin and end of each paragraph: parted by empty lines, titles of sections and what is no running text."""
    document = (place for place in range(len(tokens) - 2) if tokens[place + 2].text == "document")
    begin, aside, line = next((place for place in document if tokens[place][:2] == ("command", "begin")), 0), 0, -1
    for place in range(begin, len(tokens)):
        kind, text, number = tokens[place]
        empty = kind == "space" and number != line and "\n" in text
        line = number
        if kind != "command" and not empty:
            continue
        opens = kind == "command" and text in ("begin", "end")
        name = tokens[place + 2].text if opens and place + 2 < len(tokens) else ""
        if empty or (kind == "command" and (text == "par" or text in SECTIONS)) or name.startswith(_PARTING):
            if not aside and place > begin:
                yield begin, place
            begin = place
            if name.startswith(_ASIDE):
                aside = max(0, aside + (1 if text == "begin" else -1))
                begin = place + 4
    if not aside and begin < len(tokens):
        yield begin, len(tokens)
