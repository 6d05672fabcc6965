"""The runs: the paper's size to the digit, arms that differ in one thing, and the decay that is asked about."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from plumbline.model.decoder import create, on_meta
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import has_preset
from plumbline.specs.yaml_files import PRESETS
from plumbline.studies.key_norms.norm_curves import count_layers, decay, find_spec, groups
from plumbline.train.interventions import build
from plumbline.train.run_optimizer import RunOptimizer

ARMS = ["as_published", "no_decay", "frozen_gains"]


def spec(arm: str, preset: str) -> RunSpec:
    arm_spec = find_spec(study_config.load("key_norms", preset), arm)
    assert arm_spec is not None
    return arm_spec


def test_the_document_has_88630528_parameters() -> None:
    model = spec("as_published", "paper").model
    assert sum(value.numel() for value in on_meta(model).parameters()) == 88_630_528


@pytest.mark.parametrize("preset", [one for one in PRESETS if has_preset("key_norms", one)])
def test_three_arms_with_one_seed_at_every_preset(preset: str) -> None:
    study = study_config.load("key_norms", preset)
    assert list(study.runs) == [f"key_norms/base/{arm}/s42" for arm in ARMS]
    model = study.runs["key_norms/base/as_published/s42"].spec.model
    assert model.head_width == 64 and model.heads == 2 * model.key_value_heads and model.ffn_width == 4 * model.width
    layers = [layer for group in groups(model.layers)[:3] for layer in group.layers]
    assert len(set(layers)) == 6 and max(layers) == model.layers - 1


@pytest.mark.parametrize("preset", [one for one in PRESETS if has_preset("key_norms", one)])
def test_arms_differ_only_in_what_happens_to_gains(preset: str) -> None:
    own, without, frozen = (spec(arm, preset).to_dict() for arm in ARMS)
    for other in (without, frozen):
        for key in ("method", "components"):
            own.pop(key, None), other.pop(key, None)
    assert without["optimizer"].pop("decay_norms") is False and own["optimizer"]["decay_norms"] is True
    frozen_at = frozen.pop("interventions")
    assert frozen_at == [{"name": "freeze", "role": "norm"}] and own.pop("interventions") == []
    without.pop("interventions")
    assert frozen == own
    own["optimizer"].pop("decay_norms")
    assert without == own


def test_the_groups_are_those_of_the_text_and_of_the_code() -> None:
    assert [group.layers for group in groups(22)] == [(0, 1), (10, 11), (20, 21), (11, 12)]


@pytest.mark.parametrize(("preset", "remaining_norm"), [("paper", 2.475), ("mini", 2.475), ("demo", 2.475)])
def test_decay_alone_takes_a_key_norm_from_8_to_2_5(preset: str, remaining_norm: float) -> None:
    """8 (1 - 0.006 x 0.2)^977 = 2.475, and 7.18 after 90 steps."""
    line = 8 * decay(spec("as_published", preset))
    assert line[0] == 8 and line[-1] == pytest.approx(remaining_norm, abs=0.005)
    if preset == "paper":
        assert len(line) == 978 and line[90] == pytest.approx(7.18, abs=0.005)
        np.testing.assert_allclose(line, 8 * 0.9988 ** np.arange(978), rtol=1e-9)
    rates = spec("as_published", preset).optimizer.learning_rate * spec("as_published", preset).train.steps
    assert 0.25 * rates == pytest.approx(5.862, rel=1e-3)  # the sum of a gain's learning rates
    for arm in ("no_decay", "frozen_gains"):
        assert (decay(spec(arm, preset)) == 1).all()


@pytest.mark.parametrize("arm", ARMS)
def test_line_is_what_optimizer_does_to_gain_without_gradient(arm: str) -> None:
    """With gradients of zero, AdamW's moments stay zero, and decay is all that happens."""
    run = spec(arm, "smoke")
    model = create(run.model, 0)
    optimizer = RunOptimizer(model, model.parameter_roles, run.optimizer, build(run.interventions))
    gain = model.blocks[2].attention.query_key.key_norm.gain
    gains = [float(gain.detach().mean())]
    for step in range(1, run.train.steps + 1):
        for value in model.parameters():
            value.grad = torch.zeros_like(value)
        optimizer.step(step, run.optimizer.learning_rate)
        gains.append(float(gain.detach().mean()))
    np.testing.assert_allclose(gains, decay(run), rtol=1e-6)
    assert (gains[-1] < 1) == (arm == "as_published")


def test_a_key_norm_starts_at_8(tmp_path) -> None:
    """At full width on random weights: the square root of the head width, whatever the layer (float32's epsilon)."""
    model = create(spec("as_published", "smoke").model, 1)
    start_norms = []
    for block in model.blocks:
        block.attention.query_key.register_forward_hook(lambda _, __, out: start_norms.append(out[1].norm(dim=-1)))
    model(torch.randint(1024, (2, 32)))
    assert len(start_norms) == count_layers(study_config.load("key_norms", "smoke"))
    assert all(torch.allclose(norms, torch.tensor(8.0), atol=1e-3) for norms in start_norms)
