"""The harness's own tasks over our items: its YAML as it is installed, with only the data put in its place.

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
from plumbline.evaluate import schema
from plumbline.evaluate.schema import Item
from plumbline.specs.suites import Task

TASK_FOLDER = Path(lm_eval.tasks.__file__).parent

#: The seed of the harness's command line. It has nothing to draw in tasks without few-shot examples.
_FEWSHOT_SEED = 1234

logging.getLogger("lm_eval").setLevel(logging.ERROR)
datasets.disable_progress_bars()

# The harness compiles a prompt's template anew for every item; a template is a pure function of its text.
lm_eval.utils.env.from_string = functools.cache(lm_eval.utils.env.from_string)  # type: ignore[method-assign]


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
    known = _subjects(task)
    by_leaf = {f"{task.name}_{subject}": by_subject[subject] for subject in sorted(by_subject)}
    unknown = [leaf for leaf in by_leaf if leaf not in known]
    if unknown:
        subject = unknown[0].removeprefix(f"{task.name}_")
        raise PlumblineError(f"{path}: {subject!r} is no subject of {task.name}; as tasks they are {sorted(known)}")
    return {leaf: _build(known[leaf], items, task.name) for leaf, items in _in_turn(by_leaf, limit).items()}


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
    start = [TASK_FOLDER / (task.yaml if name == task.name else _subjects(task)[name]) for name in tasks]
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
    # LAMBADA's perplexity is not among our metrics, and overflows for a model that is bad enough.
    config["metric_list"] = [entry for entry in config["metric_list"] if entry["metric"] in ("acc", "acc_norm")]
    fields = schema.fields(name)
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


def _subjects(task: Task) -> dict[str, Path]:
    """YAML of each subject by its task's name, which is the file's."""
    return {path.stem: path for path in sorted(TASK_FOLDER.glob(task.subjects or ""))}


def _in_turn(by_leaf: dict[str, list[Item]], limit: int | None) -> dict[str, list[Item]]:
    """The first `limit` items, one of each leaf after the other."""
    rounds = itertools.zip_longest(*([(leaf, item) for item in items] for leaf, items in by_leaf.items()))
    pairs = itertools.islice((pair for row in rounds for pair in row if pair is not None), limit)
    taken: dict[str, list[Item]] = defaultdict(list)
    for leaf, item in pairs:
        taken[leaf].append(item)
    return taken


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
