"""Checks that each benchmark task can have items from where they are asked: its file states how."""

from __future__ import annotations

from pathlib import Path

from plumbline.operate.preflight.check_result import STOP, CheckResult
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.specs import suites
from plumbline.specs.tasks import Task


def check(dry_run: DryRun) -> list[CheckResult]:
    """A line for each task of which no items can be made; what is in folders and on the hub is checked elsewhere."""
    results = []
    for (name,) in dry_run.values("items", "suite"):
        for task in suites.suite(name, dry_run.project.root):
            if message := _find_obstacle(dry_run, task):
                results.append(CheckResult(state=STOP, subject=f"items of {name}", message=f"{task.file}: {message}"))
    return results


def _find_obstacle(dry_run: DryRun, task: Task) -> str:
    """Why a task's file gives no items, and what to write; empty if it gives some."""
    source, settings = dry_run.project.evaluation_source, dry_run.project.config["evaluation"]
    if source == "hub" and task.hub is None:
        return "hub: it names no data set, and items come from the hub; add `hub`, or let evaluation.source be local"
    if source == "packaged" and task.packaged is None and task.proxy is None:
        return (
            "it has neither `packaged` nor `proxy`, and items come from packages, or are made where no package has "
            "them; add one of them, or let evaluation.source be hub or local"
        )
    if source == "packaged" and task.packaged is not None and task.few_shot is not None:
        return (
            "few_shot: packages ship no solved examples; take `few_shot` or `packaged` out, or let evaluation.source "
            "be hub or local"
        )
    absent = source == "local" and not (Path(settings["folder"]) / f"{task.name}.jsonl").is_file()
    if absent and settings["missing"] == "proxy" and task.proxy is None:
        return f"it has no `proxy`, and evaluation.folder no {task.name}.jsonl; add one of them"
    return ""
