"""A user's own file in a plan: what it adds, and that nothing else changes for it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.project import Project, load
from plumbline.project.paths import WorkflowPaths
from plumbline.specs.spec_changes import overlay
from plumbline.specs.yaml_files import load_config

TEXT = "extends: transfer\nmethods: {capped: {model: {mixer: {name: softmax_cap, cap: 20.0}}}}\n"


def load_project(**settings: Any) -> Project:
    return load(overlay(copy.deepcopy(load_config()), {"preset": "smoke", "studies": ["transfer"]} | settings))


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "caps.yaml"
    path.write_text(TEXT)
    return str(path)


def test_it_adds_its_runs_and_its_page_and_changes_nothing_else(mine: str) -> None:
    plain, own = load_project(), load_project(mine=mine)
    assert own.runs.keys() - plain.runs.keys() == {
        *(f"caps/base/capped/s{seed}" for seed in (42, 43, 44)),
        *(f"transfer/base/baseline/s{seed}" for seed in (45, 46)),
    }
    assert own.targets.list_all_products() == plain.targets.list_all_products()
    for target in ("table2", "table3"):
        assert own.targets.list_read_files("transfer", target) == plain.targets.list_read_files("transfer", target)
        assert own.fingerprints.product("transfer", "table", target) == plain.fingerprints.product(
            "transfer", "table", target
        )
    files = own.verdicts.files()
    assert sum(path.endswith("outcome.json") for path in files) == 3 + 5
    assert "work/smoke/scores/caps/base/capped/s44/scores.parquet" in files
    unknown = re.compile(own.unknown_paths.results())
    assert not [page for page in ("verdict/caps.md", "smoke/verdict/caps.json") if unknown.fullmatch(page)]


def test_a_study_that_is_not_configured_may_be_extended(mine: str) -> None:
    own = load_project(studies=["quack"], main_study="quack", mine=mine)
    assert "climbmix" in own.corpora and "caps/base/capped/s42" in own.runs


def test_a_page_that_nothing_makes_is_answered(mine: str) -> None:
    with pytest.raises(PlumblineError, match=r"your own file: add --config mine=my/caps.yaml"):
        load_project().unknown_paths.refuse("results/verdict/caps.md")
    with pytest.raises(PlumblineError, match=r"is results/smoke/verdict/caps.md; did you mean 'caps'\?"):
        load_project(mine=mine).unknown_paths.refuse("results/smoke/verdict/cap.md")


def test_another_try_makes_a_new_page(mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.verdict import ledger
    from plumbline.verdict.own_method import ledger_costs

    path = tmp_path / "ledger.jsonl"
    monkeypatch.setattr(WorkflowPaths, "verdict_ledger", str(path))
    own = load_project(mine=mine)
    assert own.mine is not None
    before = own.fingerprints.verdict()
    entries = ledger_costs.make_entries(own.mine)
    ledger.append(path, entries)
    assert own.fingerprints.verdict() == before
    ledger.append(path, [ledger.LedgerEntry(**{**_fields(entries[0]), "name": "another", "baseline": "other"})])
    assert own.fingerprints.verdict() == before, "a try against another baseline costs this one nothing"
    ledger.append(path, [ledger.LedgerEntry(**{**_fields(entries[0]), "name": "another"})])
    assert own.fingerprints.verdict() != before


def test_an_earlier_page_of_both_scales(mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.verdict.own_method import decision_accuracy

    monkeypatch.setattr(WorkflowPaths, "verdict_ledger", str(tmp_path / "ledger.jsonl"))
    own = load_project(mine=mine)
    before = own.fingerprints.verdict()
    (tmp_path / "plain.json").write_text(json.dumps({decision_accuracy.KEY: None}))
    assert own.fingerprints.verdict() == before
    entry = {"study": "transfer", "metric": "validation_loss", "means": {"my/a": [5.0, 4.8]}}
    (tmp_path / "both.json").write_text(json.dumps({decision_accuracy.KEY: entry | {"scales": ["base", "large"]}}))
    assert own.fingerprints.verdict() != before


def _fields(entry: Any) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__slots__}
