"""Items from the form in which their authors released them to the hub's form: one function a task.

Each takes the decoded lines of the release (and the labels, where they come in a file of their own) and yields items
in the schema of `plumbline.evaluate.schema`. ``python -m plumbline.evaluate.convert`` does it for files.
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
from plumbline.evaluate import schema
from plumbline.evaluate.schema import Item


def piqa(lines: Iterable[Item], labels: Iterable[str]) -> Iterator[Item]:
    """``dev.jsonl`` (goal, sol1, sol2) and ``dev-labels.lst`` (0 or 1 a line)."""
    for line, label in zip(lines, labels, strict=True):
        yield {"goal": line["goal"], "sol1": line["sol1"], "sol2": line["sol2"], "label": int(label)}


def arc(lines: Iterable[Item]) -> Iterator[Item]:
    """``ARC-*-Test.jsonl``: id, question.stem, question.choices [{text, label}], answerKey."""
    for line in lines:
        yield {"id": line["id"], "question": line["question"]["stem"], **_lettered(line)}


def openbookqa(lines: Iterable[Item]) -> Iterator[Item]:
    """``test.jsonl`` of OpenBookQA-V1: the same nesting as ARC's."""
    for line in lines:
        yield {"id": line["id"], "question_stem": line["question"]["stem"], **_lettered(line)}


def hellaswag(lines: Iterable[Item]) -> Iterator[Item]:
    """``hellaswag_val.jsonl``: ind, activity_label, ctx_a, ctx_b, ctx, endings, label (an int; text on the hub)."""
    for line in lines:
        kept = {key: line[key] for key in ("ind", "activity_label", "ctx_a", "ctx_b", "ctx", "endings")}
        yield {**kept, "label": str(line["label"])}


def winogrande(lines: Iterable[Item]) -> Iterator[Item]:
    """``dev.jsonl``: qID, sentence, option1, option2, answer."""
    for line in lines:
        yield {key: line[key] for key in ("sentence", "option1", "option2", "answer")}


def boolq(lines: Iterable[Item]) -> Iterator[Item]:
    """``dev.jsonl``: question, title, answer (a boolean), passage."""
    for index, line in enumerate(lines):
        yield {
            "idx": index,
            "passage": line["passage"],
            "question": line["question"],
            "label": int(line["answer"]),
        }


def social_iqa(lines: Iterable[Item], labels: Iterable[str]) -> Iterator[Item]:
    """``dev.jsonl`` (context, question, answerA to answerC) and ``dev-labels.lst`` (1 to 3 a line)."""
    for line, label in zip(lines, labels, strict=True):
        yield {**{key: line[key] for key in line}, "label": label.strip()}


def race(files: Iterable[Item]) -> Iterator[Item]:
    """One JSON a passage (article, questions, options, answers), as the ``test/high/*.txt`` files hold."""
    for passage in files:
        problems = [
            {"question": question, "answer": answer, "options": options}
            for question, answer, options in zip(
                passage["questions"], passage["answers"], passage["options"], strict=True
            )
        ]
        yield {"article": passage["article"], "problems": repr(problems)}


def truthfulqa_mc2(questions: Iterable[Item]) -> Iterator[Item]:
    """``mc_task.json``: question and `mc2_targets`, a mapping from answer to 0 or 1."""
    for line in questions:
        answers = line["mc2_targets"]
        targets = {"choices": list(answers), "labels": list(answers.values())}
        yield {"question": line["question"], "mc2_targets": targets}


def lambada_openai(lines: Iterable[Item]) -> Iterator[Item]:
    """``lambada_test.jsonl``: text."""
    for line in lines:
        yield {"text": line["text"]}


def mmlu(rows: Iterable[list[str]], subject: str) -> Iterator[Item]:
    """One subject's ``*_test.csv``: question, four choices, the answer's letter."""
    for question, *choices, letter in rows:
        yield {"question": question, "subject": subject, "choices": choices, "answer": "ABCD".index(letter)}


CONVERTERS: dict[str, Callable[..., Iterator[Item]]] = {
    "piqa": piqa,
    "arc_easy": arc,
    "arc_challenge": arc,
    "openbookqa": openbookqa,
    "hellaswag": hellaswag,
    "winogrande": winogrande,
    "boolq": boolq,
    "social_iqa": social_iqa,
    "race": race,
    "truthfulqa_mc2": truthfulqa_mc2,
    "lambada_openai": lambada_openai,
    "mmlu": mmlu,
}


def convert(task: str, *sources: Any) -> list[Item]:
    """Items of `task` in hub form.

    Raises:
        PlumblineError: the release lacks a field, or labels and items differ in number.
    """
    if task not in CONVERTERS:
        raise PlumblineError(f"unknown task {task!r}; known: {', '.join(sorted(CONVERTERS))}")
    try:
        return list(CONVERTERS[task](*sources))
    except KeyError as error:
        raise PlumblineError(f"{task}: the original form lacks the field {error}") from error
    except ValueError as error:
        raise PlumblineError(f"{task}: the original form does not fit: {error}") from error


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
    parser.add_argument("--task", required=True, choices=sorted(CONVERTERS))
    parser.add_argument("--source", required=True, type=Path, help="the release's file; for race its folder")
    parser.add_argument("--labels", type=Path, help="piqa, social_iqa: the file of labels")
    parser.add_argument("--subject", help="mmlu: the subject of the file, as the harness names it")
    parser.add_argument("--out", required=True, type=Path, help="JSONL in the hub's schema")
    arguments = parser.parse_args()
    sources: list[Any] = [read(arguments.source)]
    for task, flag in {"piqa": "labels", "social_iqa": "labels", "mmlu": "subject"}.items():
        if arguments.task == task:
            given = getattr(arguments, flag)
            if given is None:
                raise PlumblineError(f"--task {task} needs --{flag}")
            sources.append(read(given) if flag == "labels" else given)
    items = convert(arguments.task, *sources)
    for number, item in enumerate(items, 1):
        schema.check(arguments.task, item, f"{arguments.source} item {number}")
    atomic_write_text(arguments.out, schema.dump(items))


def _lettered(line: Item) -> Item:
    choices = line["question"]["choices"]
    return {
        "choices": {
            "text": [choice["text"] for choice in choices],
            "label": [choice["label"] for choice in choices],
        },
        "answerKey": line["answerKey"],
    }


if __name__ == "__main__":
    run(main)
