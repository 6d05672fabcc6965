"""A trial's runs: the study's own recipe but for what the configuration says, beside the study's own runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from plumbline import project
from plumbline.core.errors import PlumblineError
from plumbline.specs.config import load_config
from plumbline.specs.study_config import overlay
from plumbline.specs.trial import load, numbers, own_scale, scale_name

GIVEN = {"study": "transfer", "scale": "base", "method": "qknorm", "against": "baseline", "pack": "large", "steps": 9}
GIVEN |= {"warmup_steps": 2, "validation_sequences": 16, "seeds": [42, 43]}


def planned(**changes: Any) -> project.Project:
    return project.load(load_config() | {"preset": "smoke", "studies": ["transfer"], "trial": GIVEN | changes})


def test_a_trial_is_the_studys_recipe_with_what_is_asked_for() -> None:
    whole = planned()
    assert whole.trial is not None
    at = scale_name(GIVEN)
    assert at.startswith("base_9_steps_")
    keys = [f"transfer/{at}/{method}/s{seed}" for method in ("baseline", "qknorm") for seed in (42, 43)]
    assert list(whole.trial.runs) == keys
    ours, theirs = whole.runs[f"transfer/{at}/qknorm/s43"].spec, whole.runs["transfer/base/qknorm/s42"].spec
    assert (ours.train.steps, ours.schedule.warmup_steps, ours.data.pack) == (9, 2, "large")
    assert (ours.train.validate_every, ours.train.validation_sequences) == (9, 16), "read at its end alone"
    assert (ours.model, ours.optimizer, ours.train.batch_tokens) == (
        theirs.model, theirs.optimizer, theirs.train.batch_tokens
    )  # fmt: skip
    assert own_scale(ours.scale) == "base" and own_scale("base") == "base"
    assert len({run.spec.run_id for run in whole.runs.values()}) == len(whole.runs), "no run takes another one's place"


def test_whole_numbers_may_come_as_texts() -> None:
    """Of a nested value of its command line Snakemake makes texts alone."""
    texts = GIVEN | {"steps": "9", "warmup_steps": "2", "validation_sequences": "16", "seeds": ["42", "43"]}
    assert numbers(texts) == GIVEN
    assert planned(**texts).trial == planned().trial


def test_a_trial_changes_nothing_else() -> None:
    with_it, without = planned(), project.load(load_config() | {"preset": "smoke", "studies": ["transfer"]})
    assert without.trial is None
    assert with_it.targets.everything() == without.targets.everything()
    assert with_it.fingerprints.product("transfer", "table", "table2") == without.fingerprints.product(
        "transfer", "table", "table2"
    )
    # A copy keeps the name of the file.
    folder = f"transfer-{scale_name(GIVEN)}-qknorm-against-baseline"
    assert with_it.targets.copied_from("trial") == f"results/smoke/trial/{folder}/trial"
    with pytest.raises(PlumblineError, match=r"results/trial.md is the page of a trial, and .*make quick"):
        without.unknown_paths.refuse("results/trial.md")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "qk_norm"}, r"trial: runs: there is no method or arm 'qk_norm'; did you mean 'qknorm'"),
        ({"method": "baseline"}, "'baseline' is also `against`"),
        ({"scale": "bse"}, "no scale 'bse' at preset 'smoke'; did you mean 'base'"),
        ({"pack": "lrge"}, "has no 'lrge'; did you mean 'large'"),
        ({"study": "premature"}, r"studies: 'premature' is not among \['transfer'\]"),
        ({"warmup_steps": 10}, r"warmup_steps \(10\) must lie within the run's 9 steps"),
        ({"validation_sequences": 33}, "validation_sequences: 33, but the held-out pack of .* has 32 at preset smoke"),
        ({"step": 9}, "trial: unknown key 'step'; did you mean 'steps'"),
        ({"seeds": [42]}, "trial.seeds: .*too short"),
    ],
)
def test_what_a_trial_cannot_be_is_said(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PlumblineError, match=says):
        planned(**changes)


def test_a_method_that_says_its_own_steps_is_in_no_trial() -> None:
    study = planned().studies["transfer"]
    changed = overlay(study.definition, {"methods": {"qknorm": {"train": {"steps": 20}}}})
    with pytest.raises(PlumblineError, match="trial: steps: 'qknorm' has 20 of its own"):
        load(GIVEN, dataclasses.replace(study, definition=changed))


@pytest.mark.parametrize("change", [{"warmup_steps": 3}, {"pack": "base"}, {"validation_sequences": 8}, {"steps": 8}])
def test_trials_that_differ_share_no_folder(change: dict[str, Any]) -> None:
    one, other = planned().trial, planned(**change).trial
    assert one is not None and other is not None
    assert not set(one.runs) & set(other.runs) and one.name != other.name
    assert own_scale(other.scale) == "base"


def test_other_methods_and_seeds_of_a_trial_share_the_baselines_runs() -> None:
    one, other = planned().trial, planned(method="value_residual", seeds=[42, 43, 44]).trial
    assert one is not None and other is not None
    assert set(one.runs) & set(other.runs) == {run.key for run in one.of_method("baseline")}


def test_a_study_with_a_scale_of_a_trials_name_is_refused() -> None:
    study = planned().studies["transfer"]
    scales = study.definition["scales"] | {scale_name(GIVEN): study.definition["scales"]["base"]}
    with pytest.raises(PlumblineError, match="trial: scale: the runs of this trial would be those of the scale"):
        load(GIVEN, dataclasses.replace(study, definition=study.definition | {"scales": scales}))
    assert own_scale("base_60_steps") == "base_60_steps", "a study's own, whatever it is called"


def test_half_a_trial_names_what_is_missing() -> None:
    half = {key: value for key, value in GIVEN.items() if key != "steps"}
    with pytest.raises(PlumblineError, match="trial: 'steps' is a required property; add it"):
        project.load(load_config() | {"preset": "smoke", "studies": ["transfer"], "trial": half})
