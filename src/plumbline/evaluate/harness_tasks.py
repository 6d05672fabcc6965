"""Loads the harness's own tasks over our items: its YAML as it is installed, with only the data put in its place.

Tasks are built one by one from explicit YAML paths: scanning the harness's thousands of task files costs seconds a
process, and nothing here needs it. Items are given in memory, so no data set library touches disk or network.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import itertools
import logging
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import datasets
import lm_eval.tasks
import lm_eval.utils
import yaml
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate
from lm_eval.tasks._yaml_loader import load_yaml

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.evaluate import item_fields
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import Task

TASK_FOLDER = Path(lm_eval.tasks.__file__).parent

#: The seed of the harness's command line, which draws few-shot examples.
_FEWSHOT_SEED = 1234
#: The split of solved examples.
_SOLVED_SPLIT = "shown"

logging.getLogger("lm_eval").setLevel(logging.ERROR)
datasets.disable_progress_bars()

# The harness compiles a prompt's template anew for every item; a template is a pure function of its text.
lm_eval.utils.env.from_string = functools.cache(lm_eval.utils.env.from_string)  # type: ignore[method-assign]


def leaves(task: Task, path: Path, limit: int | None) -> dict[str, ConfigurableTask]:
    """The harness's tasks that `task` consists of: one, or one a subject, by the harness's names.

    Args:
        path: the task's items; its solved examples, if it shows any, lie next to them.
        limit: the first items that are evaluated; of a task with subjects the first of every subject in turn.

    Raises:
        PlumblineError: an item lacks a field, a subject is not one of the harness's, or the harness's YAML is not what
            the task's file says.
    """
    items = item_fields.read(task, path, limit if task.subjects is None else None)
    solved = item_fields.read(task, path.with_name(task.examples)) if task.few_shot else []
    tasks = {}
    for leaf, (yaml_path, leaf_items) in parts(task, items, limit, str(path)).items():
        leaf_examples = examples(task, solved, leaf_items[0].get("subject", ""))
        tasks[leaf] = _build_task(task, configuration(task, yaml_path), leaf_items, leaf_examples)
    return tasks


def examples(task: Task, solved: list[Item], subject: str) -> list[Item]:
    """The solved examples that a question's are drawn from: those of its subject, where the task has subjects.

    Raises:
        PlumblineError: they are fewer than the task shows.
    """
    chosen = solved if task.subjects is None else [item for item in solved if item["subject"] == subject]
    if task.few_shot and len(chosen) < task.few_shot.number:
        raise PlumblineError(
            f"{task.file}: few_shot.number: {task.few_shot.number} solved examples before each question, and there are "
            f"{len(chosen)}{f' of subject {subject!r}' if task.subjects else ''}; lower it, or give more"
        )
    return chosen


def parts(task: Task, items: list[Item], limit: int | None, where: str) -> dict[str, tuple[Path, list[Item]]]:
    """The harness's YAML and the items of each of its tasks that `task` consists of, of items that `where` holds.

    Raises:
        PlumblineError: a subject is not one of the harness's.
    """
    plain = TASK_FOLDER / task.harness
    if task.subjects is None:
        return {task.name: (plain, items[:limit])}
    by_subject: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_subject[item["subject"]].append(item)
    if set(by_subject) == {""}:
        # A source without subjects: the same template, one task, no line that names the subject.
        return {task.name: (plain, by_subject[""][:limit])}
    yaml_by_leaf = subjects(task)
    by_leaf = {f"{task.name}_{subject}": by_subject[subject] for subject in sorted(by_subject)}
    unknown = [leaf for leaf in by_leaf if leaf not in yaml_by_leaf]
    if unknown:
        subject = unknown[0].removeprefix(f"{task.name}_")
        raise PlumblineError(
            f"{where}: {subject!r} is no subject of {task.name}; as tasks they are {sorted(yaml_by_leaf)}"
        )
    return {leaf: (yaml_by_leaf[leaf], leaf_items) for leaf, leaf_items in _take_in_turn(by_leaf, limit).items()}


def configuration(task: Task, yaml_path: Path) -> dict[str, Any]:
    """The harness's YAML, with the metrics that are reported here and the examples that the task's file asks for.

    Raises:
        PlumblineError: there is none, or it does not go with the task's file.
    """
    if not yaml_path.is_file():
        raise PlumblineError(
            f"{task.file}: harness: there is no {yaml_path.relative_to(TASK_FOLDER)} among the harness's tasks "
            f"({TASK_FOLDER})"
        )
    config = {"task": task.name} | load_yaml(yaml_path)
    if config.get("output_type") not in ("multiple_choice", "loglikelihood"):
        raise PlumblineError(
            f"{task.file}: harness: {task.harness} is of type {config.get('output_type')!r}; here tasks are scored by "
            "the log-probability of given answers (multiple_choice, loglikelihood); name another"
        )
    # LAMBADA's perplexity is not among our metrics, and overflows for a model that is bad enough.
    config["metric_list"] = [entry for entry in config["metric_list"] if entry["metric"] in ("acc", "acc_norm")]
    if missing := [name for name in task.metrics if name not in {metric["metric"] for metric in config["metric_list"]}]:
        raise PlumblineError(f"{task.file}: metric: {task.harness} has no {missing[0]}; name the one that it has")
    number = task.few_shot.number if task.few_shot else 0
    if config.get("num_fewshot") not in (None, number):
        raise PlumblineError(
            f"{task.file}: few_shot: {task.harness} asks for {config['num_fewshot']} examples before the question, "
            f"not {number}; say so, with the split that they are drawn from"
        )
    return config | {"num_fewshot": number}


def right_answers(task: Task, leaf: ConfigurableTask, doc: dict[str, Any]) -> list[int]:
    """List the indices of an item's requests that are right answers, by the harness or the task's file."""
    if leaf.OUTPUT_TYPE == "loglikelihood":
        return [0]
    if task.right is not None:
        return [index for index, label in enumerate(item_fields.labels(task, doc)) if label == 1]
    # Where each choice is a context of its own, the harness keeps the right one's index as the text.
    right: Any = leaf.doc_to_text(doc) if leaf.multiple_input else leaf.doc_to_target(doc)
    if isinstance(right, str) and not right.isdigit():
        choices = leaf.doc_to_choice(doc)
        return [choices.index(right)] if right in choices else []
    return [int(number) for number in right] if isinstance(right, list) else [int(right)]


def run(model: LM, tasks: dict[str, ConfigurableTask]) -> dict[str, Any]:
    """The harness's evaluation with its per-example samples. No bootstrap: standard errors come from the samples."""
    # Requests and samples are many objects, and collections that they set off would look through all libraries.
    gc.freeze()
    try:
        return evaluate(model, {"tasks": tasks, "groups": {}}, bootstrap_iters=0, log_samples=True)
    finally:
        gc.unfreeze()


