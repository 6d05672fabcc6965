"""What trains a model is tried before training: what fails later is refused in seconds, and held-out tokens train
nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.operate.preflight.method_checks import training_checks
from plumbline.specs.components import load
from plumbline.specs.spec import RunSpec
from plumbline.train import interventions, learning_rate, run_optimizer
from plumbline.train.interventions import Intervention
from plumbline.train.optimizers._base import OptimizerBase
from tests.model_specs import run_spec


class Lion(OptimizerBase):
    """Keeps its momentum as a subclass defines."""

    def __init__(self, groups: Any, spec: Any, **options: Any) -> None:
        super().__init__(groups)
        self.kept: dict[Any, Any] = {}

    def momentum(self, p: torch.Tensor) -> torch.Tensor:
        return self.state.setdefault(p, {}).setdefault("exp_avg", torch.zeros_like(p))

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                m = self.momentum(p)
                p.add_(m.lerp(p.grad, 0.1).sign_(), alpha=-group["lr"])
                m.lerp_(p.grad, 0.01)


class TorchsIdiom(Lion):
    def momentum(self, p):
        state = self.state[p]
        if len(state) == 0:
            state["exp_avg"] = torch.zeros_like(p)
        return state["exp_avg"]


class KeptElsewhere(Lion):
    def momentum(self, p):
        return self.kept.setdefault(p, torch.zeros_like(p))


class Random(Lion):
    def momentum(self, p):
        noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(id(self) % 2**31))
        return super().momentum(p).add_(noise)


class Reads(Intervention):
    """Reads held-out tokens before each step."""

    held_out = "apart"

    def attach(self, run):
        self.run, self.read = run, 0.0
        self.tokens_BT = torch.from_numpy(run.validation.rows(np.arange(2)))

    def state(self):
        return {"read": self.read}

    def load_state(self, state):
        self.read = state["read"]


class Decides(Reads):
    """Sets the learning rate by the held-out loss, which a checkpoint keeps."""

    @torch.no_grad()
    def begin(self, step):
        self.read = float(self.run.model(self.tokens_BT, loss=True)) % 1

    def label(self, name, role):
        return "all"

    def before_step(self, step):
        return {"all": self.read}


class ForgetsAKey(Decides):
    def load_state(self, state):
        self.read = state["reed"]


class NotDeclared(Decides):
    held_out = "none"


class OfTheLoss(Decides):
    held_out = "all"


class ByGradient(Reads):
    """Takes a step on the held-out loss."""

    def begin(self, step):
        self.gradients = torch.autograd.grad(
            self.run.model(self.tokens_BT, loss=True), list(self.run.model.parameters()), allow_unused=True
        )


class Directly(Reads):
    """Moves the embedding rows of held-out tokens, which no gradient shows."""

    @torch.no_grad()
    def after_step(self, step):
        self.run.model.embedding[self.tokens_BT.unique()] += 0.001


class InBegin(Reads):
    @torch.no_grad()
    def begin(self, step):
        self.run.model.embedding.data.mul_(0.999)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    """What is stated about a run with this optimizer or intervention."""

    def of(optimizer: type | None = None, intervention: type | None = None) -> dict[str, str]:
        if optimizer is not None:
            monkeypatch.setattr(
                run_optimizer, "load", lambda kind, name: optimizer if kind == "optimizer" else load(kind, name)
            )
            monkeypatch.setattr(
                "plumbline.train.checkpoint.training_state.OWN_OPTIMIZERS", ()
            )  # what AdamW keeps is known, not what this does
        if intervention is not None:
            monkeypatch.setattr(interventions, "load", lambda kind, name: intervention)
        chosen = ({"name": "none"},) if intervention is not None else ()
        return training_checks.run_checks(with_interventions(*chosen), run_spec())

    return of


def with_interventions(*chosen: dict[str, Any]) -> RunSpec:
    return run_spec(interventions=list(chosen))


def test_an_optimizer_of_ones_own_holds(tried: Callable[..., dict[str, str]]) -> None:
    assert tried(optimizer=Lion) == {}


@pytest.mark.parametrize(
    ("optimizer", "check", "message"),
    [
        (TorchsIdiom, "training", "write state = self.state.setdefault(p, {})"),
        (KeptElsewhere, "resume", "stopped after step 6 of 12"),
        (Random, "training", "end with another"),
    ],
)
def test_an_optimizer_is_refused_in_seconds(
    tried: Callable[..., dict[str, str]], optimizer: type, check: str, message: str
) -> None:
    failures = tried(optimizer=optimizer)
    assert list(failures) == [check]
    assert message in failures[check]


def test_a_rule_may_decide_by_held_out_tokens_that_it_declares(tried: Callable[..., dict[str, str]]) -> None:
    assert tried(intervention=Decides) == {}


@pytest.mark.parametrize(
    ("intervention", "check", "message"),
    [
        (NotDeclared, "training", 'write held_out = "apart" in its class'),
        (OfTheLoss, "training", 'write "apart" to read'),
        (ByGradient, "held-out tokens", "held-out tokens in step 1"),
        (Directly, "held-out tokens", "weights although ['none'] decided"),
        (InBegin, "held-out tokens", "gradients, in begin()"),
    ],
)
def test_held_out_tokens_train_nothing(
    tried: Callable[..., dict[str, str]], intervention: type, check: str, message: str
) -> None:
    failures = tried(intervention=intervention)
    assert list(failures) == [check]
    assert message in failures[check]


def test_what_an_intervention_raises_when_it_is_resumed_is_said(tried: Callable[..., dict[str, str]]) -> None:
    assert tried(intervention=ForgetsAKey) == {
        "resume": "KeyError: 'reed', in a run that was stopped after step 6 of 12"
    }


def test_a_rule_has_no_sequence_of_the_loss(
    monkeypatch: pytest.MonkeyPatch, tried: Callable[..., dict[str, str]]
) -> None:
    batches: list[np.ndarray] = []

    class Notes(Decides):
        def attach(self, run):
            super().attach(run)
            batches.append(self.tokens_BT.numpy())
            assert run.validation.sequences == training_checks.VALIDATION
            with pytest.raises(PlumblineError, match=r"reads 9.*and 8.*the 8"):
                run.validation.rows(np.arange(9))

    assert tried(intervention=Notes) == {}
    assert batches


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (lambda progress: math.nan, "step 3 of 12"),
        (lambda progress: -progress, "of the peak is -"),
        (lambda progress, calls=[0.0]: calls.append(0.0) or len(calls), "is asked again"),
    ],
)
def test_a_schedule_is_finite(monkeypatch: pytest.MonkeyPatch, schedule: Callable[..., float], message: str) -> None:
    spec = run_spec()
    spec = msgspec.structs.replace(spec, schedule=msgspec.structs.replace(spec.schedule, options={}))
    assert training_checks.check_schedule(spec) is None
    monkeypatch.setattr(learning_rate, "load", lambda kind, name: schedule)
    assert message in (training_checks.check_schedule(spec) or "")
