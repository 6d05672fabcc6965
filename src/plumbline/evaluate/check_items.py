"""Checks items by the harness itself: each goes through the task's own `process_docs`, `doc_to_text`, `doc_to_choice`
and `doc_to_target`, before a model is asked."""

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
SHOWN = 80


class _Refused(Exception):
    """An item that cannot be asked: which part of the harness's task says so, and why."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part, self.why = part, why


class _Asker(ConfigurableTask):
    """The harness's task without its own trial of the first item, which ends in a bare error where that is faulty."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = TaskConfig(**config)
        self.OUTPUT_TYPE = self._config.output_type
        self.prompt = None

    def ask(self, task: Task, items: list[Item]) -> set[int]:
        """Let the harness make all of each item that it will need; returns the numbers of answers that there are.

        Raises:
            _Refused: an item of which it cannot.
        """
        data = harness_tasks.dataset(task, items)
        if self.config.process_docs is not None:
            data = _made("process_docs", self.config.process_docs, data)
        self.features = list(data.features)
        counts = set()
        for doc in data:
            text = _made("doc_to_text", self.doc_to_text, doc)
            self.multiple_input = isinstance(text, int)
            target = _made("doc_to_target", self.doc_to_target, doc)
            if self.OUTPUT_TYPE == "loglikelihood":
                if not text.strip():
                    raise _Refused("doc_to_text", "gives no text before the answer")
                answers = [target]
            else:
                answers = _made("doc_to_choice", self.doc_to_choice, doc)
                if len(answers) < 2:
                    raise _Refused("doc_to_choice", f"gives {answers!r}, among which there is nothing to choose")
            if not answers or not all(isinstance(answer, str) and answer.strip() for answer in answers):
                raise _Refused("doc_to_choice", f"gives {answers!r}, which must be texts that are not empty")
            right = _made("doc_to_target", harness_tasks.right_answers, task, self, doc)
            if not right or not all(0 <= index < len(answers) for index in right):
                raise _Refused("doc_to_target", f"gives {target!r}, which is none of the {len(answers)} answers")
            counts.add(len(answers))
        return counts


def items(task: Task, found: list[Item], where: Callable[[int], str]) -> None:
    """Make sure that the harness can ask every item, and that each has a right answer.

    Args:
        where: an item's place, for the message, such as ``piqa.jsonl line 3``, by its index.

    Raises:
        PlumblineError: it cannot; the message names the place, the field and the remedy.
    """
    if task.subjects is not None and any(item["subject"] for item in found):
        for index, item in enumerate(found):
            subject(task, item["subject"], f"{where(index)} (task {task.name}): field 'subject'")
    try:
        counts = _ask(task, found)
        if task.choices and counts and task.choices not in counts:
            raise PlumblineError(
                f"config/tasks/{task.name}.yaml: choices: {task.choices}, and no item has as many answers (they have "
                f"{sorted(counts)}); correct it, since the chance level follows from it"
            )
    except _Refused:
        index = _first(task, found)
        try:
            _ask(task, found[index : index + 1])
        except _Refused as refused:
            names = _at_fault(task, found[max(0, index - 1) : index + 2], found[index]) or _fields(task, refused.part)
            said = ", ".join(f"{name!r} ({_shown(found[index], name)})" for name in names)
            raise PlumblineError(
                f"{where(index)} (task {task.name}): field{'s' if len(names) > 1 else ''} {said}: "
                f"{refused.part} of the harness's {task.harness} {refused.why}; correct the item, or take it out"
            ) from None
        raise


def subject(task: Task, name: str, where: str) -> None:
    """Refuse a subject that the harness does not have; `where` begins the message.

    Raises:
        PlumblineError: naming the nearest that it has.
    """
    known = [leaf.removeprefix(f"{task.name}_") for leaf in harness_tasks.subjects(task)]
    if name not in known:
        raise PlumblineError(
            f"{where}: {name!r} is no subject of the harness's {task.subjects}{nearest(name, known)}; there are "
            f"{len(known)}, such as {', '.join(known[:3])}"
        )


def _ask(task: Task, found: list[Item]) -> set[int]:
    parts = harness_tasks.parts(task, found, None, task.name).values()
    return set().union(*(_Asker(harness_tasks.configuration(task, path)).ask(task, asked) for path, asked in parts))


def _first(task: Task, found: list[Item]) -> int:
    """The index of the first item that is refused; there is one."""
    start, stop = 0, len(found)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            _ask(task, found[start:middle])
        except _Refused:
            stop = middle
        else:
            start = middle
    return start


def _made(part: str, make: Callable[..., Any], *given: Any) -> Any:
    try:
        return make(*given)
    except Exception as error:  # the harness's functions raise what they raise
        raise _Refused(part, f"cannot be made of it ({type(error).__name__}: {error})") from error


def _at_fault(task: Task, near: list[Item], item: Item) -> list[str]:
    """The fields of an item any of which would mend it, were it that of an item near it that is right; none where there
    is no such item."""

    def taken(one: Item) -> bool:
        try:
            _ask(task, [one])
        except _Refused:
            return False
        return True

    right = next((one for one in near if taken(one)), None)
    return [] if right is None else [name for name in task.fields if taken(item | {name: right[name]})]


def _shown(item: Item, name: str) -> str:
    """The value of a field, whose inner fields are parted by dots; of a long one its beginning."""
    value: Any = item
    for key in name.split("."):
        value = value[key]
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


def _fields(task: Task, part: str) -> list[str]:
    """The fields that a part of the harness's task reads, all of the task's where that cannot be seen."""
    said = harness_tasks.configuration(task, harness_tasks.TASK_FOLDER / task.harness).get(part)
    if isinstance(said, str):
        read = {said} | meta.find_undeclared_variables(jinja2.Environment().parse(said))
    else:
        code = getattr(said, "__code__", None)
        read = set(code.co_consts) if code else set()
    return [name for name in task.fields if name in read] or list(task.fields)
