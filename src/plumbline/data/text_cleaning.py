"""Cleans and cuts text, in small steps that several sources share."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser


def tidy(text: str) -> str:
    """Normalise white space: plain spaces, no trailing blanks, at most one empty line in a row."""
    text = text.replace("\u00a0", " ").replace("\u00b6", "").replace("\r", "")
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def paragraphs(text: str) -> list[str]:
    """The non-empty paragraphs of a text, stripped."""
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def unwrap(text: str) -> str:
    """Join the hard-wrapped lines of each paragraph."""
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", part) for part in paragraphs(text))


def prose(text: str, least_characters: int = 40) -> str:
    """Keep the paragraphs that read like prose: long enough, mostly letters, ending as a sentence does."""
    parts = []
    for part in paragraphs(text):
        letters = sum(character.isalpha() or character == " " for character in part)
        mostly_letters = len(part) >= least_characters and letters >= 0.85 * len(part)
        if mostly_letters and re.search(r"[.!?:;)\]\"\u201d']$", part):
            parts.append(part)
    return "\n\n".join(parts)


def pieces(text: str, target_bytes: int) -> Iterator[str]:
    """Cut a text at paragraph breaks into pieces of about `target_bytes` UTF-8 bytes.

    Paragraphs stay whole, so a piece is longer than the target only where one paragraph is. A last piece below a
    quarter of the target joins the one before it. Joined with an empty line the pieces give back the paragraphs.
    """
    filled: list[list[str]] = []
    size = 0
    for part in paragraphs(text):
        bytes_here = len(part.encode())
        if not filled or size + bytes_here > target_bytes:
            filled.append([])
            size = 0
        filled[-1].append(part)
        size += bytes_here + 2
    if len(filled) > 1 and size < target_bytes / 4:
        filled[-2].extend(filled.pop())
    for parts in filled:
        yield "\n\n".join(parts)


def spans(text: str, characters: int) -> Iterator[str]:
    """Cut a text into parts of about so many characters between a word and the blank or line end that follows it.

    Pre-tokenisation as GPT-2's has a boundary at every such place and looks neither behind nor beyond it, so the tokens
    of the parts are the tokens of the text. A part is longer where no word ends.
    """
    start = 0
    while len(text) - start > characters:
        cut = _BETWEEN.search(text, start + characters)
        if cut is None:
            break
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


#: A letter or digit before a blank or a line end.
_BETWEEN = re.compile(r"[^\W_](?=[ \n])")


class _Text(HTMLParser):
    """Collects the text of an HTML page, with empty lines around blocks."""

    _BLOCKS = frozenset(
        ["p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ul", "ol", "dl", "dt", "dd", "table", "tr"]
    ) | {"blockquote", "section", "center"}
    _SKIPPED = frozenset(["script", "style", "head", "nav", "header", "footer", "pre", "button", "svg"])

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._SKIPPED:
            self._depth += 1
        elif tag in self._BLOCKS:
            self.parts.append("\n\n")
        elif tag == "br":
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._SKIPPED:
            self._depth = max(0, self._depth - 1)
        elif tag in self._BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._depth:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(page: str) -> str:
    """The readable text of an HTML page, with normalised white space."""
    parser = _Text()
    parser.feed(page)
    return tidy("".join(parser.parts))


def without_tags(markup: str) -> str:
    """The text of `markup` without anything in angle brackets, and with entities resolved."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup))
