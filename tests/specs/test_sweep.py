"""Swept methods: which runs they are, what a point changes, and what cannot be meant."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.results.interpretations import write_interpretations
from plumbline.specs import corpus, study_config
from plumbline.specs.spec_changes import overlay
from plumbline.specs.yaml_files import ROOT, load_study

TRANSFER = load_study("transfer")
ETA = {"sets": "optimizer.learning_rate", "values": [3e-5, 0.003]}
SWEPT: dict[str, Any] = {
    "label": "Capped",
    "model": {"mixer": {"name": "softmax_cap", "cap": 40.0}},
    "variants": {"low_cap": {"model": {"mixer": {"cap": 20.0}}}},
    "sweep": {"eta": ETA, "cap": {"sets": "model.mixer.cap", "values": [10, 30]}},
}
POINTS = ["swept.eta_3e-05-cap_10", "swept.eta_3e-05-cap_30", "swept.eta_0.003-cap_10", "swept.eta_0.003-cap_30"]

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A root with the transfer study, one of its methods swept, and changes on top."""

    def write(changes: dict[str, Any] | None = None, name: str = "transfer", **keys: Any) -> Path:
        content = copy.deepcopy(TRANSFER) if name == "transfer" else {"study": name, "title": "", "extends": "transfer"}
        content = overlay(content, {"methods": {"swept": copy.deepcopy(SWEPT)}})
        content = overlay(content, changes or {}) | keys
        path = tmp_path / f"studies/{name}/study.yaml"
        path.parent.mkdir(parents=True)
        shutil.copytree(ROOT / "config/corpora", tmp_path / "config/corpora", dirs_exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path

    return write


def runs(*methods: str, seeds: tuple[int, ...] = (42,)) -> dict[str, Any]:
    return {"more": [{"scale": "base", "methods": list(methods), "seeds": list(seeds)}]}


def test_a_swept_method_is_every_point_of_its_grid(written: Written) -> None:
    study, before = study_config.load("transfer", "smoke", written()), study_config.load("transfer", "smoke")
    own = study.runs.keys() - before.runs.keys()
    points = {f"transfer/base/{point}/s42" for point in POINTS}
    assert own == points | {"transfer/base/swept.low_cap/s42"}, "`all` are its points, `variants` its variant"
    assert [name for name in study.methods if name not in before.methods] == POINTS
    assert study.m == before.m + 4, "each point is a comparison"
    assert {run.spec.run_id for run in before.runs.values()} <= {run.spec.run_id for run in study.runs.values()}
    assert study.points("swept") == {
        name: {"eta": eta, "cap": cap}
        for name, (eta, cap) in zip(POINTS, [(3e-5, 10), (3e-5, 30), (3e-3, 10), (3e-3, 30)], strict=True)
    }
    assert study.points("softpick") == study.points("swept.low_cap") == {}
    assert study.points(POINTS[1]) == {POINTS[1]: {"eta": 3e-5, "cap": 30}}
    assert study.label(POINTS[0]) == "Capped (eta 3e-05, cap 10)" and study.label("swept.low_cap") == "Capped (low cap)"


def test_a_point_sets_what_its_axes_name_and_nothing_else(written: Written) -> None:
    study = study_config.load("transfer", "smoke", written(runs=TRANSFER["runs"] | runs("swept", "swept.low_cap")))
    plain = study.runs["transfer/base/swept.low_cap/s42"].spec.to_dict()
    recipe = study.runs["transfer/base/baseline/s42"].spec.optimizer.learning_rate
    assert (plain["optimizer"]["learning_rate"], plain["model"]["mixer"]["cap"]) == (recipe, 20.0), (
        "recipe's own values"
    )
    for name, point in study.points("swept").items():
        spec = study.runs[f"transfer/base/{name}/s42"].spec.to_dict()
        assert {key for key in plain if spec[key] != plain[key]} == {"method", "model", "optimizer"}
        assert spec["optimizer"] == plain["optimizer"] | {"learning_rate": point["eta"]}
        assert spec["model"] == plain["model"] | {"mixer": {"name": "softmax_cap", "cap": float(point["cap"])}}
    assert len({run.spec.run_id for run in study.group("more")}) == 5


def test_an_intervention_is_found_by_its_name(written: Written) -> None:
    listed = [{"name": "freeze", "role": "norm"}, {"name": "learning_rate_factor"}]
    axes = {"factor": {"sets": "interventions.learning_rate_factor.factor", "values": [0.5]}, "eta": ETA}
    method = {"swept": {"interventions": listed, "sweep": axes | {"cap": SWEPT["sweep"]["cap"]}}}
    study = study_config.load("transfer", "smoke", written({"methods": method}))
    spec = study.runs["transfer/base/swept.eta_3e-05-cap_10-factor_0.5/s42"].spec
    assert [entry["name"] for entry in spec.interventions] == ["freeze", "learning_rate_factor"]
    assert spec.interventions[1]["factor"] == 0.5


def test_a_run_entry_a_noise_floor_and_an_arm_name_points(written: Written) -> None:
    arm = {"label": "Longer", "variant_of": POINTS[3], "note": "", "train": {"steps": 9}}
    groups = TRANSFER["runs"] | runs(POINTS[0], "longer")
    root = written({"arms": {"longer": arm}}, noise_floor={"reference": POINTS[2], "others": []}, runs=groups)
    study = study_config.load("transfer", "smoke", root)
    assert [run.spec.method for run in study.group("more")] == [POINTS[0], "longer"]
    assert study.reference == POINTS[2] and study.m == len(study.methods) - 1
    longer, point = (study.runs[f"transfer/base/{name}/s42"].spec for name in ("longer", POINTS[3]))
    assert longer.train.steps == 9 and longer.model == point.model and longer.optimizer == point.optimizer


def test_study_that_extends_another_sweeps_and_is_compared(written: Written) -> None:
    both = {"t": {"kind": "table", "runs": ["base", "more"], "reads": [], "published": []}}
    groups = {"base": [{"scale": "base", "methods": "all", "seeds": [42]}], **runs("swept", "softpick", seeds=(43,))}
    written(noise_floor={"reference": POINTS[2], "others": ["qknorm"]}, runs=groups, targets=both)
    root = written(None, "mine", methods={"mine": {"label": "Mine", "sweep": {"eta": ETA}}}, seeds=[1])
    study, parent = (study_config.load(name, "smoke", root) for name in ("mine", "transfer"))
    assert list(study.methods) == [POINTS[2], "mine.eta_3e-05", "mine.eta_0.003"] and study.m == 2
    shared = study.runs.keys() & parent.runs.keys()
    assert shared == {f"transfer/base/{name}" for name in (f"{POINTS[2]}/s42", f"{POINTS[2]}/s43", "qknorm/s42")}
    assert all(study.runs[key].spec == parent.runs[key].spec for key in shared)
    assert study.runs.keys() - shared == {f"mine/base/mine.eta_{eta}/s1" for eta in ("3e-05", "0.003")}
    assert study.key("base", POINTS[2], 42) in shared and study.key("base", "mine.eta_0.003", 1) in study.runs


def test_the_page_of_interpretations_says_the_grid(written: Written) -> None:
    study = study_config.load("transfer", "smoke", written())
    page = write_interpretations(study, corpus.load(study.corpus, "smoke"))
    line = next(line for line in page.splitlines() if line.startswith("- `swept` is run at every point of"))
    assert "eta (`optimizer.learning_rate`) 3e-05, 0.003; cap (`model.mixer.cap`) 10, 30: 4 runs" in line
    assert page.count("`swept.low_cap`") == 1, "a variant stands there once"


def eta(**keys: Any) -> dict[str, Any]:
    """A change of the axis eta."""
    return {"methods": {"swept": {"sweep": {"eta": keys}}}}


def group(*methods: str) -> dict[str, Any]:
    return {"runs": runs(*methods)}


WHERE = "methods.swept.sweep.eta"
MISTAKES = {
    "path": (eta(sets="optimizer.learning_rat"), f"{WHERE}.sets: there is no 'optimizer.learning_rat' to set; did you"),
    "option": (eta(sets="model.mixer.cup"), "there is no 'model.mixer.cup' to set; did you mean 'model.mixer.cap'?"),
    "absent": (eta(sets="interventions.freze.role"), f"{WHERE}.sets: there is no 'interventions.freze.role' to set"),
    "seed": (eta(sets="init_seed"), f"{WHERE}.sets: there is no 'init_seed' to set"),
    "negative": (eta(values=[-1.0]), f"{WHERE}.values: -1.0 is not a number > 0"),
    "fraction": (eta(sets="train.steps", values=[2.5]), f"{WHERE}.values: 2.5 is not a whole number"),
    "type": (eta(sets="model.ffn.name"), f"{WHERE}.sets: there is no 'model.ffn.name' to set"),
    "empty": (eta(values=[]), f"{WHERE}.values: [] is not a list of length >= 1"),
    "twice": (eta(values=[0.1, 0.1]), f"{WHERE}.values: 0.1 is there twice"),
    "near": (eta(values=[0.1234561, 0.1234562]), f"{WHERE}.values: two values are 0.123456 when rounded to six"),
    "same": (eta(sets="model.mixer.cap"), "methods.swept.sweep: two axes set model.mixer.cap; keep one of them"),
    "word": (eta(values=["high"]), f"{WHERE}.values.0: 'high' is not a number"),
    "key": (eta(set="x"), f"{WHERE}: unknown key 'set'; did you mean 'sets'?"),
    "no axis": ({"methods": {"softpick": {"sweep": {}}}}, "methods.softpick.sweep: {} is not a mapping of length >= 1"),
    "floor": ({"noise_floor": {"reference": "swept"}}, "noise_floor: 'swept' is swept and has no run of its own; name"),
    "floor's point": (
        {"noise_floor": {"reference": "swept.eta_0.003-cap_20"}},
        "noise_floor: no point or variant 'swept.eta_0.003-cap_20'; did you mean 'swept.eta_0.003-cap_30'?",
    ),
    "floor's variant": ({"noise_floor": {"reference": "swept.low_cap"}}, "noise_floor: there is no method or arm"),
    "arm": (
        {"arms": {"second_hardware": {"variant_of": "swept"}}},
        "arms.second_hardware.variant_of: 'swept' is swept and has no run",
    ),
    "arm's point": ({"arms": {"second_hardware": {"variant_of": "swept.eta_1"}}}, "no point or variant 'swept.eta_1'"),
    "point": (
        group("swept.eta_0.03-cap_10"),
        "methods.swept.sweep: no point or variant 'swept.eta_0.03-cap_10'; did you mean 'swept.eta_0.003-cap_10'?",
    ),
    "half a point": (group("swept.eta_0.003"), "methods.swept.sweep: no point or variant 'swept.eta_0.003'; did you"),
    "no sweep": (group("softpick.eta_0.003"), "methods.softpick.variants: no variant 'eta_0.003' (there are ["),
    "point twice": (group("swept", POINTS[1]), f"runs.more: '{POINTS[1]}' is there twice; its method includes"),
    "two interventions": (
        overlay(
            eta(sets="interventions.learning_rate_factor.factor"),
            {"methods": {"swept": {"interventions": [{"name": "learning_rate_factor"}] * 2}}},
        ),
        f"{WHERE}.sets: the method has two interventions 'learning_rate_factor'; keep one",
    ),
    "variant": (
        {"methods": {"softpick": {"sweep": {"eta": ETA | {"values": [3]}}, "variants": {"eta_3": {}}}}},
        "methods.softpick.variants: 'eta_3' is also a point of the sweep; rename it",
    ),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_mistakes_are_named(written: Written, name: str) -> None:
    changes, message = MISTAKES[name]
    with pytest.raises(PlumblineError, match=re.escape(message)) as caught:
        study_config.load("transfer", "smoke", written(changes))
    assert "studies/transfer/study.yaml: " in str(caught.value)
