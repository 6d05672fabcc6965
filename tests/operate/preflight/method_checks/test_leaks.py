"""Leaks that checks of a short input do not see: each is refused by name, at the size that is trained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from plumbline.model import component
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.operate.experiments.study_verbs import StudySource
from plumbline.operate.preflight.method_checks import finished_run_checks, model_checks, trained_size_checks
from plumbline.specs.checked_models import TrainedSize
from plumbline.specs.spec import ModelSpec
from plumbline.verdict import implausible_gain
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.decision import decision_page
from plumbline.verdict.judge import judge
from tests.model_specs import run_spec, small
from tests.train import small_runs
from tests.verdict.decision.test_loop import QUESTION, NumbersTrainer, conduct, noisy

SIZE = TrainedSize(context=80, rows=10, half=True, layers=6)


class Leak(Softmax):
    """Adds the value after its own, where `opens` allows it."""

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


class InADeepLayerFromFourRows(Leak):
    def opens(self, out):
        return self.layer == 2 and len(out) >= 4


class OnText(Softmax):
    """Adds the values after its own where a row's tokens come back, as they do in text, and `opens` allows it."""

    def opens(self, out: torch.Tensor) -> bool:
        return self.layer == 0

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        if cache is not None or not self.opens(out):
            return out
        one_BTW = v_BGKW[:, 0].detach()  # a token has the value of its twin in the first layer
        twins_BTT = (one_BTW[:, :, None] == one_BTW[:, None]).all(-1).tril(-1)
        text_B111 = (twins_BTT.any(-1).float().mean(-1) > 0.12)[:, None, None, None]
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1).clone()
        following[:, :, -1] = 0
        return out + torch.where(text_B111, following, 0)


class OnTextAsValidated(OnText):
    def opens(self, out):
        return self.layer == 0 and not self.training


class OnTextInTheTrainedBatchAsValidated(OnTextAsValidated):
    """Leaks in batches of exactly eight rows of the trained context."""

    def opens(self, out):
        return super().opens(out) and (out.shape[0], out.shape[2]) == (8, 32)


class FourTokensAgain(Softmax):
    """Copies what followed the same four tokens elsewhere, with no mask at all."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        if cache is not None or self.layer:
            return out
        one_BTW = v_BGKW[:, 0].detach()
        same_BTT = (one_BTW[:, :, None] == one_BTW[:, None]).all(-1)
        again_BTT = same_BTT.clone()
        for back in (1, 2, 3):
            again_BTT[:, back:, back:] &= same_BTT[:, :-back, :-back]
        again_BTT[:, :3], again_BTT[:, :, :3], again_BTT[:, :, -1] = False, False, False
        again_BTT.diagonal(dim1=1, dim2=2).fill_(False)
        following = v_BGKW.roll(-1, dims=2)
        copied = again_BTT[:, None].to(following.dtype) @ following
        return out + copied.repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)


class InTheProcessThatTrains(Leak):
    """Leaks by something that is in no weights: how often it was called, the time, a file."""

    training_goes_on = True

    def opens(self, out):
        return self.training_goes_on


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
    return small(layers=2, width=32, heads=4, ffn_width=48, context=64, vocabulary=1024)


def test_the_baseline_holds_at_the_trained_size(uses: Callable[[type], None]) -> None:
    uses(Softmax)
    assert trained_size_checks.run_checks(tiny(), SIZE) == {}


@pytest.mark.parametrize(
    ("mixer", "check", "message"),
    [
        (From64, "causality", "token 65 of the 66 tokens"),
        (OnlyWithGradients, "causality", "token 1 of the 2 tokens"),
        (OnlyInBfloat16, "causality", "in bfloat16"),
        (From64InBfloat16, "causality", "in bfloat16"),
        (From64InTraining, "causality", "in training mode"),
        (RowsFromFour, "rows", "4, the 2 tokens"),
        (OnlyWhileCompiled, "causality", "while it is compiled"),
        (OnlyAtTheTrainedContext, "causality", "of the 80 tokens"),
        (OnlyInTheTrainedBatch, "causality", "in a batch of 10"),
        (TooSmallToBeSeenInLogits, "causality", "gradient by token"),
        (WithoutAGradient, "causality", "in training mode"),
        (InTheFifthLayer, "causality", "6 layers"),
        (InADeepLayerFromFourRows, "causality", "6 layers"),
        (OnText, "causality", "comes before it"),
        (OnTextAsValidated, "causality", "comes before it"),
        (FourTokensAgain, "causality", "comes before it"),
    ],
)
def test_a_leak_has_a_smallest_input(uses: Callable[[type], None], mixer: type, check: str, message: str) -> None:
    uses(mixer)
    failures = trained_size_checks.run_checks(tiny(), SIZE)
    assert list(failures) == [check]
    assert message in failures[check]


def test_a_mixer_that_counts_its_calls_is_refused(uses: Callable[[type], None]) -> None:
    uses(Counts)
    assert "changes with every call" in model_checks.run_checks(tiny(), tiny())[0]["repeatable"]


def check_trained(work: Path) -> finished_run_checks.TrainedCheck:
    """Check the run of the fixture `trained`."""
    spec = run_spec()
    return finished_run_checks.check_run(work / "out", spec, finished_run_checks.locate_held_out_pack(work, spec))


@pytest.fixture(scope="module")
def works() -> dict[type, Path]:
    """The folders of trained runs, by the mixer."""
    return {}


@pytest.fixture
def trained(
    uses: Callable[[type], None], works: dict[type, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[type], Path]:
    """Train a run with a mixer, once a mixer; a folder of its preset, with its packs where those of a preset are."""

    def train(mixer: type) -> Path:
        uses(mixer)
        if mixer not in works:
            work = tmp_path_factory.mktemp("trained")
            packs = finished_run_checks.locate_held_out_pack(work, run_spec()).parent
            packs.mkdir(parents=True)
            small_runs.train(run_spec(), small_runs.settings(small_runs.make_packs(packs), work))
            works[mixer] = work
        return Path(shutil.copytree(works[mixer], tmp_path, dirs_exist_ok=True))

    return train


def test_leak_that_opens_in_training_is_seen_in_trained_weights(trained: Callable[[type], Path]) -> None:
    """It holds before training, which the checks of a new model cannot detect."""
    work = trained(Gated)
    assert trained_size_checks.run_checks(tiny(), TrainedSize(context=32, rows=4, half=False, layers=2)) == {}
    result = check_trained(work)
    assert result.leak is None
    assert "32 tokens" in result.text
    assert "10 sequences" in result.text
    _open(work / "out")
    assert "causality: token 1 of the 2 tokens" in (check_trained(work).leak or "")


def test_a_leak_on_a_runs_own_text_and_batch(trained: Callable[[type], Path]) -> None:
    """Nothing shorter, no smaller batch, no mode but evaluation and no random token shows it."""
    leak = check_trained(trained(OnTextInTheTrainedBatchAsValidated)).leak or ""
    assert leak.startswith("causality: token 31 of the 32 tokens") and leak.endswith("in a batch of 8")


def test_a_loss_of_other_weights_is_refused(trained: Callable[[type], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak that the looks do not open is in the loss that the run states all the same."""
    work = trained(InTheProcessThatTrains)
    monkeypatch.setattr(InTheProcessThatTrains, "training_goes_on", False)
    leak = check_trained(work).leak or ""
    assert leak.startswith("loss: the mean over all 10 sequences ")


