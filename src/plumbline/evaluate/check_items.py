"""Checks items by the harness itself: each goes through the task's own `process_docs`, `doc_to_text`, `doc_to_choice`
and `doc_to_target`, before a model is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2
from jinja2 import meta
from lm_eval.api.task import ConfigurableTask, TaskConfig

from plumbline.core.errors import PlumblineError, nearest
from plumbline.evaluate import harness_tasks
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import Task

#: Characters of a field's value that a message shows.
LONGEST_VALUE = 80


class _Refused(Exception):
    """Raised where the harness cannot use an item: the part of its task that failed, and why."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part, self.why = part, why


class _CheckedTask(ConfigurableTask):
    """The harness's task without its own trial of the first item, which ends in a bare error where that is faulty."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = TaskConfig(**config)
        self.OUTPUT_TYPE = self._config.output_type
        self.prompt = None

    def ask(self, task: Task, items: list[Item]) -> set[int]:
        """Let the harness build everything it needs of each item; return the numbers of answers that occur.

        Raises:
            _Refused: an item of which it cannot.
        """
        data = harness_tasks.dataset(task, items)
        if self.config.process_docs is not None:
            data = _call_harness("process_docs", self.config.process_docs, data)
        self.features = list(data.features)
        counts = set()
        for doc in data:
            text = _call_harness("doc_to_text", self.doc_to_text, doc)
            self.multiple_input = isinstance(text, int)
            target = _call_harness("doc_to_target", self.doc_to_target, doc)
            if self.OUTPUT_TYPE == "loglikelihood":
                if not text.strip():
                    raise _Refused("doc_to_text", "gives no text before the answer")
                answers = [target]
            else:
                answers = _call_harness("doc_to_choice", self.doc_to_choice, doc)
                if len(answers) < 2:
                    raise _Refused("doc_to_choice", f"gives {answers!r}, among which there is nothing to choose")
            if not answers or not all(isinstance(answer, str) and answer.strip() for answer in answers):
                raise _Refused("doc_to_choice", f"gives {answers!r}, which must be texts that are not empty")
            right = _call_harness("doc_to_target", harness_tasks.right_answers, task, self, doc)
            if not right or not all(0 <= index < len(answers) for index in right):
                raise _Refused("doc_to_target", f"gives {target!r}, which is none of the {len(answers)} answers")
            counts.add(len(answers))
        return counts


def items(task: Task, checked_items: list[Item], where: Callable[[int], str]) -> None:
    """Make sure that the harness can ask every item, and that each has a right answer.

    Args:
        where: an item's place, for the message, such as ``piqa.jsonl line 3``, by its index.

    Raises:
        PlumblineError: it cannot; the message names the place, the field and the remedy.
    """
    if task.subjects is not None and any(item["subject"] for item in checked_items):
        for index, item in enumerate(checked_items):
            subject(task, item["subject"], f"{where(index)} (task {task.name}): field 'subject'")
    try:
        counts = _ask(task, checked_items)
        if task.choices and counts and task.choices not in counts:
            raise PlumblineError(
                f"config/tasks/{task.name}.yaml: choices: {task.choices}, and no item has as many answers (they have "
                f"{sorted(counts)}); correct it, since the chance level follows from it"
            )
    except _Refused:
        index = _find_first_refused(task, checked_items)
        try:
            _ask(task, checked_items[index : index + 1])
        except _Refused as refused:
            neighbours = checked_items[max(0, index - 1) : index + 2]
            names = _find_faulty_fields(task, neighbours, checked_items[index])
            names = names or _list_fields_read(task, refused.part)
            fields = ", ".join(f"{name!r} ({_format_field(checked_items[index], name)})" for name in names)
            raise PlumblineError(
                f"{where(index)} (task {task.name}): field{'s' if len(names) > 1 else ''} {fields}: "
                f"{refused.part} of the harness's {task.harness} {refused.why}; correct the item, or take it out"
            ) from None
        raise


def subject(task: Task, name: str, where: str) -> None:
    """Refuse a subject that the harness does not have; `where` begins the message.

    Raises:
        PlumblineError: naming the nearest that it has.
    """
    subjects = [leaf.removeprefix(f"{task.name}_") for leaf in harness_tasks.subjects(task)]
    if name not in subjects:
        raise PlumblineError(
            f"{where}: {name!r} is no subject of the harness's {task.subjects}{nearest(name, subjects)}; there are "
            f"{len(subjects)}, such as {', '.join(subjects[:3])}"
        )


def _ask(task: Task, items: list[Item]) -> set[int]:
    parts = harness_tasks.parts(task, items, None, task.name).values()
    return set().union(
        *(_CheckedTask(harness_tasks.configuration(task, path)).ask(task, part_items) for path, part_items in parts)
    )


def _find_first_refused(task: Task, items: list[Item]) -> int:
    """Return the index of the first item that the harness refuses; one of them must be refused."""
    start, stop = 0, len(items)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            _ask(task, items[start:middle])
        except _Refused:
            stop = middle
        else:
            start = middle
    return start


def _call_harness(part: str, make: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return make(*arguments)
    except Exception as error:  # the harness's functions raise what they raise
        raise _Refused(part, f"cannot be made of it ({type(error).__name__}: {error})") from error


def _find_faulty_fields(task: Task, neighbours: list[Item], item: Item) -> list[str]:
    """List the fields that would mend an item if they were taken from a valid neighbour; empty without a valid
    neighbour."""

    def is_accepted(candidate: Item) -> bool:
        try:
            _ask(task, [candidate])
        except _Refused:
            return False
        return True

    right = next((candidate for candidate in neighbours if is_accepted(candidate)), None)
    return [] if right is None else [name for name in task.fields if is_accepted(item | {name: right[name]})]


def _format_field(item: Item, name: str) -> str:
    """The value of a field, whose inner fields are parted by dots; of a long one its beginning."""
    value: Any = item
    for key in name.split("."):
        value = value[key]
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} ..."


def _list_fields_read(task: Task, part: str) -> list[str]:
    """List the fields that a part of the harness's task reads; all fields of the task if that cannot be determined."""
    template = harness_tasks.configuration(task, harness_tasks.TASK_FOLDER / task.harness).get(part)
    if isinstance(template, str):
        names = {template} | meta.find_undeclared_variables(jinja2.Environment().parse(template))
    else:
        code = getattr(template, "__code__", None)
        names = set(code.co_consts) if code else set()
    return [name for name in task.fields if name in names] or list(task.fields)
