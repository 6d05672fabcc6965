"""Estimates how much there is to evaluate: items and tokens of a suite, at a preset's limit and a run's context."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path

from plumbline.plan.plan_warnings import warn, warn_unread
from plumbline.project import Project
from plumbline.specs import suites
from plumbline.specs.study_config import Run
from plumbline.specs.suites import Suite

#: Seconds that the evaluation harness spends on one item outside the model (counted on 300 items a task).
HARNESS_SECONDS_PER_ITEM = 0.002


def amount(project: Project, run: Run) -> tuple[int, float] | None:
    """Estimate items and tokens of a run's evaluation, if its study has a suite; None: a task's size is not known."""
    model, limit = run.spec.model, project.preset["evaluation"]["limit"]
    items = Path(project.paths.items(run.spec.data.corpus, run.suite))
    suite = suites.suite(run.suite, project.root)
    return suite_size(suite, limit, items, model.context, model.vocabulary, _packaged(project, suite))


def inside_evaluation(amount: tuple[int, float], forward: float, flops_per_second: float) -> float:
    """Estimate the seconds of an evaluation after its start-up: the harness's own for each item, and the forward
    passes.

    Args:
        amount: items and tokens, as of `amount`.
        forward: operations a token of a forward pass.
    """
    items, tokens = amount
    return items * HARNESS_SECONDS_PER_ITEM + tokens * forward / flops_per_second


def suite_size(
    suite: Suite, limit: int, items: Path, context: int, vocabulary: int, known: dict[str, int] | None = None
) -> tuple[int, float] | None:
    """Count the items of a suite, and the tokens that are read for them. None: a task's size is not known.

    An item is read in so many passes of so many bytes (`Task.workload`), the question repeated for each answer.

    Args:
        limit: items a task; 0 means all.
        items: the index of the items that were made, which says how many there are; it need not be there yet.
        known: how many items a task will have, where they are not the published split's.
    """
    number, tokens = 0, 0.0
    made = (known or {}) | _made(items)
    for task in suite.tasks:
        workload = task.workload
        if workload is None:
            return None
        there = made.get(task.name, workload.items)
        here = min(limit, there) if limit else there
        number += here
        tokens += here * workload.passes_per_item * min(context, workload.bytes_per_pass / bytes_per_token(vocabulary))
    return number, tokens


def _packaged(project: Project, suite: Suite) -> dict[str, int]:
    """Items of each task where they come from packages, and are made where no package has them."""
    if project.evaluation_source != "packaged":
        return {}
    made = project.preset["evaluation"]["proxy_items"]
    return {task.name: task.packaged.items if task.packaged else made for task in suite.tasks}


def bytes_per_token(vocabulary: int) -> float:
    """Estimate the bytes of English text in a token of byte-level BPE: 3.1 at 4,096 entries (counted), 4.4 at
    50,000.
    """
    return 3.1 + 0.36 * (log2(vocabulary) - 12)


def _made(index: Path) -> dict[str, int]:
    """Items of each task that was made; none, with a warning, where the index is damaged."""
    if not index.exists():
        return {}
    try:
        made = json.loads(index.read_text(encoding="utf-8"))
        found = {task: int(entry["n"]) for task, entry in made.items() if "n" in entry}
        if any(not 0 <= number < 1e11 for number in found.values()):
            raise ValueError("a number that no items have")
        return found
    except OSError as error:
        warn_unread(index, error)
        return {}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        warn(f"{index} is not an index of items ({error!r}) and is not used; delete it, and they are made again")
        return {}
