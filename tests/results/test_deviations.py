"""deviations.md says every ruling, arm and stand-in of its study."""

from __future__ import annotations

import pytest

from plumbline.results.deviations import deviations
from plumbline.specs import sheet


@pytest.mark.parametrize("preset", ["paper", "demo"])
def test_every_ruling_and_arm_is_there(preset):
    study = sheet.load("transfer", preset)
    text = deviations(study)
    assert f"preset {preset}" in text and "Generated from `config/studies/transfer/study.yaml`" in text
    for ruling in study.sheet["rulings"]:
        assert ruling["choice"] in text and ruling["text"] in text and ruling["source"] in text
    for name, arm in study.sheet["arms"].items():
        assert f"`{name}`" in text and arm["label"] in text
    assert text.index("## Rulings in force") < text.index("## Runs that are no method")


def test_rulings_of_another_preset_stand_apart():
    text = deviations(sheet.load("transfer", "demo"))
    in_force, apart = text.split("## Rulings of other presets")
    assert "### tokens per step" in apart and "### demo learning rate" in in_force
    assert "differs from `baseline` by train.precision = bfloat16" in text and "The document's is 1.2B." in text


def test_an_arm_that_is_not_run_is_said():
    assert "Not run under paper." in deviations(sheet.load("transfer", "paper"))
