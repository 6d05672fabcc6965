"""A page of results that is Markdown, as HTML: nothing of it is taken for HTML, and its tables scroll by themselves."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

#: Links that lead out of the report and are kept; those to files beside the page's Markdown are texts.
_KEPT = ("#", "https://", "http://")
_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def html(text: str, *, below: int = 1, prefix: str = "") -> Markup:
    """Markdown as HTML, its title left out, its headings `below` levels lower, with ids that begin with `prefix`."""
    tokens = _READER.parse(text)
    _untitled(tokens)
    for at, token in enumerate(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + below)}"
        if token.type == "heading_open":
            token.attrSet("id", prefix + slug(tokens[at + 1].content))
        if token.children:
            token.children = _links(token.children)
    made: str = _READER.renderer.render(tokens, _READER.options, {})
    box = '<div class="box" tabindex="0" role="region" aria-label="table"><table>'
    return Markup(made.replace("<table>", box).replace("</table>", "</table></div>"))


def headings(text: str, level: int = 2, prefix: str = "") -> list[tuple[str, str]]:
    """The headings of a level: (id, words)."""
    tokens = _READER.parse(text)
    marks = [at for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == f"h{level}"]
    return [(prefix + slug(tokens[at + 1].content), tokens[at + 1].content) for at in marks]


def slug(words: str) -> str:
    """A heading as an id."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _untitled(tokens: list[Token]) -> None:
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        del tokens[:3]


def _links(children: list[Token]) -> list[Token]:
    """Without the links that lead nowhere from here."""
    kept, dropped = [], 0
    for token in children:
        if token.type == "link_open" and not str(token.attrGet("href")).startswith(_KEPT):
            dropped += 1
        elif token.type == "link_close" and dropped:
            dropped -= 1
        else:
            kept.append(token)
    return kept
