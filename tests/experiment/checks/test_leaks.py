"""Leaks that checks of a short input do not see: each is refused by name, at the size that is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from plumbline.experiment.checks import model_checks, trained_checks, trained_size_checks
from plumbline.experiment.checks.trained_size import TrainedSize
from plumbline.experiment.comparison_terms import ComparisonTerms
from plumbline.experiment.decision import decision_page
from plumbline.experiment.judge import judge
from plumbline.experiment.own_method import implausible
from plumbline.model import component
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.operate.experiments.after_runs import looked_at_again
from plumbline.specs.spec import ModelSpec
from tests.experiment.decision.test_loop import QUESTION, Numbers, conducted, noisy
from tests.model_specs import small
from tests.train import small_runs

SIZE = TrainedSize(context=160, rows=18, half=True, layers=6)


class Leak(Softmax):
    """Adds the value after its own, where `opens` says so."""

    size = 0.5

    def opens(self, out: torch.Tensor) -> bool:
        raise NotImplementedError

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        if cache is not None or not self.opens(out):
            return out
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1).clone()
        following[:, :, -1] = 0
        return out + self.size * self.shown(following)

    def shown(self, following: torch.Tensor) -> torch.Tensor:
        return following


class From64(Leak):
    def opens(self, out):
        return out.shape[2] > 64

    def shown(self, following):
        return torch.cat([torch.zeros_like(following[:, :, :64]), following[:, :, 64:]], dim=2)


class OnlyWithGradients(Leak):
    def opens(self, out):
        return torch.is_grad_enabled()


class OnlyInBfloat16(Leak):
    def opens(self, out):
        return torch.is_autocast_enabled("cpu")


class From64InBfloat16(From64):
    def opens(self, out):
        return super().opens(out) and torch.is_autocast_enabled("cpu")


class From64InTraining(From64):
    def opens(self, out):
        return super().opens(out) and self.training and not torch.is_grad_enabled()


class OnlyWhileCompiled(Leak):
    def opens(self, out):
        return torch.compiler.is_compiling()


class OnlyAtTheTrainedContext(Leak):
    def opens(self, out):
        return out.shape[2] == SIZE.context


class OnlyInTheTrainedBatch(Leak):
    def opens(self, out):
        return len(out) == SIZE.rows


class TooSmallToBeSeenInLogits(Leak):
    size = 1e-9

    def opens(self, out):
        return True


class WithoutAGradient(Leak):
    def opens(self, out):
        return self.training

    def shown(self, following):
        return following.detach().sign()


class InTheFifthLayer(From64):
    def opens(self, out):
        return super().opens(out) and self.layer == 4


class RowsFromFour(Softmax):
    """Subtracts the mean of a batch of four rows or more."""

    def forward(self, *arguments):
        out = super().forward(*arguments)
        return out - out.mean(0, keepdim=True) if len(out) >= 4 else out


class Counts(Leak):
    """Leaks from its thousandth call on."""

    calls = 0

    def opens(self, out):
        self.calls += 1
        return self.calls > 1000


class Gated(Leak):
    """Leaks once training has moved its gate from 0 to above 1."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.gate = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=0.0))

    def opens(self, out):
        return True

    def forward(self, *arguments):
        return super().forward(*arguments) * (1 + self.gate)

    def shown(self, following):
        return (self.gate - 1).relu() * following


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], None]:
    """Build models with this mixer."""

    def use(mixer: type) -> None:
        load: Any = component.load
        monkeypatch.setattr(component, "load", lambda slot, name: mixer if slot == "mixer" else load(slot, name))

    return use


def tiny() -> ModelSpec:
    return small(layers=2, width=32, heads=4, ffn_width=48, context=64)


def test_the_baseline_holds_at_the_trained_size(uses: Callable[[type], None]) -> None:
    uses(Softmax)
    assert trained_size_checks.failed(tiny(), SIZE) == {}


