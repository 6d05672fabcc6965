"""Estimates how large a job is, what a job of that size needs, and what is requested for it.

The laws of benchmarks/job_resources.yaml stand in no other place: the plan, the rules' resources and profiles/slurm
read them here. The size of an evaluation is the items and tokens of its suite, at a preset's limit and a run's context.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Any

from plumbline.core import package_data
from plumbline.core.errors import warn_once, warn_unread
from plumbline.project import Project
from plumbline.specs import suites
from plumbline.specs.study_config import Run
from plumbline.specs.suites import Suite
from plumbline.specs.yaml_files import read_yaml

#: A job asks for so many times the memory that it needs by the law, and at each further attempt for as much more.
MEMORY_MARGIN = 1.5
#: No job of the data stage asks for less (MB), nor any other; and no time limit is shorter (minutes).
LEAST_MB, LEAST_SMALL_MB, LEAST_MINUTES = 1500, 500, 15
#: A time limit is so many times the need, and so many minutes more.
TIME_MARGIN, SPARE_MINUTES = 3.0, 15

#: Sizes of a job, by the names that the laws have: `text_mb`, `answers_k`, ...
Units = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Need:
    """What a job takes: MB at its peak, CPU seconds, and seconds that it waits for a network.

    Of the data stage: MB that it reads to verify its input before it begins, and reads and writes while it works.
    """

    megabytes: float
    cpu_seconds: float
    waits: float
    extrapolated: bool
    verified_mb: float = 0.0
    moved_mb: float = 0.0

    @property
    def seconds(self) -> float:
        """Wall seconds, of which a disk takes none."""
        return max(self.cpu_seconds, self.waits)

    def choose_mb(self, attempt: int = 1, least: int = LEAST_SMALL_MB) -> int:
        """Choose the memory to ask for at an attempt: an attempt before it may have been killed for want of some."""
        return max(least, ceil(attempt * MEMORY_MARGIN * self.megabytes))

    def choose_minutes(self) -> int:
        """Choose the time limit."""
        return max(LEAST_MINUTES, ceil(TIME_MARGIN * self.seconds / 60) + SPARE_MINUTES)


@cache
def laws() -> dict[str, Any]:
    """Read the table of measured needs, which travels with the package."""
    table: dict[str, Any] = read_yaml(package_data.folder() / "benchmarks" / "job_resources.yaml")
    return table


def law(terms: Mapping[str, Any], units: Units) -> float:
    """Add up a law: so much whatever the size (`fixed`), and so much for each unit."""
    return float(sum(value if name == "fixed" else value * units[name] for name, value in terms.items()))


def need(rule: str, units: Units) -> Need:
    """Estimate what a job of a rule needs: the memory of its largest step, and the time of all.

    Args:
        rule: a row of the table.
        units: the sizes that its laws name; others are left alone.
    """
    row = laws()[rule]
    steps = row.get("steps", {}).values()
    adds = row.get("adds", {})
    memory = max((law(step["mb"], units) for step in steps), default=0.0) + law(adds.get("mb", {}), units)
    seconds = sum(law(step["cpu_seconds"], units) for step in steps) + law(adds.get("cpu_seconds", {}), units)
    waits = law(row.get("waits", {}).get("seconds", {}), units)
    verified_mb, moved_mb = (law(row.get("disk", {}).get(name, {}), units) for name in ("before", "mb"))
    return Need(memory, max(0.0, seconds), waits, _is_extrapolated(row, units), verified_mb, moved_mb)


def _is_extrapolated(row: Mapping[str, Any], units: Units) -> bool:
    """Whether a job is larger than the largest that was measured, or a part of its law is not measured at all."""
    steps = row.get("steps", {}).values()
    is_beyond = any(
        units[name] > 1.01 * max((point["units"][name] for point in step["points"]), default=0.0)
        for step in steps
        for name in {*step["mb"], *step["cpu_seconds"]} - {"fixed"}
    )
    return (
        is_beyond or bool(row.get("adds")) or any(units.get(name) for name in row.get("waits", {}).get("seconds", ()))
    )


def most_measured(rule: str, unit: str) -> float:
    """Look up the largest size at which a rule was measured."""
    points = [point["units"] for step in laws()[rule]["steps"].values() for point in step["points"]]
    return max(float(units[unit]) for units in points if unit in units)


#: Seconds that the evaluation harness spends on one item outside the model (counted on 300 items a task).
HARNESS_SECONDS_PER_ITEM = 0.002


def amount(project: Project, run: Run) -> tuple[int, float] | None:
    """Estimate items and tokens of a run's evaluation, if its study has a suite; None: a task's size is not known."""
    model, limit = run.spec.model, project.preset["evaluation"]["limit"]
    items = Path(project.paths.items(run.spec.data.corpus, run.suite))
    suite = suites.suite(run.suite, project.root)
    return suite_size(suite, limit, items, model.context, model.vocabulary, _count_packaged(project, suite))


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
    suite: Suite, limit: int, items: Path, context: int, vocabulary: int, item_counts: dict[str, int] | None = None
) -> tuple[int, float] | None:
    """Count the items of a suite, and the tokens that are read for them. None: a task's size is not known.

    An item is read in so many passes of so many bytes (`Task.workload`), the question repeated for each answer.

    Args:
        limit: items a task; 0 means all.
        items: the index of the items that were made, which states how many there are; it need not be there yet.
        item_counts: how many items a task will have, where they are not the published split's.
    """
    number, tokens = 0, 0.0
    counts = (item_counts or {}) | _read_counts(items)
    for task in suite.tasks:
        workload = task.workload
        if workload is None:
            return None
        total = counts.get(task.name, workload.items)
        count = min(limit, total) if limit else total
        number += count
        tokens += count * workload.passes_per_item * min(context, workload.bytes_per_pass / bytes_per_token(vocabulary))
    return number, tokens


def _count_packaged(project: Project, suite: Suite) -> dict[str, int]:
    """Count each task's items if they come from packages, or are made where no package has them."""
    if project.evaluation_source != "packaged":
        return {}
    proxy_items = project.preset["evaluation"]["proxy_items"]
    return {task.name: task.packaged.items if task.packaged else proxy_items for task in suite.tasks}


def bytes_per_token(vocabulary: int) -> float:
    """Estimate the bytes of English text in a token of byte-level BPE: 3.1 at 4,096 entries (counted), 4.4 at
    50,000.
    """
    return 3.1 + 0.36 * (log2(vocabulary) - 12)


def _read_counts(index: Path) -> dict[str, int]:
    """Items of each task that was made; none, with a warning, where the index is damaged."""
    if not index.exists():
        return {}
    try:
        content = json.loads(index.read_text(encoding="utf-8"))
        counts = {task: int(entry["n"]) for task, entry in content.items() if "n" in entry}
        if any(not 0 <= number < 1e11 for number in counts.values()):
            raise ValueError("a number that no items have")
        return counts
    except OSError as error:
        warn_unread(index, error)
        return {}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        warn_once(f"{index} is not an index of items ({error!r}) and is not used; delete it, and they are made again")
        return {}
