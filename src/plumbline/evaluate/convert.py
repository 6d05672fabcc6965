"""Brings items from the form in which their authors released them into the hub's form.

A task's file says how, by fields or by a converter's name (`released`). ``python -m plumbline.evaluate.convert`` does
it for files, and checks every item.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.evaluate import fields, mapping
from plumbline.evaluate.fields import Item
from plumbline.specs import tasks
from plumbline.specs.tasks import Task


def reading_passage(files: Iterable[Item]) -> Iterator[Item]:
    """RACE: one JSON a passage (article, questions, options, answers); its problems as Python text."""
    for passage in files:
        problems = [
            {"question": question, "answer": answer, "options": options}
            for question, answer, options in zip(
                passage["questions"], passage["answers"], passage["options"], strict=True
            )
        ]
        yield {"article": passage["article"], "problems": repr(problems)}


def answers_by_truth(questions: Iterable[Item]) -> Iterator[Item]:
    """TruthfulQA: question and `mc2_targets`, a mapping from answer to 0 or 1."""
    for line in questions:
        answers = line["mc2_targets"]
        targets = {"choices": list(answers), "labels": list(answers.values())}
        yield {"question": line["question"], "mc2_targets": targets}


#: Converters by the name that a task's file chooses one by, where a mapping of fields does not do.
CONVERTERS: dict[str, Callable[[Iterable[Any]], Iterator[Item]]] = {
    make.__name__: make for make in (reading_passage, answers_by_truth)
}


def convert(task: Task, lines: list[Any], labels: list[str] | None = None, subject: str = "") -> list[Item]:
    """Items of `task` in hub form.

    Args:
        lines: the release's decoded lines; rows of a CSV file.
        labels: one a line, where they come in a file of their own.
        subject: that of the file, where there is a file a subject.

    Raises:
        PlumblineError: the task's file does not say how, the release lacks a field, or labels and items differ in
            number.
    """
    if task.released is None:
        raise PlumblineError(f"{task.file}: released: the file does not say how items are made of a release; add it")
    try:
        if task.released.converter:
            return list(CONVERTERS[task.released.converter](lines))
        extra: list[Item] = [{"index": index, "subject": subject} for index in range(len(lines))]
        if labels is not None:
            extra = [more | {"label": label.strip()} for more, label in zip(extra, labels, strict=True)]
        return [mapping.fields(task.released.fields, more | _named(line)) for more, line in zip(extra, lines)]
    except KeyError as error:
        raise PlumblineError(f"{task.name}: the original form lacks the field {error}") from error
    except ValueError as error:
        raise PlumblineError(f"{task.name}: the original form does not fit: {error}") from error


def _named(line: Any) -> Item:
    """A line's fields; a row's cells by their number."""
    return line if isinstance(line, dict) else {str(number): cell for number, cell in enumerate(line)}


def read(path: Path) -> list[Any]:
    """What a file of a release holds: lines of JSON, a JSON list, rows of CSV, label lines; of a folder, each file.

    Raises:
        PlumblineError: the file is absent or is not what its name says.
    """
    if path.is_dir():
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(path.iterdir())]
    if not path.is_file():
        raise PlumblineError(f"there is no file {path}")
    text = path.read_text(encoding="utf-8")
    try:
        match path.suffix:
            case ".json":
                return json.loads(text)
            case ".csv":
                return list(csv.reader(text.splitlines(keepends=True)))
            case ".lst":
                return text.split()
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path}: not JSON ({error})") from error


def main() -> None:
    """Convert one task's release and check every item."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.evaluate.convert", description=__doc__)
    parser.add_argument("--task", required=True, metavar="NAME", help="a file of config/tasks")
    parser.add_argument("--source", required=True, type=Path, help="the release's file; for race its folder")
    parser.add_argument("--labels", type=Path, help="piqa, social_iqa: the file of labels")
    parser.add_argument("--subject", help="mmlu: the subject of the file, as the harness names it")
    parser.add_argument("--out", required=True, type=Path, help="JSONL in the hub's form")
    given = parser.parse_args()
    task = tasks.task(given.task, where="--task: ")
    needs = task.released.needs if task.released else ""
    for flag in ("labels", "subject"):
        if (getattr(given, flag) is None) == (needs == flag):
            raise PlumblineError(f"--task {task.name} {'needs' if needs == flag else 'takes no'} --{flag}")
    labels = None if given.labels is None else read(given.labels)
    items = convert(task, read(given.source), labels, given.subject or "")

    from plumbline.evaluate import check

    for number, item in enumerate(items, 1):
        fields.require(task, item, f"{given.source} item {number}")
    check.items(task, items, lambda index: f"{given.source} item {index + 1}")
    atomic_write_text(given.out, fields.dump(items))


if __name__ == "__main__":
    run(main)
