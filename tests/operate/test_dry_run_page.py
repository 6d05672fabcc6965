"""A long dry run is announced briefly where its page alone is read, and whole wherever somebody reads more."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake.cli  # noqa: F401  (its modules import one another, in this order alone)
from snakemake.executors.dryrun import Executor

from plumbline.operate.console import dry_run_page
from plumbline.project import snakemake_shortcuts

USUAL: dict[str, Any] = {
    "dryrun": True, "verbose": False, "debug_dag": False, "printshellcmds": False, "quiet": [],
    "log_handler_settings": {"plumbline": None},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "page", "brief"),
    [
        ({}, True, True),
        ({"quiet": [SimpleNamespace(name="REASON")]}, True, True),
        ({"log_handler_settings": {"plumbline": None, "json": None}}, True, False),
        ({"printshellcmds": True}, False, False),
        ({"quiet": [SimpleNamespace(name="RULES")]}, False, False),
        ({"dryrun": False}, False, False),
    ],
)
def test_jobs_are_announced_briefly(
    change: dict[str, Any], page: bool, brief: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SimpleNamespace(**USUAL | change)
    many = [object()] * (dry_run_page.READABLE + 1)
    briefly: list[Any] = []
    monkeypatch.setattr(dry_run_page.snakemake_internals, "on_dag_built", lambda workflow, call: call())
    monkeypatch.setattr(dry_run_page.snakemake_internals, "list_needed_jobs", lambda workflow: many)
    monkeypatch.setattr(dry_run_page.snakemake_shortcuts, "announce_jobs_briefly", briefly.append)
    workflow = SimpleNamespace(output_settings=settings)
    assert dry_run_page.is_requested(settings) is page
    dry_run_page.watch(workflow)
    assert briefly == [workflow] * brief
    many.pop()
    dry_run_page.watch(workflow)
    assert len(briefly) == brief, "as many as can be read one by one"


def test_the_first_job_of_each_rule_is_announced_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole: list[Any] = []
    monkeypatch.setattr(Executor, "printjob", lambda executor, job: whole.append(job))
    workflow, other = object(), object()

    def job(rule: str, of: object = workflow, *jobs: Any) -> Any:
        dag, resources = SimpleNamespace(workflow=of), {"mem_mb": len(rule)}
        return SimpleNamespace(
            rule=SimpleNamespace(name=rule), dag=dag, resources=resources, jobs=jobs, is_group=lambda: bool(jobs)
        )

    snakemake_shortcuts.announce_jobs_briefly(workflow)
    first, second, elsewhere = job("pack"), job("pack"), job("pack", other)
    group = job("", workflow, job("pack"), job("table"))
    with caplog.at_level(logging.INFO):
        for each in (first, second, elsewhere, group):
            Executor.printjob(None, each)  # type: ignore[arg-type]
    assert whole == [first, elsewhere, group.jobs[1]]
    assert [(record.rule_name, record.resources) for record in caplog.records] == [("pack", {"mem_mb": 4})] * 2  # type: ignore[attr-defined]
