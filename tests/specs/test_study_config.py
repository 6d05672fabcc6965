"""From YAML to runs: which layer wins, which runs there are, and what cannot be meant."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from plumbline.specs.yaml_files import PRESETS, ROOT, load_study

ORIGINAL = load_study("transfer")


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], Any]], Path]:
    """A root whose transfer study was changed by a function."""

    def write(change: Callable[[dict[str, Any]], Any]) -> Path:
        content = copy.deepcopy(ORIGINAL)
        change(content)
        (tmp_path / "studies/transfer").mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / "config/corpora", tmp_path / "config/corpora", dirs_exist_ok=True)
        (tmp_path / "studies/transfer/study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path

    return write


#: Presets whose baseline has six seeds.
CHEAP = ("mini", "evening", "demo")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_transfer_study(preset: str) -> None:
    study = study_config.load("transfer", preset)
    assert len(study.methods) == 20
    assert len(study.group("base")) == 20
    assert len(study.group("base", "noise_floor")) == (29 if preset in CHEAP else 26)
    seeds = [run.spec.init_seed for run in study.runs.values() if run.key.startswith("transfer/base/baseline/")]
    assert seeds == list(range(42, 48 if preset in CHEAP else 45))
    assert len({run.spec.run_id for run in study.runs.values()}) == len(study.runs)
    assert {run.spec.preset for run in study.runs.values()} == {preset}
    assert all(key == run.key for key, run in study.runs.items())
    assert ("transfer/base/provoked_divergence/s42" in study.runs) == (preset in ("demo", "smoke"))


def test_seeds_of_a_method_differ_in_initialisation_alone() -> None:
    runs = study_config.load("transfer", "paper").runs
    first, other = (runs[f"transfer/base/qknorm/s{seed}"].spec.to_dict() for seed in (42, 43))
    assert {key for key in first if first[key] != other[key]} == {"init_seed"}


def test_a_method_changes_what_it_names_and_nothing_else() -> None:
    runs = study_config.load("transfer", "paper").runs
    baseline, softpick = (runs[f"transfer/base/{name}/s42"].spec.to_dict() for name in ("baseline", "softpick"))
    # The baseline names something too: more points at which its probe reads.
    assert {key for key in baseline if baseline[key] != softpick[key]} == {"method", "model", "components", "probes"}
    changed = {key for key in baseline["model"] if baseline["model"][key] != softpick["model"][key]}
    assert changed == {"mixer"} and softpick["model"]["mixer"]["name"] == "softpick"


def test_a_run_of_two_entries_or_groups_is_one_run(changed) -> None:
    def twice(content: dict[str, Any]) -> None:
        content["runs"]["again"] = [{"scale": "base", "methods": ["softpick"], "seeds": [42, 43]}]

    study = study_config.load("transfer", "smoke", changed(twice))
    assert len(study.runs) == len(study_config.load("transfer", "smoke").runs)
    assert study.runs["transfer/base/softpick/s42"].groups == ("base", "concentration", "again")
    assert study.runs["transfer/base/softpick/s43"].groups == ("noise_floor", "again")
    assert [run.key for run in study.group("again")] == ["transfer/base/softpick/s42", "transfer/base/softpick/s43"]


def test_an_entry_of_runs_may_be_of_some_presets_alone(changed) -> None:
    def add(presets: list[str]) -> Path:
        entry = {"scale": "base", "methods": ["softpick"], "seeds": [7], "presets": presets}
        return changed(lambda content: content["runs"]["base"].append(entry))

    key = "transfer/base/softpick/s7"
    root = add(["demo", "mini"])
    assert [preset for preset in PRESETS if key in study_config.load("transfer", preset, root).runs] == ["mini", "demo"]
    with pytest.raises(PlumblineError, match=r"runs\.base\.1\.presets.*'huge'"):
        study_config.load("transfer", "demo", add(["huge"]))
    with pytest.raises(PlumblineError, match=r"method.*'sofpick'"):
        unnamed = {"scale": "base", "methods": ["sofpick"], "seeds": [7], "presets": ["mini"]}
        study_config.load("transfer", "demo", changed(lambda content: content["runs"]["base"].append(unnamed)))


def test_a_variant_is_its_method_with_a_change(changed) -> None:
    def variant(content: dict[str, Any]) -> None:
        content["methods"]["softmax_cap"]["variants"] = {"low_cap": {"model": {"mixer": {"cap": 30.0}}}}
        content["runs"]["variants"] = [{"scale": "base", "methods": ["softmax_cap.low_cap"], "seeds": [42]}]

    study = study_config.load("transfer", "smoke", changed(variant))
    mixers = [run.spec.to_dict()["model"]["mixer"] for run in study.group("variants")]
    assert mixers == [{"name": "softmax_cap", "cap": 30.0}]
    assert study.label("softmax_cap.low_cap") == "Softmax-Cap (low cap)"


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if preset != "evening"])
def test_variants_are_every_variant_of_every_method(changed, preset: str) -> None:
    def one_more(content: dict[str, Any]) -> None:
        content["methods"]["softmax_cap"]["variants"] = {"low_cap": {"model": {"mixer": {"cap": 30.0}}}}

    before, after = study_config.load("transfer", preset), study_config.load("transfer", preset, changed(one_more))
    expected = [f"{name}.{word}" for name, entry in ORIGINAL["methods"].items() for word in entry.get("variants", {})]
    assert [run.spec.method for run in before.group("variants")] == before.variants == expected
    assert {(run.spec.scale, run.spec.init_seed) for run in before.group("variants")} == {("base", 42)}
    assert after.runs.keys() - before.runs.keys() == {"transfer/base/softmax_cap.low_cap/s42"}, "in one place"
    assert (after.m, list(after.methods)) == (before.m, list(before.methods)) and before.m == 19


def test_an_arm_is_its_method_under_the_presets_circumstance() -> None:
    precision = {}
    for preset in PRESETS:
        runs = study_config.load("transfer", preset).runs
        arm, baseline = (runs[f"transfer/base/{name}/s42"].spec for name in ("second_hardware", "baseline"))
        precision[preset] = (baseline.train.precision, arm.train.precision)
        assert arm.model == baseline.model
    assert precision["evening"] == precision["demo"] == precision["smoke"] == ("float32", "bfloat16")
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
    ("runs.noise_floor.0.methods", ["softpick.mine"], "methods.softpick.variants: no variant 'mine' (there are ["),
    ("runs.base.0.scale", "bse", "scales: no scale 'bse' at preset 'demo'; did you mean 'base'? (there are ["),
    ("runs.noise_floor.0.methods", ["softpick."], "methods.softpick.variants: no variant '' (there are ["),
    ("arms.second_hardware.variant_of", "second_hardware", "variant_of: second_hardware of second_hardware, and so"),
    ("arms.second_hardware.variant_of", "basline", "there is no method or arm 'basline'; did you mean 'baseline'?"),
    ("targets.table2.runs", ["base", "nose"], "targets.table2.runs: there is no group of runs 'nose'"),
    ("noise_floor.reference", "basline", "noise_floor: there is no method or arm 'basline'"),
    (
        "arms.softpick",
        {"label": "S", "variant_of": "baseline", "note": ""},
        "arms: 'softpick' is also the name of a method",
    ),
    ("methods.softpick.model.mixer.name", "softpik", "base/softpick: model.mixer.name: no component 'softpik'"),
    ("methods.softpick.model.mixer.varient", "original", "no option 'varient'; did you mean 'variant'?"),
    ("methods.softmax_cap.model.mixer.cap", "high", "transfer/base/softmax_cap: model.mixer.cap: 'high' is not float"),
    ("recipe.optimizer.learning_rte", 1e-3, "'adamw' has no option 'learning_rte'; did you mean 'learning_rate'?"),
    ("recipe.optimizer.beta3", 0.9, "optimizer: the component 'adamw' has no option 'beta3'; did you mean 'beta"),
    ("recipe.optimizer.name", "adam", "optimizer.name: no component 'adam'; did you mean 'adamw'?"),
    ("recipe.schedule.name", "cosin", "schedule.name: no component 'cosin'; did you mean 'cosine'?"),
    ("recipe.schedule.flor", 0.1, "schedule: the component 'cosine' has no option 'flor'; did you mean 'floor'?"),
    ("recipe.interventions", [{"name": "nonee"}], "interventions[0].name: no component 'nonee'; did you mean 'none'?"),
    ("recipe.data.pack", "bsae", "presets.demo.packs has no 'bsae'; did you mean 'base'?"),
    ("corpus", "climbmx", "corpus: there is no "),
    ("scales.base.demo.train.batch_tokens", 2300, "train.batch_tokens (2300) is not a multiple of model.context (128)"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_mistakes_are_named(changed, path: str, value: Any, message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        study_config.load("transfer", "demo", changed(at(path, value)))
    assert str(caught.value).startswith("studies/transfer/study.yaml: ")
    assert message in str(caught.value)


def test_thousands_of_runs_take_no_torch(changed) -> None:
    root = changed(at("runs.base", [{"scale": "base", "methods": "all", "seeds": list(range(100))}]))
    code = (
        "import sys; from pathlib import Path; from plumbline.specs import study_config;"
        f"print(len(study_config.load('transfer', 'paper', Path({str(root)!r})).runs), 'torch' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    runs, torch = process.stdout.split()
    assert int(runs) > 2000 and torch == "False"


def test_a_scale_says_how_many_machines_work_on_a_run() -> None:
    paper, demo = study_config.load("transfer", "paper"), study_config.load("transfer", "demo")
    assert {paper.runs[f"transfer/{scale}/baseline/s42"].size for scale in ("base", "large")} == {"node", "two_nodes"}
    assert {run.size for run in demo.runs.values()} == {"one_gpu"}


def test_a_size_class_is_no_part_of_the_identity(changed) -> None:
    before = study_config.load("transfer", "smoke")
    after = study_config.load("transfer", "smoke", changed(at("scales.base.smoke.size", "node")))
    key = "transfer/base/baseline/s42"
    assert (before.runs[key].size, after.runs[key].size) == ("one_gpu", "node")
    assert before.runs[key].spec.run_id == after.runs[key].spec.run_id


def test_another_source_of_documents_is_another_run() -> None:
    packaged, hub = (study_config.load("transfer", "smoke", source=source) for source in ("packaged", "hub"))
    key = "transfer/base/baseline/s42"
    assert packaged.runs[key].spec.run_id == study_config.load("transfer", "smoke").runs[key].spec.run_id
    assert packaged.runs[key].spec.run_id != hub.runs[key].spec.run_id


MINE = {
    "study": "mine",
    "title": "A modification of one's own",
    "extends": "transfer",
    "methods": {"capped": {"label": "Capped", "model": {"mixer": {"name": "softmax_cap", "cap": 30.0}}}},
    "seeds": [42, 43],
}


@pytest.fixture
def mine(changed) -> Callable[..., Path]:
    """A root with a study that extends the transfer study."""

    def write(**keys: Any) -> Path:
        root = changed(lambda content: None)
        (root / "studies/mine").mkdir(exist_ok=True)
        (root / "studies/mine/study.yaml").write_text(yaml.safe_dump(MINE | keys))
        return root

    return write


def test_a_study_that_extends_another_reuses_its_runs(mine) -> None:
    root = mine()
    study, parent = study_config.load("mine", "smoke", root), study_config.load("transfer", "smoke", root)
    assert list(study.methods) == ["baseline", "capped"] and study.m == 1 and study.reference == "baseline"
    shared = study.runs.keys() & parent.runs.keys()
    for method in ("baseline", "qknorm", "softpick"):
        of_both = [{key for key in owner.runs if f"base/{method}/" in key} for owner in (study, parent)]
        assert of_both[0] == of_both[1], "a reference has the parent's seeds"
    assert {f"transfer/base/baseline/s{seed}" for seed in (42, 43, 44)} <= shared
    assert all(study.runs[key].spec == parent.runs[key].spec for key in shared)
    own = study.runs.keys() - shared
    assert own == {"mine/base/capped/s42", "mine/base/capped/s43"}
    assert study.key("base", "capped", 42) == "mine/base/capped/s42"
    assert study.key("base", "qknorm", 43) == "transfer/base/qknorm/s43"
    assert study.code == "transfer" and study.label("capped") == "Capped" and study.label("softpick") == "Softpick"
    assert {"table2", "noise_floor", "fig2"} <= study.definition["targets"].keys()
    assert not {"table5", "table6"} & study.definition["targets"].keys(), "their arms are the parent's own"
    assert "variants" not in study.definition["targets"], "and the variants are of the parent's methods"
    assert len(study_config.load("transfer", "smoke", root).methods) == 20 and parent.m == 19


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"extends": "transfr"}, "study 'transfr'; did you mean 'transfer'"),
        ({"methods": {"qknorm": {"label": "Q"}}}, "'qknorm' is a method"),
        ({"corpus": "climbmix"}, "corpus: a study that extends"),
        ({"measurements": {}}, "measurements: a study that extends"),
        ({"runs": {"more": [{"scale": "base", "methods": ["cpped"], "seeds": [1]}]}}, "did you mean 'capped'?"),
    ],
)
def test_what_an_extension_cannot_say(mine, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=re.escape(message)):
        study_config.load("mine", "smoke", mine(**keys))


MEASURED: dict[str, Any] = {
    "device": "gpu",
    "runs": ["base"],
    "paper": {"widths": [1, 2], "duration": "5 min"},
    "demo": {},
}


def test_a_measurement_has_options_at_the_presets_that_it_names(changed) -> None:
    def add_measurement(content: dict[str, Any]) -> None:
        content["measurements"] = {"times": MEASURED}

    root = changed(add_measurement)
    paper, demo = (study_config.load("transfer", preset, root).measurements["times"] for preset in ("paper", "demo"))
    assert (paper.options, paper.seconds, paper.device, paper.runs) == ({"widths": [1, 2]}, 300, "gpu", ("base",))
    assert (demo.options, demo.seconds, demo.key) == ({}, 1800, "measured/transfer/times")
    assert (
        study_config.load("transfer", "smoke", root).measurements
        == {}
        == study_config.load("transfer", "smoke").measurements
    )


@pytest.mark.parametrize(
    ("entry", "names", "message"),
    [
        (MEASURED, ["tims"], "measurement 'tims'; did you mean 'times'"),
        (MEASURED | {"runs": ["bse"]}, [], "group of runs 'bse'"),
        (MEASURED | {"demmo": {}}, [], "'demmo'; did you mean 'demo'"),
        (MEASURED | {"device": "gpus"}, [], "'gpus' is not one of ['cpu', 'gpu'"),
        (
            {"paper": {}},
            ["times"],
            "targets.table4.measurements: 'times' has no options",
        ),
        (MEASURED | {"demo": {"duration": "5"}}, [], "duration: '5' is not a time"),
    ],
)
def test_mistakes_in_measurements_are_named(changed, entry: dict[str, Any], names: list[str], message: str) -> None:
    def add_measurement(content: dict[str, Any]) -> None:
        content["measurements"] = {"times": entry}
        content["targets"]["table4"]["measurements"] = names

    with pytest.raises(PlumblineError, match=re.escape(message)):
        study_config.load("transfer", "demo", changed(add_measurement))


def test_study_that_extends_another_may_have_suite_of_its_own(mine) -> None:
    root = mine(suite="premature7")
    study, parent = study_config.load("mine", "smoke", root), study_config.load("transfer", "smoke", root)
    assert study.suite is not None and study.suite.name == "premature7"
    reference, own = study.runs["transfer/base/baseline/s42"], study.runs["mine/base/capped/s42"]
    assert reference.spec == parent.runs[reference.key].spec, "trained once"
    assert (reference.suite, own.suite, parent.runs[reference.key].suite) == ("premature7", "premature7", "climb12")
    assert (reference.scores_key, own.scores_key) == ("mine/base/baseline/s42", own.key)
    before = study_config.load("mine", "smoke", mine()).runs[own.key]
    assert own.spec == before.spec and before.suite == "climb12", "trained already, and scored on another suite now"
    assert study.preset_named == "smoke, suite: premature7" and parent.preset_named == "smoke"
    alike = replace(reference, scored_by=None)
    assert study_config.hash_expected_runs([reference]) != study_config.hash_expected_runs([alike])


def test_claims_rest_on_no_small_models() -> None:
    """So that it changes nothing of them which sizes are asked for."""
    whole, one = (study_config.load("transfer", "evening", sizes=sizes) for sizes in ((), ("base",)))
    assert len(one.small_runs) < len(whole.small_runs)
    claimed = [{run.key for run in study.group(*study.claimed_groups)} for study in (whole, one)]
    assert claimed[0] == claimed[1] and not claimed[0] & whole.small_runs.keys()