def yaml_checksums(task: Task, tasks: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the YAML files that the harness tasks `tasks` of `task` were made from, and of those they include.

    Keys are paths below the harness's task folder.
    """
    start = [TASK_FOLDER / (task.harness if name == task.name else subjects(task)[name]) for name in tasks]
    checksums: dict[str, str] = {}
    while start:
        path = start.pop()
        name = path.relative_to(TASK_FOLDER).as_posix()
        if name in checksums:
            continue
        checksums[name] = sha256_file(path)
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=_PlainLoader)
        included = config.get("include", [])
        start += [path.parent / include for include in ([included] if isinstance(included, str) else included)]
    return dict(sorted(checksums.items()))


def _build_task(task: Task, config: dict[str, Any], items: list[Item], solved: list[Item]) -> ConfigurableTask:
    evaluated = config.get("test_split") or config["validation_split"]
    data = dataset(task, items)
    split_names = {config.get(f"{split}_split") for split in ("training", "validation", "test", "fewshot")} - {None}
    # Only the evaluated split has items. The others are looked up even where no few-shot example is drawn.
    splits = {split: data if split == evaluated else data.select([]) for split in split_names}
    if config["num_fewshot"]:
        config = config | {"fewshot_split": _SOLVED_SPLIT}
        splits[_SOLVED_SPLIT] = dataset(task, solved)
    leaf = ConfigurableTask(config=config | {"custom_dataset": lambda **_: splits})
    leaf.set_fewshot_seed(seed=_FEWSHOT_SEED)
    return leaf


def dataset(task: Task, items: list[Item]) -> datasets.Dataset:
    """Items as the harness reads them."""
    return datasets.Dataset.from_list([{key: item[key] for key in task.fields} for item in items])


def subjects(task: Task) -> dict[str, Path]:
    """YAML of each subject by its task's name, which is the file's."""
    return {path.stem: path for path in sorted(TASK_FOLDER.glob(task.subjects or ""))}


def _take_in_turn(by_leaf: dict[str, list[Item]], limit: int | None) -> dict[str, list[Item]]:
    """The first `limit` items, one of each leaf after the other."""
    rounds = itertools.zip_longest(*([(leaf, item) for item in items] for leaf, items in by_leaf.items()))
    pairs = itertools.islice((pair for row in rounds for pair in row if pair is not None), limit)
    first_items: dict[str, list[Item]] = defaultdict(list)
    for leaf, item in pairs:
        first_items[leaf].append(item)
    return first_items


def _import_lazily(name: str) -> None:
    """Put off a submodule's import until something in it is used."""
    spec = importlib.util.find_spec(name)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)


# The harness's helpers of TruthfulQA import these for its generating variant, and with them seconds of natural
# language toolkit and statistics.
for _module in ("rouge_score.rouge_scorer", "rouge_score.scoring"):
    _import_lazily(_module)


class _PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML without the harness's functions: only `include` is read."""


_PlainLoader.add_constructor("!function", lambda loader, node: None)
