"""A method that is another one under a second name is noticed when it is planned, unless the repeat is meant."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline import project
from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from plumbline.specs.duplicate_runs import find_unmeant
from plumbline.specs.yaml_files import PRESETS, ROOT, load_config, load_study, studies

ORIGINAL = load_study("transfer")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def sentences(root: Path) -> Callable[..., list[str]]:
    """What is stated about a study that extends transfer by its own methods, or of transfer with a change."""

    def say(methods: dict[str, Any] | None = None, change: Callable[[dict[str, Any]], Any] | None = None) -> list[str]:
        content = copy.deepcopy(ORIGINAL)
        if change is not None:
            change(content)
        (root / "studies/transfer/study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        transfer = study_config.load("transfer", "smoke", root)
        if methods is None:
            return find_unmeant(transfer)
        mine = {"study": "mine", "title": "Mine", "extends": "transfer", "methods": methods}
        (root / "studies/mine").mkdir(exist_ok=True)
        (root / "studies/mine/study.yaml").write_text(yaml.safe_dump(mine))
        return find_unmeant(study_config.load("mine", "smoke", root), transfer)

    return say


@pytest.mark.parametrize("preset", PRESETS)
def test_the_studies_here_have_no_method_twice(preset: str) -> None:
    """Transfer's second hardware is the baseline again at paper size, and states it."""
    loaded = [study_config.load(name, preset) for name in studies() if study_config.has_preset(name, preset)]
    assert [text for study in loaded for text in find_unmeant(study)] == []


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        ({}, "baseline"),
        # The default written out; and a method that a user's own study does not compare itself with.
        ({"model": {"mixer": {"name": "softmax_cap", "cap": 50.0}}}, "softmax_cap"),
        # Looked at more often, and on more text: the same weights.
        ({"train": {"validate_every": 2, "validation_sequences": 16}}, "baseline"),
    ],
)
def test_a_second_name_is_noticed(sentences, entry: dict[str, Any], other: str) -> None:
    (sentence,) = sentences({"mine": {"label": "Mine"} | entry})
    assert sentence.startswith(
        f"studies/mine/study.yaml: mine is {other} under a second name (preset smoke, scale base): model, "
    )
    assert f"write `same_as: {other}`" in sentence


def test_what_differs_in_an_option_is_another_method(sentences) -> None:
    assert sentences({"mine": {"label": "Mine", "model": {"mixer": {"name": "softmax_cap", "cap": 49.0}}}}) == []


def test_a_repeat_that_is_meant_says_so_and_is_held_to_it(sentences) -> None:
    assert sentences({"control": {"label": "Control", "same_as": "baseline"}}) == []
    with pytest.raises(PlumblineError, match=r"same_as.*not trained.*`same_as`"):
        sentences({"control": {"label": "Control", "same_as": "qknorm"}})
    with pytest.raises(PlumblineError, match=r"same_as.*no run.*'base'.*'baseline'"):
        sentences({"control": {"label": "Control", "same_as": "base"}})


def test_variants_and_arms_are_looked_at_too(sentences) -> None:
    def again(content: dict[str, Any]) -> None:
        content["methods"]["softmax_cap"]["variants"] = {"as_written": {"model": {"mixer": {"cap": 50.0}}}}
        content["arms"]["third"] = {
            "label": "Third",
            "variant_of": "qknorm",
            "note": "",
            "model": {"query_key": {"name": "identity"}},
        }
        content["runs"]["again"] = [{"scale": "base", "methods": ["softmax_cap.as_written", "third"], "seeds": [7]}]

    texts = sentences(change=again)
    assert [text.split(": ")[1].split(" (")[0] for text in texts] == [
        "third is baseline under a second name",
        "softmax_cap.as_written is softmax_cap under a second name",
    ]


def test_the_plan_says_it(sentences, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences({"mine": {"label": "Mine"}})
    config = load_config() | {"preset": "smoke", "studies": ["mine"], "main_study": "mine"}
    assert "mine/base/mine/s42" in project.load(config, root).runs
    stderr = capsys.readouterr().err
    assert stderr.startswith("warning: studies/mine/study.yaml: mine is baseline under") and stderr.count("\n") == 1
