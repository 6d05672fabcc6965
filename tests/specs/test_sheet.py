"""From YAML to runs: which layer wins, which runs there are, and what cannot be meant."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.cli import PlumblineError
from plumbline.specs import sheet
from plumbline.specs.config import PRESETS, load_study

ORIGINAL = load_study("transfer")


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], Any]], Path]:
    """A root whose transfer study was changed by a function."""

    def write(change: Callable[[dict[str, Any]], Any]) -> Path:
        content = copy.deepcopy(ORIGINAL)
        change(content)
        (tmp_path / "config/studies").mkdir(parents=True, exist_ok=True)
        (tmp_path / "config/studies/transfer/study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path

    return write


def test_dictionaries_merge_and_a_renamed_component_replaces() -> None:
    base = {
        "model": {"width": 8, "mixer": {"name": "softmax_cap", "cap": 50.0}, "ffn": {"name": "swiglu"}},
        "probes": [1],
    }
    before = copy.deepcopy(base)
    same = sheet.overlay(base, {"model": {"mixer": {"cap": 30.0}}})
    named = sheet.overlay(base, {"model": {"mixer": {"name": "softmax_cap"}}})
    other = sheet.overlay(base, {"model": {"mixer": {"name": "softpick"}}, "probes": [2]})
    assert same["model"] == before["model"] | {"mixer": {"name": "softmax_cap", "cap": 30.0}}
    assert named == before
    assert other["model"]["mixer"] == {"name": "softpick"} and other["probes"] == [2]
    assert base == before, "the layers below are left alone"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_transfer_study(preset: str) -> None:
    study = sheet.load("transfer", preset)
    assert len(study.methods) == 20
    assert len(study.group("base")) == 20
    assert len(study.group("base", "noise_floor")) == 26
    assert len({run.spec.run_id for run in study.runs.values()}) == len(study.runs)
    assert {run.spec.preset for run in study.runs.values()} == {preset}
    assert all(key == run.key for key, run in study.runs.items())
    assert ("transfer/base/provoked_divergence/s42" in study.runs) == (preset in ("demo", "smoke"))


def test_seeds_of_a_method_differ_in_initialisation_alone() -> None:
    runs = sheet.load("transfer", "paper").runs
    one, other = (runs[f"transfer/base/qknorm/s{seed}"].spec.to_dict() for seed in (42, 43))
    assert {key for key in one if one[key] != other[key]} == {"init_seed"}


def test_a_method_changes_what_it_names_and_nothing_else() -> None:
    runs = sheet.load("transfer", "paper").runs
    baseline, softpick = (runs[f"transfer/base/{name}/s42"].spec.to_dict() for name in ("baseline", "softpick"))
    assert {key for key in baseline if baseline[key] != softpick[key]} == {"method", "model"}
    changed = {key for key in baseline["model"] if baseline["model"][key] != softpick["model"][key]}
    assert changed == {"mixer"} and softpick["model"]["mixer"]["name"] == "softpick"


def test_a_run_of_two_entries_or_groups_is_one_run(changed) -> None:
    def twice(content: dict[str, Any]) -> None:
        content["runs"]["again"] = [{"scale": "base", "methods": ["softpick"], "seeds": [42, 43]}]

    study = sheet.load("transfer", "smoke", changed(twice))
    assert len(study.runs) == len(sheet.load("transfer", "smoke").runs)
    assert study.runs["transfer/base/softpick/s42"].groups == ("base", "again")
    assert study.runs["transfer/base/softpick/s43"].groups == ("noise_floor", "again")
    expected = json.loads(sheet.expected_json(study.group("again")))
    assert [entry["key"] for entry in expected] == ["transfer/base/softpick/s42", "transfer/base/softpick/s43"]


def test_a_reading_is_its_method_with_a_change(changed) -> None:
    def reading(content: dict[str, Any]) -> None:
        content["methods"]["softmax_cap"]["readings"] = {"low_cap": {"model": {"mixer": {"cap": 30.0}}}}
        content["runs"]["readings"] = [{"scale": "base", "methods": ["softmax_cap.low_cap"], "seeds": [42]}]

    study = sheet.load("transfer", "smoke", changed(reading))
    mixers = [run.spec.to_dict()["model"]["mixer"] for run in study.group("readings")]
    assert mixers == [{"name": "softmax_cap", "cap": 30.0}]
    assert study.label("softmax_cap.low_cap") == "Softmax-Cap (low cap)"


def test_an_arm_is_its_method_under_the_presets_circumstance() -> None:
    precision = {}
    for preset in PRESETS:
        runs = sheet.load("transfer", preset).runs
        arm, baseline = (runs[f"transfer/base/{name}/s42"].spec for name in ("second_hardware", "baseline"))
        precision[preset] = (baseline.train.precision, arm.train.precision)
        assert arm.model == baseline.model
    assert precision["demo"] == precision["smoke"] == ("float32", "bfloat16")
    assert precision["paper"] == ("bfloat16", "bfloat16")


def at(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change: the key at a dotted path set to a value."""

    def change(content: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for key in parents:
            content = content[int(key) if isinstance(content, list) else key]
        content[last] = value

    return change


MISTAKES = [
    ("runs.noise_floor.0.methods", ["qknrom"], "runs: there is no method or arm 'qknrom'; did you mean 'qknorm'?"),
    ("runs.noise_floor.0.methods", ["softpick.mine"], "methods.softpick.readings: no reading 'mine' (there are ["),
    ("runs.base.0.scale", "bse", "scales: no scale 'bse' at preset 'demo' (there are ['base', 'large'])"),
    ("arms.second_hardware.of", "basline", "there is no method or arm 'basline'; did you mean 'baseline'?"),
    ("targets.table2.runs", ["base", "nose"], "targets.table2.runs: there is no group of runs 'nose'"),
    ("noise_floor.reference", "basline", "noise_floor: runs: there is no method or arm 'basline'"),
    ("arms.softpick", {"label": "S", "of": "baseline", "note": ""}, "arms: 'softpick' is also the name of a method"),
    ("methods.softpick.model.mixer.name", "softpik", "base/softpick: model.mixer.name: no component 'softpik'"),
    ("methods.softpick.model.mixer.varient", "original", "no option 'varient'; did you mean 'variant'?"),
    ("methods.softmax_cap.model.mixer.cap", "high", "transfer/base/softmax_cap: model.mixer.cap: 'high' is not float"),
    ("scales.base.demo.train.batch_tokens", 2300, "train.batch_tokens (2300) is not a multiple of model.context (128)"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "says"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_mistakes_are_named(changed, path: str, value: Any, says: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        sheet.load("transfer", "demo", changed(at(path, value)))
    assert str(caught.value).startswith("config/studies/transfer/study.yaml: ")
    assert says in str(caught.value)


def test_thousands_of_runs_take_no_torch(changed) -> None:
    root = changed(at("runs.base", [{"scale": "base", "methods": "all", "seeds": list(range(100))}]))
    code = (
        "import sys; from pathlib import Path; from plumbline.specs import sheet;"
        f"print(len(sheet.load('transfer', 'paper', Path({str(root)!r})).runs), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    runs, torch = done.stdout.split()
    assert int(runs) > 2000 and torch == "False"
