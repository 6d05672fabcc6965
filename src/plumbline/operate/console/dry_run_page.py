"""Sums up what a dry run would do where there are too many jobs to read one by one: a line for each kind of job.

Jobs are of one kind if they have a rule, nodes and devices in common. What they ask for is what Snakemake says of each:
memory, time and disk of the smallest and the largest. (Of threads a dry run says as many as --cores at most.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabulate import tabulate

from plumbline.project import snakemake_internals, snakemake_shortcuts

#: A dry run of more jobs is shown as a page.
READABLE = 100


def are_usual(settings: Any) -> bool:
    """Whether settings ask for neither more nor less than Snakemake's usual messages."""
    more = settings.verbose or settings.debug_dag or settings.printshellcmds
    less = {"ALL", "RULES", "PROGRESS"} & {silenced.name for silenced in settings.quiet or ()}
    return not (more or less)


def is_requested(settings: Any) -> bool:
    """Whether a long dry run is to be a page."""
    return bool(settings.dryrun) and are_usual(settings)


def watch(workflow: Any) -> None:
    """Log of the jobs of a long dry run what its page needs, where nobody else reads the log."""
    settings = snakemake_shortcuts.output_settings(workflow)
    if not is_requested(settings) or list(settings.log_handler_settings) != ["plumbline"]:
        return

    def announce_briefly() -> None:
        if len(snakemake_internals.list_needed_jobs(workflow)) > READABLE:
            snakemake_shortcuts.announce_jobs_briefly(workflow)

    snakemake_internals.on_dag_built(workflow, announce_briefly)


@dataclass(slots=True)
class _Kind:
    """Jobs of one kind: how many, and what they ask for, as far as Snakemake knows it before they are run."""

    jobs: int = 0
    memory_mb: set[int] = field(default_factory=set)
    minutes: set[int] = field(default_factory=set)
    disk_mb: set[int] = field(default_factory=set)


class DryRunPage:
    """Collects the jobs of a dry run from Snakemake's records, and shows them as a page.

    Attributes:
        readable: how many jobs are still shown one by one.
    """

    readable = READABLE

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str, str], _Kind] = {}

    def add(self, record: Any) -> None:
        """Count a job, by the record that announces it."""
        resources: Mapping[str, Any] = dict(record.resources.items())
        nodes, devices = resources.get("nodes", 1), resources.get("gres") or resources.get("gpu") or ""
        kind = self.kinds.setdefault((record.rule_name, str(nodes), str(devices)), _Kind())
        kind.jobs += 1
        for name, values in (("mem_mb", kind.memory_mb), ("runtime", kind.minutes), ("disk_mb", kind.disk_mb)):
            if isinstance(resources.get(name), int):
                values.add(resources[name])

    def text(self) -> str:
        """The page: a table, and how to see more."""
        heads = [
            "rule",
            "jobs",
            "nodes",
            "devices\na node",
            "memory,\nGB a node",
            "limit,\nhours",
            "disk,\nGB",
        ]
        rows = [
            [
                rule,
                kind.jobs,
                nodes,
                devices or "-",
                _format_range(kind.memory_mb, 1000),
                _format_range(kind.minutes, 60),
                _format_range(kind.disk_mb, 1000),
            ]
            for (rule, nodes, devices), kind in self.kinds.items()
        ]
        align = ["left", *["right"] * (len(heads) - 1)]
        table = tabulate(rows, headers=heads, tablefmt="simple", disable_numparse=True, colalign=align)
        return f"What each job would ask for (?: known when its inputs are there):\n{table}\n\n{_MORE}"


_MORE = (
    "Every job with its files and command: -p (--printshellcmds). What all of it takes, in hours and disk:\n"
    "`plumbline plan`, with the --profile and --config of this command.\n"
)


def _format_range(values: set[int], unit: int) -> str:
    if not values:
        return "?"
    low, high = (f"{value / unit:,.1f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}-{high}"