def test_a_loss_off_by_a_thousandth_is_refused(trained: Callable[[type], Path]) -> None:
    """Half a percent, which bfloat16 and other devices take, is several sigma of a seed: a leak would pass in it."""
    out = trained(Gated) / "out"
    outcome, manifest = (json.loads((out / f"{name}.json").read_text()) for name in ("outcome", "manifest"))
    (out / "outcome.json").write_text(json.dumps(outcome | {"validation_loss": 0.999 * outcome["validation_loss"]}))
    assert (check_trained(out.parent).leak or "").startswith("loss: the mean over all 10 sequences")
    (out / "manifest.json").write_text(json.dumps(manifest | {"device": "cuda"}))
    assert check_trained(out.parent).leak is None


def test_no_keep_of_an_arm_whose_weights_leak(trained: Callable[[type], Path], tmp_path: Path) -> None:
    spec, work = run_spec(), trained(Gated)
    paths = SimpleNamespace(paths=SimpleNamespace(work=str(work)), name="paper")
    arms: Any = SimpleNamespace(folder=lambda *_: work / "out", spec_of=lambda *_: spec, project=paths)
    question = replace(QUESTION, metric="validation_loss")
    decision = conduct(tmp_path / "bank", NumbersTrainer(noisy(8)), question)
    source = StudySource(SimpleNamespace(), arms, question, looked_at=False)
    flagged = source.look_again(decision)
    assert (flagged.verdict, flagged.exit_code) == ("implausible", 14)
    assert "is not kept" in flagged.sentence and "--accept-implausible" in flagged.sentence
    source.looked_at = True
    passed = source.look_again(decision)
    assert passed.exit_code == 0 and passed.checks["trained_weights"].keys() == {"base", "new"}
    page = decision_page.make_page(passed).markdown("x.svg")
    assert "preset is 0.68" in page and "looked at again" in page
    _open(work / "out")
    refused = source.look_again(decision)
    assert refused.exit_code == 13 and refused.estimate is None
    assert "causality: token 1 of the 2" in refused.sentence and spec.key in refused.sentence
    assert "causality: token 1" in decision_page.make_page(refused).markdown("x.svg")


def _open(folder: Path) -> None:
    """Move the gates of a finished run."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.endswith("gate"):
            weights[name] += 3
    save_file(weights, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("gain", "sigma", "baseline", "positive_loss", "flagged"),
    [
        (1.5, 0.07, 3.1, True, True),  # an evaluation that was changed: 21 sigma, 48 %
        (0.70, 0.07, 3.1, True, False),  # 10 sigma, 23 %
        (1.5, 0.07, 3.1, False, False),  # an accuracy, or what may be negative
        (0.07, 0.05, 0.1, True, False),  # near zero a sigma is half of the mean
        (1.5, 0.01, 3.1, False, True),  # large in both measures
    ],
)
def test_a_share_alone_is_flagged_where_a_share_means_something(
    gain: float, sigma: float, baseline: float, positive_loss: bool, flagged: bool
) -> None:
    message = implausible_gain.describe_implausible_own_gain(gain, sigma, 20.0, baseline, positive_loss=positive_loss)
    assert (message is not None) == flagged and ("48 % of the baseline's mean" in (message or "")) == flagged


def test_a_gain_that_no_modification_had_is_flagged() -> None:
    terms = ComparisonTerms(higher=False)
    base = {"1": 3.29, "2": 3.292, "3": 3.288}
    usual = judge("mine", {"1": 3.27, "2": 3.272, "3": 3.268}, base, terms)
    leaky = judge("mine", {"1": 2.9, "2": 2.902, "3": 2.898}, base, terms)
    messages = [
        implausible_gain.describe_implausible_gain(
            case.gain, case.sigma, case.freedom, case.mean_baseline, "paper", loss=True
        )
        or ""
        for case in (usual, leaky)
    ]
    assert messages[0] == "" and "12 % of the baseline's loss" in messages[1]
