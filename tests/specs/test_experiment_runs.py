"""The runs of an experiment: the study's own recipe except for what the configuration says, next to the study's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from plumbline import project
from plumbline.core.errors import PlumblineError
from plumbline.specs.experiment_runs import budget, convert_numbers, load, own_budget, own_scale, scale_name
from plumbline.specs.spec_changes import overlay
from plumbline.specs.yaml_files import load_config

ARMS = {"study": "transfer", "scale": "base", "method": "qknorm", "against": "baseline"}
ARMS |= {"baseline_seeds": [42, 43], "seeds": [1042]}
GIVEN = ARMS | {"pack": "large", "steps": 9, "warmup_steps": 2, "validation_sequences": 16}


def load_project(terms: dict[str, Any] = GIVEN, **changes: Any) -> project.Project:
    return project.load(load_config() | {"preset": "smoke", "studies": ["transfer"], "experiment": terms | changes})


def test_runs_are_the_studys_recipe_with_what_is_asked_for() -> None:
    whole = load_project()
    assert whole.experiment is not None
    at = scale_name(GIVEN)
    assert at.startswith("base_9_steps_")
    keys = [f"transfer/{at}/baseline/s42", f"transfer/{at}/baseline/s43", f"transfer/{at}/qknorm/s1042"]
    assert list(whole.experiment.runs) == keys
    ours, theirs = whole.runs[keys[2]].spec, whole.runs["transfer/base/qknorm/s42"].spec
    assert (ours.train.steps, ours.schedule.warmup_steps, ours.data.pack) == (9, 2, "large")
    assert (ours.train.validate_every, ours.train.validation_sequences) == (9, 16), "read at its end alone"
    assert (ours.model, ours.optimizer, ours.train.batch_tokens) == (
        theirs.model, theirs.optimizer, theirs.train.batch_tokens
    )  # fmt: skip
    assert own_scale(ours.scale) == "base" and own_scale("base") == "base"
    assert len({run.spec.run_id for run in whole.runs.values()}) == len(whole.runs), "no run takes another one's place"


def test_without_budget_they_are_studys_own_runs() -> None:
    whole, before = load_project(ARMS), load_project({})
    assert whole.experiment is not None and next(iter(whole.experiment.runs)) == "transfer/base/baseline/s42"
    assert all(whole.runs[key] == run for key, run in before.runs.items()), "what was finished is used"
    fresh = whole.runs["transfer/base/qknorm/s1042"].spec
    own = before.runs["transfer/base/qknorm/s42"].spec
    assert fresh.to_dict() | {"init_seed": 42} == own.to_dict()


def test_seed_may_change_order_of_data_too_in_folder_of_its_own() -> None:
    both = load_project(ARMS, vary="both").experiment
    assert both is not None and both.scale != "base" and own_scale(both.scale) == "base"
    assert [(run.spec.init_seed, run.spec.data_seed) for run in both.runs.values()] == [
        (42, 42),
        (43, 43),
        (1042, 1042),
    ]


def test_a_budget_of_the_scales_own_steps_is_the_scales_own() -> None:
    whole = load_project({})
    study = whole.study("transfer")
    own, read, runs = own_budget(study, "base"), whole.corpora[study.corpus], whole.runs.values()
    assert budget(study, "base", own["steps"], read, runs) == own | {"validation_sequences": read.validation}
    longer = budget(study, "base", 10**6, read, runs)
    assert longer["pack"] == "large" and longer["warmup_steps"] >= 10**6 * own["warmup_steps"] / own["steps"]


def test_a_budget_leaves_out_of_the_loss_what_interventions_read() -> None:
    whole = project.load(load_config() | {"preset": "smoke", "studies": ["premature"]})
    study = whole.study("premature")
    read = whole.corpora[study.corpus]
    arms = ARMS | {"study": "premature", "method": "gpt_slow", "against": "gpt"}
    experiment = arms | budget(study, "base", 9, read, whole.runs.values())
    assert experiment["validation_sequences"] == read.validation - 8
    assert load(experiment, study).runs
    with pytest.raises(PlumblineError, match="25, and 8 behind"):
        load(experiment | {"validation_sequences": 25}, study)


def test_whole_numbers_may_come_as_texts() -> None:
    """Of a nested value of its command line Snakemake makes texts alone."""
    texts = GIVEN | {"steps": "9", "warmup_steps": "2", "validation_sequences": "16", "seeds": ["1042"]}
    assert convert_numbers(texts) == GIVEN
    assert load_project(texts).experiment == load_project().experiment


def test_an_experiment_changes_nothing_else() -> None:
    with_it, without = load_project(), load_project({})
    assert without.experiment is None
    assert with_it.targets.list_all_products() == without.targets.list_all_products()
    assert with_it.fingerprints.product("transfer", "table", "table2") == without.fingerprints.product(
        "transfer", "table", "table2"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "qk_norm"}, "'qk_norm'; did you mean 'qknorm'"),
        ({"method": "baseline"}, "'baseline' is also `against`"),
        ({"scale": "bse"}, "no scale 'bse'.*'smoke'.*'base'"),
        ({"pack": "lrge"}, "no 'lrge'; did you mean 'large'"),
        ({"study": "premature"}, r"studies: 'premature' is not among \['transfer'\]"),
        ({"warmup_steps": 10}, r"warmup_steps \(10\).*run's 9"),
        ({"validation_sequences": 33}, "validation_sequences: 33.*has 32"),
        ({"step": 9}, "'step'; did you mean 'steps'"),
        ({"seeds": [42, 42]}, "experiment.seeds: 42 is there twice"),
    ],
)
def test_what_an_experiment_cannot_be_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        load_project(**changes)


@pytest.mark.parametrize("missing", ["seeds", "pack"])
def test_half_an_experiment_names_what_is_missing(missing: str) -> None:
    with pytest.raises(PlumblineError, match=f"experiment: .*'{missing}'"):
        load_project({key: value for key, value in GIVEN.items() if key != missing})


def test_a_method_with_its_own_steps_is_in_no_experiment() -> None:
    study = load_project().studies["transfer"]
    changed = overlay(study.definition, {"methods": {"qknorm": {"train": {"steps": 20}}}})
    with pytest.raises(PlumblineError, match="experiment: steps: 'qknorm' has 20"):
        load(GIVEN, dataclasses.replace(study, definition=changed))


@pytest.mark.parametrize("change", [{"warmup_steps": 3}, {"pack": "base"}, {"validation_sequences": 8}, {"steps": 8}])
def test_experiments_that_differ_share_no_folder(change: dict[str, Any]) -> None:
    first, other = load_project().experiment, load_project(**change).experiment
    assert first is not None and other is not None
    assert not set(first.runs) & set(other.runs)
    assert own_scale(other.scale) == "base"


def test_a_study_with_a_scale_of_that_name_is_refused() -> None:
    study = load_project().studies["transfer"]
    scales = study.definition["scales"] | {scale_name(GIVEN): study.definition["scales"]["base"]}
    with pytest.raises(PlumblineError, match=r"experiment: scale: .*those of the"):
        load(GIVEN, dataclasses.replace(study, definition=study.definition | {"scales": scales}))
    assert own_scale("base_60_steps") == "base_60_steps", "a study's own, whatever it is called"
