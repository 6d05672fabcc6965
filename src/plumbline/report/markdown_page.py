"""Turns a Markdown page of the results into HTML: tags in it are shown as text, and its tables scroll by themselves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

#: Links that lead out of the report and are kept; those to files next to the page's Markdown are texts.
_KEPT = ("#", "https://", "http://")
_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
#: How a cell begins that has a number, and from how many letters on one is wrapped.
_NUMBER, _SENTENCE = re.compile(r"[-+<>≤≥±(]*\s*\.?\d"), 40


def to_html(text: str, *, below: int = 1, prefix: str = "part-") -> Markup:
    """Turn Markdown into HTML without its title, its headings `below` levels lower and with ids that begin with
    `prefix`.
    """
    tokens = _READER.parse(text)
    tokens = tokens[3:] if tokens and tokens[0].tag == "h1" else tokens
    ids = iter(_identify_headings(tokens, prefix))
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(ids)[1])
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + below)}"
        if token.children:
            token.children = _drop_dead_links(token.children)
    _align_columns(tokens)
    rendered: str = _READER.renderer.render(tokens, _READER.options, {})
    parts = rendered.split("<table>")  # each region has a name of its own
    box = '<div class="box" tabindex="0" role="region" aria-label="table {}"><table>'
    tables = "".join(box.format(number) + part for number, part in enumerate(parts[1:], start=1))
    return Markup((parts[0] + tables).replace("</table>", "</table></div>"))


def _align_columns(tokens: list[Token]) -> None:
    """Set the columns of numbers on the right, those of texts on the left; sentences are wrapped."""
    columns: list[list[tuple[Token, str]]] = []
    for token, inside in itertools.pairwise((*tokens, *tokens[-1:])):
        if token.type == "table_open":
            columns = []
        elif token.type == "tr_open":
            place = 0
        elif token.type in ("th_open", "td_open"):
            columns += [[]] if place == len(columns) else []
            columns[place].append((token, inside.content))
            place += 1
        elif token.type == "table_close":
            for cells in columns:
                texts = [text for cell, text in cells if cell.tag == "td" and text]
                numeric = any(map(_NUMBER.match, texts)) and cells[0][0].attrGet("style") == "text-align:right"
                looks = "end" if numeric else "wide" if max(map(len, texts), default=0) > _SENTENCE else ""
                for cell, _ in cells:
                    cell.attrs = {"class": looks} if looks else {}


def list_headings(text: str, *, prefix: str = "part-", levels: Collection[str] = ("h2",)) -> list[tuple[str, str]]:
    """List the headings of some levels of a Markdown text: (id in the HTML, words)."""
    return [
        (name, text_of_heading)
        for level, name, text_of_heading in _identify_headings(_READER.parse(text), prefix)
        if level in levels
    ]


def _identify_headings(tokens: list[Token], prefix: str) -> list[tuple[str, str, str]]:
    """Find each heading's level, an id that no other one has, and its text."""
    headings_found: list[tuple[str, str, str]] = []
    for token, inside in itertools.pairwise(tokens):
        if token.type == "heading_open":
            name = prefix + make_slug(inside.content)
            repeats = sum(other.rpartition("--")[0] == name or other == name for _, other, _ in headings_found)
            headings_found.append((token.tag, f"{name}--{repeats + 1}" if repeats else name, inside.content))
    return headings_found


def make_slug(heading: str) -> str:
    """Turn a heading into an id for HTML: lower case, hyphens for all else."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _drop_dead_links(children: list[Token]) -> list[Token]:
    """Without the links that lead nowhere from here."""
    tokens, dropped = [], 0
    for token in children:
        if token.type == "link_open" and not str(token.attrGet("href")).startswith(_KEPT):
            dropped += 1
        elif token.type == "link_close" and dropped:
            dropped -= 1
        else:
            tokens.append(token)
    return tokens
