"""Brings items from the form in which their authors released them into the hub's form.

A task's file says how, by fields or by a converter's name (`released`). ``python -m
plumbline.evaluate.convert_released`` does it for files, and checks every item.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text, parse_json
from plumbline.evaluate import field_mapping, item_fields
from plumbline.evaluate.item_fields import Item
from plumbline.specs import tasks
from plumbline.specs.tasks import ReleasedFormat, Task


def reading_passage(passage: Item) -> Item:
    """RACE: one JSON a passage (article, questions, options, answers); its problems as Python text."""
    problems = [
        {"question": question, "answer": answer, "options": options}
        for question, answer, options in zip(passage["questions"], passage["answers"], passage["options"], strict=True)
    ]
    return {"article": passage["article"], "problems": repr(problems)}


def answers_by_truth(line: Item) -> Item:
    """TruthfulQA: question and `mc2_targets`, a mapping from answer to 0 or 1."""
    answers = line["mc2_targets"]
    targets = {"choices": list(answers), "labels": list(answers.values())}
    return {"question": line["question"], "mc2_targets": targets}


#: Converters by the name that a task's file chooses one by, where a mapping of fields does not do.
CONVERTERS: dict[str, Callable[[Any], Item]] = {make.__name__: make for make in (reading_passage, answers_by_truth)}


def convert(task: Task, lines: list[Any], labels: list[str] | None = None, subject: str | None = None) -> list[Item]:
    """Convert a release's lines to items of `task` in hub form.

    Args:
        lines: the release's decoded lines; rows of a CSV file.
        labels: one for each line, if they come in a separate file.
        subject: of the file, if each subject has its own file.

    Raises:
        PlumblineError: the task's file has no `released`, a line lacks a field or repeats one that a flag gives, or
            labels and items differ in number.
    """
    if task.released is None:
        raise PlumblineError(f"{task.file}: released: the file does not say how items are made of a release; add it")
    if labels is not None and len(labels) != len(lines):
        raise PlumblineError(f"{task.name}: {len(lines)} items and {len(labels)} labels; give one label an item")
    items = []
    for index, line in enumerate(lines):
        extra_fields: Item = {} if subject is None else {"subject": subject}
        if labels is not None:
            extra_fields["label"] = labels[index].strip()
        try:
            items.append(_convert_line(task.released, line, extra_fields, index))
        except PlumblineError as problem:
            raise PlumblineError(f"{task.name}: item {index + 1}: {problem}") from problem
    return items


def _convert_line(released: ReleasedFormat, line: Any, extra_fields: Item, index: int) -> Item:
    if released.converter:
        try:
            return CONVERTERS[released.converter](line)
        except KeyError as error:
            raise PlumblineError(f"the original form lacks the field {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise PlumblineError(f"the original form does not fit: {error}") from error
    if isinstance(line, list):
        cells = max((int(path) for path in _paths(released.fields) if path.isdigit()), default=-1) + 1
        if len(line) != cells:
            raise PlumblineError(f"the row has {len(line)} cells, not {cells}; correct it, or its quotes")
        line = {str(number): cell for number, cell in enumerate(line)}
    if not isinstance(line, dict):
        raise PlumblineError(f"{line!r} is neither an object nor a row")
    if repeated := sorted(set(extra_fields) & set(line)):
        name = repeated[0]
        raise PlumblineError(
            f"it has a {name!r} of its own ({line[name]!r}), and --{name}{'s' * (name == 'label')} gives "
            f"{extra_fields[name]!r}; take it out of the lines, so that one of them says it"
        )
    return field_mapping.fields(released.fields, line | extra_fields | {"index": index}, "the original form")


def _paths(mapping: Any) -> Iterator[str]:
    """The paths that a mapping reads."""
    if isinstance(mapping, str):
        yield mapping
    elif isinstance(mapping, list):
        yield from (path for part in mapping for path in _paths(part))
    elif "of" in mapping:
        yield mapping["of"]
    elif "is" not in mapping:
        yield from (path for part in mapping.values() for path in _paths(part))


def read(path: Path) -> list[Any]:
    """What a file of a release holds: lines of JSON, a JSON list, rows of CSV, label lines; of a folder, each file.

    Raises:
        PlumblineError: the file is absent or is not what its name says.
    """
    if path.is_dir():
        return [_parse(file.read_text(encoding="utf-8"), str(file)) for file in sorted(path.iterdir())]
    if not path.is_file():
        raise PlumblineError(f"there is no file {path}")
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".json":
            return _parse(text, str(path))
        case ".csv":
            return list(csv.reader(text.splitlines(keepends=True)))
        case ".lst":
            return text.split()
    lines = enumerate(text.split("\n"), 1)
    return [_parse(line, f"{path} line {number}") for number, line in lines if line.strip()]


def _parse(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{where}: not JSON ({error})") from error


def main() -> None:
    """Convert one task's release and check every item."""
    parser = Parser(__doc__)
    parser.add_argument("--task", required=True, metavar="NAME", help="a file of config/tasks")
    parser.add_argument("--released-file", required=True, type=Path, help="the release's file; for race its folder")
    parser.add_argument("--labels", type=Path, help="piqa, social_iqa: the file of labels")
    parser.add_argument("--subject", help="mmlu: the subject of the file, as the harness names it")
    parser.add_argument("--out", required=True, type=Path, help="JSONL in the hub's form")
    options = parser.parse_args()
    task = tasks.task(options.task, where="--task: ")
    needs = task.released.needs if task.released else ""
    for flag in ("labels", "subject"):
        if (getattr(options, flag) is None) == (needs == flag):
            raise PlumblineError(f"--task {task.name} {'needs' if needs == flag else 'takes no'} --{flag}")
    from plumbline.evaluate import check_items

    if options.subject is not None:
        check_items.subject(task, options.subject, f"--subject (task {task.name})")
    labels = None if options.labels is None else read(options.labels)
    try:
        items = convert(task, read(options.released_file), labels, options.subject)
    except PlumblineError as problem:
        raise PlumblineError(f"{options.released_file}: {problem}") from problem
    for number, item in enumerate(items, 1):
        item_fields.require(task, item, f"{options.released_file} item {number}")
    check_items.items(task, items, lambda index: f"{options.released_file} item {index + 1}")
    atomic_write_text(options.out, item_fields.dump(items))


if __name__ == "__main__":
    run(main)
