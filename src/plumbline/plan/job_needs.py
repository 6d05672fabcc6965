"""Says what a job of a rule needs, by the laws of benchmarks/job_resources.yaml, and what is asked for it.

That file is the only place of these laws: the plan, the rules' resources and profiles/slurm read it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

from plumbline.core import package_data
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

    def asked_mb(self, attempt: int = 1, least: int = LEAST_SMALL_MB) -> int:
        """Choose the memory to ask for at an attempt: an attempt before it may have been killed for want of some."""
        return max(least, ceil(attempt * MEMORY_MARGIN * self.megabytes))

    def asked_minutes(self) -> int:
        """Choose the time limit."""
        return max(LEAST_MINUTES, ceil(TIME_MARGIN * self.seconds / 60) + SPARE_MINUTES)


@cache
def laws() -> dict[str, Any]:
    """Read the table of measured needs, which travels with the package."""
    found: dict[str, Any] = read_yaml(package_data.folder() / "benchmarks" / "job_resources.yaml")
    return found


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
    verified, moved = (law(row.get("disk", {}).get(name, {}), units) for name in ("before", "mb"))
    return Need(memory, max(0.0, seconds), waits, _extrapolated(row, units), verified, moved)


def _extrapolated(row: Mapping[str, Any], units: Units) -> bool:
    """Whether a job is larger than the largest that was measured, or a part of its law is not measured at all."""
    steps = row.get("steps", {}).values()
    beyond = any(
        units[name] > 1.01 * max((point["units"][name] for point in step["points"]), default=0.0)
        for step in steps
        for name in {*step["mb"], *step["cpu_seconds"]} - {"fixed"}
    )
    return beyond or bool(row.get("adds")) or any(units.get(name) for name in row.get("waits", {}).get("seconds", ()))


def most_measured(rule: str, unit: str) -> float:
    """Look up the largest size at which a rule was measured."""
    points = [point["units"] for step in laws()[rule]["steps"].values() for point in step["points"]]
    return max(float(units[unit]) for units in points if unit in units)