@pytest.mark.parametrize(
    ("mixer", "check", "words"),
    [
        (From64, "causality", "token 65 of the 66 tokens"),
        (OnlyWithGradients, "causality", "token 1 of the 2 tokens"),
        (OnlyInBfloat16, "causality", "in bfloat16"),
        (From64InBfloat16, "causality", "in bfloat16"),
        (From64InTraining, "causality", "in training mode"),
        (RowsFromFour, "rows", "row 0 of a batch of 4, the 2 tokens"),
        (OnlyWhileCompiled, "causality", "while it is compiled"),
        (OnlyAtTheTrainedContext, "causality", "of the 160 tokens"),
        (OnlyInTheTrainedBatch, "causality", "in a batch of 18"),
        (TooSmallToBeSeenInLogits, "causality", "have a gradient by token"),
        (WithoutAGradient, "causality", "in training mode"),
        (InTheFifthLayer, "causality", "with the 6 layers that are trained"),
    ],
)
def test_a_leak_is_refused_by_name_with_the_smallest_input(
    uses: Callable[[type], None], mixer: type, check: str, words: str
) -> None:
    uses(mixer)
    found = trained_size_checks.failed(tiny(), SIZE)
    assert list(found) == [check]
    assert words in found[check]


def test_a_mixer_that_counts_its_calls_is_refused(uses: Callable[[type], None]) -> None:
    uses(Counts)
    assert "changes with every call" in model_checks.failed(tiny(), tiny())["repeatable"]


def test_a_leak_that_opens_in_training_is_seen_in_the_trained_weights(
    uses: Callable[[type], None], tmp_path: Path
) -> None:
    """It holds before training, which the checks of a new model cannot tell."""
    from tests.model_specs import run_spec

    uses(Gated)
    assert trained_size_checks.failed(tiny(), TrainedSize(context=32, rows=4, half=False, layers=2)) == {}
    spec = run_spec()
    small_runs.train(spec, small_runs.settings(small_runs.make_packs(tmp_path), tmp_path))
    assert trained_checks.leak(tmp_path / "out", spec) is None
    _open(tmp_path / "out")
    assert "causality: token 1 of the 2 tokens" in (trained_checks.leak(tmp_path / "out", spec) or "")


def test_a_try_says_no_keep_of_an_arm_that_leaks_with_its_trained_weights(
    uses: Callable[[type], None], tmp_path: Path
) -> None:
    from tests.model_specs import run_spec

    uses(Gated)
    spec = run_spec()
    small_runs.train(spec, small_runs.settings(small_runs.make_packs(tmp_path), tmp_path))
    arms: Any = SimpleNamespace(folder=lambda *_: tmp_path / "out", spec_of=lambda *_: spec)
    kept = conducted(tmp_path / "bank", Numbers(noisy(8)), replace(QUESTION, metric="validation_loss"))
    held = looked_at_again(kept, arms, "smoke")
    assert held.exit_code == 0 and held.checks["trained_weights"].keys() == {"base", "new"}
    said = decision_page.markdown(held, "x.svg")
    assert "of the baseline's loss (the largest known at this preset is 5.5 %)" in said and "looked at again" in said
    _open(tmp_path / "out")
    refused = looked_at_again(kept, arms, "smoke")
    assert refused.exit_code == 13 and refused.estimate is None
    assert "causality: token 1 of the 2 tokens" in refused.sentence and spec.key in refused.sentence
    assert "causality: token 1" in decision_page.markdown(refused, "x.svg")


def _open(folder: Path) -> None:
    """Move the gates of a finished run."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.endswith("gate"):
            weights[name] += 3
    save_file(weights, folder / "model.safetensors")


def test_a_gain_that_no_modification_had_is_flagged_and_a_usual_one_is_not() -> None:
    terms = ComparisonTerms(higher=False)
    base = {"1": 3.29, "2": 3.292, "3": 3.288}
    usual = judge("mine", {"1": 3.27, "2": 3.272, "3": 3.268}, base, terms)
    leaky = judge("mine", {"1": 2.9, "2": 2.902, "3": 2.898}, base, terms)
    found = [
        implausible.flagged(one.gain, one.sigma, one.mean_baseline, "paper", loss=True) or "" for one in (usual, leaky)
    ]
    assert found[0] == "" and "12 % of the baseline's loss" in found[1]
