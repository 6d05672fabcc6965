"""A plan to be checked, and programs that print what a test wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.operate.preflight.check_result import CheckResult
from plumbline.operate.preflight.dry_run import DryRun, JobToRun
from plumbline.project import load
from plumbline.specs.yaml_files import load_config

TEXTS = JobToRun(rule="documents", wildcards={"corpus": "climbmix"}, memory=1500)
ITEMS = JobToRun(rule="items", wildcards={"corpus": "climbmix", "suite": "climb12"})
TRAIN = JobToRun(rule="pretrain", wildcards={"study": "transfer", "scale": "base", "method": "baseline", "seed": "42"})
LOCAL = {"data": {"source": "local"}}


def fetch(name: str) -> JobToRun:
    return JobToRun(rule="fetch", wildcards={"package": name})


def evaluation(**settings: str) -> dict[str, Any]:
    return {"evaluation": load_config()["evaluation"] | settings}


def dry_run(root: Path, *jobs: JobToRun, executor: str = "local", account: str = "", **settings: Any) -> DryRun:
    config = load_config() | {"preset": "smoke", "studies": ["transfer"]} | settings
    return DryRun(project=load(config, root), jobs=jobs, executor=executor, account=account, memory_limit=5500)


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def join(results: list[CheckResult], state: str) -> str:
    """The messages of all findings, which are of one state."""
    assert results and {result.state for result in results} == {state}, [str(result) for result in results]
    return "\n".join(f"{result.subject}: {result.message}" for result in results)
