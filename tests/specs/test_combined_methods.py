"""Methods of a study as factors: what each brings to a slot, and combinations that are runs of the study."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline import project
from plumbline.core.errors import PlumblineError
from plumbline.specs import combined_methods, experiment_runs, study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import ROOT, load_config

#: Study -> the method that the others are compared with.
BASELINES = {"transfer": "baseline", "key_norms": "as_published", "premature": "gpt", "quack": "default.eta_0.003"}


def load_project(name: str, **experiment: Any) -> project.Project:
    return project.load(load_config() | {"preset": "smoke", "studies": [name], "experiment": experiment})


def specs_of(study: str) -> dict[str, RunSpec]:
    loaded = load_project(study).study(study)
    scale = next(iter(loaded.definition["scales"]))
    arms = [{"method": name, "seeds": [42]} for name in loaded.methods]
    settings = {"study": study, "scale": scale, "against": BASELINES[study], "arms": arms}
    return {run.spec.method: run.spec for run in experiment_runs.load(settings, loaded).runs.values()}


def levels_of(study: str) -> dict[str, tuple[str, ...]]:
    return combined_methods.find_levels(specs_of(study), BASELINES[study])


def test_transfers_factors_are_slots_with_every_change_once() -> None:
    assert levels_of("transfer") == {
        "query_key": ("baseline", "qknorm"),
        "values": ("baseline", "value_residual"),
        "mixer": ("baseline", "selective_attn", "softmax_cap", "ssmax", "sigmoid_attn", "softpick", "diff_attn"),
        "output": ("baseline", "gated_attn_qknorm"),
        "ffn": ("baseline", "geglu_ffn", "relu_squared"),
        "placement": ("baseline", "sandwich_norm", "hybrid_norm"),
        "residual": ("baseline", "denseformer", "layerscale", "hyper", "attnres"),
    }


@pytest.mark.parametrize("study", BASELINES)
def test_a_level_alone_trains_what_its_method_trains(study: str) -> None:
    """The whole method where it changes one slot; and each method is the combination of its levels."""
    specs, against = specs_of(study), specs_of(study)[BASELINES[study]]
    levels = combined_methods.find_levels(specs, against.method)
    assert levels, "a study whose methods differ in slots"
    for name, spec in specs.items():
        choices = combined_methods.list_choices(spec)
        settings = {
            slot: next(
                method for method in methods if combined_methods.list_choices(specs[method])[slot] == choices[slot]
            )
            for slot, methods in levels.items()
        }
        combined = combined_methods.combine(against, {slot: specs[method] for slot, method in settings.items()})
        assert combined_methods.find_method(combined, specs) == name
        changed = [slot for slot, method in settings.items() if method != against.method]
        if len(changed) == 1:
            assert settings[changed[0]] == combined_methods.name_level(changed[0], name, spec, against) == name


def test_a_method_among_the_arms_is_the_studys_own_run() -> None:
    whole = load_project("transfer")
    arms = [{"method": name, "seeds": [42]} for name in whole.study("transfer").methods]
    screened = load_project("transfer", study="transfer", scale="base", against="baseline", arms=arms)
    assert screened.experiment is not None
    for key, run in screened.experiment.runs.items():
        assert run.spec.run_id == whole.runs[key].spec.run_id
    assert screened.runs == whole.runs


def test_a_combination_has_both_changes_and_nothing_else() -> None:
    specs = specs_of("transfer")
    combined = combined_methods.combine(specs["baseline"], {"ffn": specs["geglu_ffn"], "mixer": specs["ssmax"]})
    assert combined.key == "transfer/base/ssmax+geglu_ffn/s42"
    expected = specs["baseline"].to_dict()
    expected["model"] |= {"mixer": specs["ssmax"].model.slots["mixer"], "ffn": specs["geglu_ffn"].model.slots["ffn"]}
    expected["components"] |= {
        f"model.{slot}": specs[name].components[f"model.{slot}"]
        for slot, name in (("mixer", "ssmax"), ("ffn", "geglu_ffn"))
    }
    assert combined.to_dict() == expected | {"method": "ssmax+geglu_ffn", "probes": []}


def test_part_of_a_method_is_named_by_its_slot() -> None:
    """Else it would take the place of the method's own runs."""
    specs = specs_of("transfer")
    gate = combined_methods.combine(specs["baseline"], {"output": specs["gated_attn_qknorm"]})
    assert gate.method == "gated_attn_qknorm.output"
    assert combined_methods.find_method(gate, specs) is None
    both = combined_methods.combine(
        specs["baseline"], {"output": specs["gated_attn_qknorm"], "query_key": specs["qknorm"]}
    )
    assert combined_methods.find_method(both, specs) == "gated_attn_qknorm"


