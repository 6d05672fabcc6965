"""interpretations.md states every interpretation, arm and stand-in of its study."""

from __future__ import annotations

import pytest

from plumbline.results.interpretations import _format_value, write_interpretations
from plumbline.specs import corpus, study_config


def page(preset: str, source: str = corpus.AS_THE_CORPUS_SAYS) -> str:
    study = study_config.load("transfer", preset, source=source)
    return write_interpretations(study, corpus.load(study.corpus, preset, source))


@pytest.mark.parametrize("preset", ["paper", "demo"])
def test_every_interpretation_and_arm_is_there(preset):
    study = study_config.load("transfer", preset)
    text = page(preset)
    assert f"preset {preset}" in text and "Generated from `studies/transfer/study.yaml`" in text
    for interpretation in study.definition["interpretations"]:
        assert interpretation["choice"] in text and interpretation["text"] in text and interpretation["source"] in text
    for name, arm in study.definition["arms"].items():
        assert f"`{name}`" in text and arm["label"] in text
    assert text.index("## Interpretations that apply") < text.index("## Runs outside the comparison")


def test_interpretations_of_another_preset_stand_apart():
    text = page("demo")
    in_force, apart = text.split("## Interpretations for other presets")
    assert "### tokens per step" in apart and "### demo learning rate" in in_force
    assert "differs from `baseline` by train.precision = bfloat16" in text and "The paper's is 1.2B." in text


def test_an_arm_says_everything_that_it_changes():
    """Its own part and the preset's together, lists included."""
    study = study_config.load("transfer", "demo")
    arm = study.definition["arms"]["second_hardware"]
    arm |= {"interventions": [{"name": "freeze", "role": "norm"}], "model": {"ffn_width": 7, "layers": 3}}
    arm["demo"] = {"model": {"ffn_width": 9}}
    text = write_interpretations(study, corpus.load(study.corpus, "demo"))
    arm_line = next(line for line in text.splitlines() if "differs from `baseline`" in line)
    assert 'interventions = [{"name": "freeze", "role": "norm"}]' in arm_line
    assert "model.ffn_width = 9" in arm_line and "model.layers = 3" in arm_line


def test_an_arm_that_is_not_run_is_said():
    assert "Not run under paper." in page("paper")


def test_the_corpus_is_told_with_the_source_it_is_read_from():
    assert "Corpus `climbmix` (config/corpora/climbmix.yaml): documents from packaged," in page("demo")
    assert "documents from packaged_large," in page("demo", "packaged_large")


def test_a_study_without_arms_suite_and_noise_floor():
    whole = study_config.load("transfer", "demo")
    rest = {key: value for key, value in whole.definition.items() if key not in ("arms", "suite", "noise_floor")}
    bare = study_config.Study(name="bare", preset="demo", definition=rest | {"interpretations": []}, runs={})
    text = write_interpretations(bare, corpus.load(bare.corpus, "demo"))
    assert text.count("None.") == 2 and "Evaluation" not in text and "Scale `base` is 1.2M" in text


@pytest.mark.parametrize("name", ["transfer", "premature", "query_free", "quack", "key_norms"])
def test_what_the_demo_changes_from_the_paper_is_on_the_page(name):
    """By the specs of its runs, key by key; the data are the line of the corpus."""
    paper, demo = (study_config.load(name, preset) for preset in ("paper", "demo"))
    text = write_interpretations(demo, corpus.load(demo.corpus, "demo"))
    common = paper.runs.keys() & demo.runs.keys()
    changed = set()
    for key in common:
        printed, here = (flat(study.runs[key].spec.to_dict()) for study in (paper, demo))
        changed |= {(path, here.get(path)) for path in printed | here if printed.get(path) != here.get(path)}
    paths = {path for path, _ in changed}
    assert len(common) == len(paper.runs) and {"model.width", "train.steps", "preset"} <= paths
    stated = {each for each in changed if each[0].partition(".")[0] not in ("data", "preset", "probes")}
    assert not {each for each in stated if not spelt(*each, text)} and ("probes = " in text or "probes" not in paths)


def flat(spec, before=""):
    """A spec's leaves by their dotted names."""
    values = {}
    for name, value in spec.items():
        values |= (
            flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": _format_value(value)}
        )
    return values


def spelt(path, value, text):
    """Whether a page states that a key has a value: by itself, or within the object that it is a part of."""
    return f"{path} = {value}" in text or f'"{path.rpartition(".")[2]}": {value}' in text
