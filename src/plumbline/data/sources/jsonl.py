"""`local`: a folder of JSONL files, each line {"id", "source", "text"}, with an optional "group" held out together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from plumbline.cli import PlumblineError
from plumbline.data.sources import Document, key

_KEYS = ("id", "source", "text")


def files(folder: Path, corpus: str) -> list[Path]:
    """The folder's *.jsonl files, at any depth, by name; `corpus` is whose documents they are, for messages.

    Raises:
        PlumblineError: there is no such folder, or no such file in it.
    """
    if not folder.is_dir():
        raise PlumblineError(f"{key(corpus, 'local.folder')}: there is no folder {folder}")
    found = sorted(folder.rglob("*.jsonl"))
    if not found:
        raise PlumblineError(
            f'{key(corpus, "local.folder")}: no *.jsonl file in {folder} (each line {{"id", "source", "text"}})'
        )
    return found


def documents(folder: Path, corpus: str) -> Iterator[Document]:
    """Every line of every file, in order.

    Raises:
        PlumblineError: as `files`, or a line is not such a document; the message names file, line and key.
    """
    for path in files(folder, corpus):
        yield from read(path)


def read(path: Path) -> Iterator[Document]:
    """The documents of one JSONL file; empty lines are passed over. A line that is none raises as there."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield parse(line, f"{path}:{number}")


def parse(line: bytes, where: str) -> Document:
    """One line; `where` names it in messages. Raises as `documents` does of a line."""
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PlumblineError(f"{where}: not a line of JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise PlumblineError(f"{where}: a document is a JSON object with the keys {', '.join(_KEYS)}")
    for name in _KEYS:
        if name not in row:
            raise PlumblineError(f"{where}: key {name!r} is missing")
    for name, value in row.items():
        if name not in (*_KEYS, "group"):
            raise PlumblineError(
                f"{where}: unknown key {name!r} (a document has id, source, text and, if need be, group)"
            )
        if not isinstance(value, str) or not value.strip():
            raise PlumblineError(f"{where}: key {name!r} must be a non-empty string, not {value!r:.60}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise PlumblineError(f"{where}: key {name!r} holds half a surrogate pair, which is no text") from error
    return Document(id=row["id"], source=row["source"], text=row["text"], group=row.get("group") or row["id"])
