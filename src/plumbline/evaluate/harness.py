"""The harness's own tasks over our items: its YAML as it is installed, with only the data put in its place.

Tasks are built one by one from explicit YAML paths: scanning the harness's thousands of task files costs seconds a
process, and nothing here needs it. Items are given in memory, so no data set library touches disk or network.
"""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

import datasets
import lm_eval.tasks
import yaml
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate
from lm_eval.tasks._yaml_loader import load_yaml

from plumbline.cli import PlumblineError
from plumbline.evaluate import schema
from plumbline.evaluate.schema import Item
from plumbline.evaluate.suites import Task
from plumbline.files import sha256_file

TASK_FOLDER = Path(lm_eval.tasks.__file__).parent

#: The seed of the harness's command line. It has nothing to draw in tasks without few-shot examples.
_FEWSHOT_SEED = 1234

logging.getLogger("lm_eval").setLevel(logging.ERROR)
datasets.disable_progress_bars()


def leaves(task: Task, path: Path, limit: int | None) -> dict[str, ConfigurableTask]:
    """The harness's tasks that `task` consists of: one, or one a subject, by the harness's names.

    Args:
        path: the task's items.
        limit: the first items that are evaluated; of a task with subjects the first of every subject in turn.

    Raises:
        PlumblineError: an item is malformed, or a subject is not one of the harness's.
    """
    if task.subjects is None:
        return {task.name: _build(TASK_FOLDER / task.yaml, schema.read(task.name, path, limit), task.name)}
    by_subject: dict[str, list[Item]] = defaultdict(list)
    for item in schema.read(task.name, path):
        by_subject[item["subject"]].append(item)
    if set(by_subject) == {""}:
        # A source without subjects: the same template, one task, no line that names the subject.
        return {task.name: _build(TASK_FOLDER / task.yaml, by_subject[""][:limit], task.name)}
    known = {_subject(yaml_path): yaml_path for yaml_path in sorted(TASK_FOLDER.glob(task.subjects))}
    unknown = sorted(set(by_subject) - set(known))
    if unknown:
        raise PlumblineError(
            f"{path}: {unknown[0]!r} is no subject of {task.name}; known: {', '.join(known)}"
        )
    taken = _in_turn({subject: by_subject[subject] for subject in sorted(by_subject)}, limit)
    return {f"{task.name}_{subject}": _build(known[subject], items, task.name) for subject, items in taken.items()}


def run(model: LM, tasks: dict[str, ConfigurableTask]) -> dict[str, Any]:
    """The harness's evaluation with its per-example samples. No bootstrap: standard errors come from the samples."""
    return evaluate(model, {"tasks": tasks, "groups": {}}, bootstrap_iters=0, log_samples=True)


def yaml_checksums(task: Task) -> dict[str, str]:
    """SHA-256 of the task's YAML files and of those they include, by path below the harness's task folder."""
    start = [TASK_FOLDER / task.yaml]
    if task.subjects is not None:
        start += sorted(TASK_FOLDER.glob(task.subjects))
    seen: dict[str, str] = {}
    while start:
        path = start.pop()
        name = path.relative_to(TASK_FOLDER).as_posix()
        if name in seen:
            continue
        seen[name] = sha256_file(path)
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=_PlainLoader)
        included = config.get("include", [])
        start += [path.parent / other for other in ([included] if isinstance(included, str) else included)]
    return dict(sorted(seen.items()))


def _build(yaml_path: Path, items: list[Item], name: str) -> ConfigurableTask:
    config = {"task": name} | load_yaml(yaml_path)
    evaluated = config.get("test_split") or config["validation_split"]
    fields = schema.SCHEMAS[name]
    data = datasets.Dataset.from_list([{key: item[key] for key in fields} for item in items])
    named = {config.get(f"{split}_split") for split in ("training", "validation", "test", "fewshot")} - {None}
    # Only the evaluated split has items. The others are looked up even where no few-shot example is drawn.
    splits = {split: data if split == evaluated else data.select([]) for split in named}
    task = ConfigurableTask(config=config | {"custom_dataset": lambda **_: splits})
    if task.config.num_fewshot:
        raise PlumblineError(
            f"task {name}: its YAML asks for {task.config.num_fewshot} examples before the question, "
            "items hold only the evaluated split"
        )
    task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=_FEWSHOT_SEED)
    return task


def _subject(yaml_path: Path) -> str:
    return yaml_path.stem.removeprefix("mmlu_")


def _in_turn(by_subject: dict[str, list[Item]], limit: int | None) -> dict[str, list[Item]]:
    rounds = itertools.zip_longest(*([(subject, item) for item in items] for subject, items in by_subject.items()))
    pairs = itertools.islice((pair for row in rounds for pair in row if pair is not None), limit)
    taken: dict[str, list[Item]] = defaultdict(list)
    for subject, item in pairs:
        taken[subject].append(item)
    return taken


class _PlainLoader(yaml.SafeLoader):
    """YAML without the harness's functions: only `include` is read."""


_PlainLoader.add_constructor("!function", lambda loader, node: None)
