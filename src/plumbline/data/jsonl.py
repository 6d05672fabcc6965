"""Reads documents from JSONL: one a line, {"id", "source", "text"}, and "group" where some are held out together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import RepeatedKey, parse_json
from plumbline.data.document import Document

_KEYS = ("id", "source", "text")


def read(path: Path) -> Iterator[Document]:
    """Read the documents of one JSONL file; empty lines are skipped.

    Raises:
        PlumblineError: a line is not such a document; the message names file, line and key.
    """
    return (document for _, document in read_numbered(path))


def read_numbered(path: Path, name: str = "", after: int = 0) -> Iterator[tuple[int, Document]]:
    """Read the same with the number of each line; the lines up to `after` were read before.

    Args:
        name: for a user's own file, its name: then `text` alone is needed, and an id left out is `<name>:<line>`, a
            source left out is the name, and a group left out is the id.
    """
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if number > after and line.strip():
                defaults = {"id": f"{name}:{number}", "source": name} if name else {}
                yield number, parse(line, f"{path}:{number}", defaults)


def parse(line: bytes, where: str, defaults: dict[str, str] | None = None) -> Document:
    """Read one line of JSONL as a document.

    Args:
        where: names the line in messages.
        defaults: values for keys that the line leaves out.

    Raises:
        PlumblineError: the line is not a document; the message names `where` and the key.
    """
    try:
        row = parse_json(line)
    except RepeatedKey as error:
        raise PlumblineError(f"{where}: {error}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PlumblineError(f"{where}: not a line of JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise PlumblineError(f"{where}: a document is a JSON object with the keys {', '.join(_KEYS)}")
    row = (defaults or {}) | row
    for name in _KEYS:
        if name not in row:
            raise PlumblineError(f"{where}: key {name!r} is missing")
    for name, value in row.items():
        if name not in (*_KEYS, "group"):
            raise PlumblineError(
                f"{where}: unknown key {name!r} (a document has text and, optionally, id, source and group); leave it "
                "out"
            )
        if not isinstance(value, str) or not value.strip():
            raise PlumblineError(f"{where}: key {name!r} must be a non-empty string, not {value!r:.60}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise PlumblineError(f"{where}: key {name!r} holds half a surrogate pair, which is not text") from error
    return Document(id=row["id"], source=row["source"], text=row["text"], group=row.get("group") or row["id"])
