"""A user's own methods are entered in the ledger when their training starts: what is dropped later is paid for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from plumbline import project
from plumbline.operate.preflight import before_first_job
from plumbline.operate.preflight.dry_run import DryRun, JobToRun
from plumbline.specs.yaml_files import load_config
from plumbline.verdict import ledger

FILE = "extends: transfer\nmethods: {{wide: {{model: {{ffn_width: 128}}}}, {more}}}\nseeds: [42, 43]\n"


def start_job(root: Path, more: str, method: str, seed: int) -> ledger.Ledger:
    path = root / "own_methods.yaml"
    path.write_text(FILE.format(more=more))
    whole = project.load(load_config() | {"preset": "smoke", "studies": ["transfer"], "mine": str(path)})
    job = JobToRun(
        rule="pretrain", wildcards={"study": "own_methods", "scale": "base", "method": method, "seed": str(seed)}
    )
    before_first_job.enter(DryRun(project=dataclasses.replace(whole, root=root), jobs=(job,)))
    return ledger.read(root / whole.paths.verdict_ledger)


@pytest.fixture
def other() -> str:
    return "wider: {model: {ffn_width: 256}}"


def test_a_method_that_is_dropped_after_a_look_is_paid_for(tmp_path: Path, other: str) -> None:
    assert len(start_job(tmp_path, other, "wide", 42)) == 2
    dropped = start_job(tmp_path, "", "wide", 42)
    assert dropped.count_tries("transfer/base/baseline", "validation_loss") == 2
    assert [entry.name for entry in dropped.entries] == ["own_methods/wide", "own_methods/wider"]


def test_runs_of_an_experiment_and_of_the_study_enter_nothing(tmp_path: Path, other: str) -> None:
    assert len(start_job(tmp_path, other, "wide", 1042)) == 0, "a try makes its own entry"