def test_no_two_combinations_share_a_name() -> None:
    specs, levels = specs_of("transfer"), levels_of("transfer")
    pairs = [
        {first: specs[one], second: specs[other]}
        for first, second in combinations(levels, 2)
        for one in levels[first][1:]
        for other in levels[second][1:]
    ]
    names = [combined_methods.combine(specs["baseline"], pair).method for pair in pairs]
    assert len(set(names) - specs.keys()) == len(pairs) > 100


def test_what_no_slot_has_is_named() -> None:
    specs = specs_of("transfer")
    longer = RunSpec.from_dict(specs["qknorm"].to_dict() | {"train": specs["qknorm"].to_dict()["train"] | {"steps": 7}})
    assert combined_methods.find_other_changes(longer, specs["baseline"]) == ["train.steps"]
    assert combined_methods.find_other_changes(specs["hyper"], specs["baseline"]) == []


def test_arms_come_back_as_they_are_from_a_command_line_of_texts() -> None:
    arms = [
        {"levels": {"mixer": "softpick", "ffn": "geglu_ffn"}, "seeds": ["7", "8"]},
        {"method": "qknorm", "seeds": ["9"]},
    ]
    settings = {"study": "transfer", "scale": "base", "against": "baseline", "arms": arms}
    loaded = load_project("transfer", **json.loads(json.dumps(settings)))
    assert loaded.experiment is not None
    keys = ["softpick+geglu_ffn/s7", "softpick+geglu_ffn/s8", "qknorm/s9"]
    assert list(loaded.experiment.runs) == [f"transfer/base/{key}" for key in keys]
    budget = {"steps": 9, "warmup_steps": 2, "pack": "large", "validation_sequences": 16}
    longer = load_project("transfer", **settings, **budget).experiment
    assert longer is not None
    assert {run.spec.train.steps for run in longer.runs.values()} == {9}
    assert {run.spec.scale for run in longer.runs.values()} == {longer.scale} != {"base"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": [{"seeds": [1]}]}, "experiment.arms.0.*`method`.*`levels`"),
        ({"arms": [{"seeds": [1], "method": "qknorm", "levels": {"mixer": "ssmax"}}]}, "experiment.arms.0.*`levels`"),
        ({"arms": [{"seeds": [1], "levels": {"mixer": "ssmx"}}]}, "'ssmx'; did you mean 'ssmax'"),
        ({"seeds": [1]}, "'seeds'.*'arms'"),
    ],
)
def test_what_an_arm_cannot_be_is_said(change: dict[str, Any], message: str) -> None:
    settings = {
        "study": "transfer",
        "scale": "base",
        "against": "baseline",
        "arms": [{"method": "qknorm", "seeds": [1]}],
    }
    with pytest.raises(PlumblineError, match=message):
        load_project("transfer", **settings | change)


def test_a_slot_that_is_not_there_is_refused() -> None:
    specs = specs_of("transfer")
    with pytest.raises(PlumblineError, match="'mixr'; did you mean 'mixer'"):
        combined_methods.combine(specs["baseline"], {"mixr": specs["ssmax"]})


def test_what_a_study_brings_is_combined_as_its_own(tmp_path: Path) -> None:
    """And what it takes from the study that it extends remains that one's."""
    own = {"study": "mine", "title": "One of my own", "extends": "transfer"}
    own |= {"methods": {"capped": {"label": "Capped", "model": {"mixer": {"name": "softmax_cap", "cap": 30.0}}}}}
    for part in ("config/corpora", "studies/transfer"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "studies/mine").mkdir()
    (tmp_path / "studies/mine/study.yaml").write_text(yaml.safe_dump(own))
    levels = [{"mixer": "capped", "ffn": "relu_squared"}, {"query_key": "qknorm", "ffn": "relu_squared"}]
    arms = [{"levels": each, "seeds": [7]} for each in levels]
    settings = {"study": "mine", "scale": "base", "against": "baseline", "arms": arms}
    runs = experiment_runs.load(settings, study_config.load("mine", "smoke", tmp_path), tmp_path).runs
    assert list(runs) == ["mine/base/capped+relu_squared/s7", "transfer/base/qknorm+relu_squared/s7"]
    assert runs["mine/base/capped+relu_squared/s7"].spec.model.slots["mixer"]["cap"] == 30.0
