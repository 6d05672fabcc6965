"""What is checked before a training: each check sees the fault that it is for, and names the smallest input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model import component
from plumbline.model.ffn.swiglu import SwiGLU
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.operate.preflight.method_checks import check_file, checks_report, cost_parity, model_checks
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import ALL, METHODS, OWN, overlay
from tests.model_specs import BASELINE, small

Build = Callable[..., Any]


class Leaky(Softmax):
    """Sees the key after its own too."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        return out + 0.01 * following[:, :, -out.shape[2] :]


class ByCall(Softmax):
    """Scales by how many queries the call has."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        return super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache) * (1 + 0.1 * q_BHQW.shape[2])


class SeesPadding(Softmax):
    """Adds the mean of all values of the call's first key, padding or not."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        first = v_BGKW[:, :, :1].repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        return super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache) + 0.1 * first


class Unused(Softmax):
    """Has a parameter that nothing reads."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.idle = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=0.0))


class Drawn(Softmax):
    """Draws something that no seed decides."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.scale = self.scale * (1 + float(torch.rand(())))


class OverFifty(Softmax):
    """Sees the key after its own, in calls of more than 50."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        return out + 0.01 * following[:, :, -out.shape[2] :] if k_BGKW.shape[2] > 50 else out


class LongCalls(Softmax):
    """Scales what is read in one call of more than 50."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        return 2 * out if q_BHQW.shape[2] > 50 else out


class InTraining(Softmax):
    """Is normalised over the sequence while it is trained."""

    def forward(self, *arguments):
        out = super().forward(*arguments)
        return out / (out.std(2, keepdim=True, correction=0) + 1) if self.training else out


class Noisy(Softmax):
    """Adds noise while it is trained."""

    def forward(self, *arguments):
        out = super().forward(*arguments)
        return out + 0.1 * torch.randn_like(out) if self.training else out


class Remembers(Softmax):
    """Adds a little of what the call before has read."""

    memory: Any = 0

    def forward(self, *arguments):
        out = super().forward(*arguments) + self.memory
        self.memory = 1e-5 * out.mean((0, 2), keepdim=True).detach()
        return out


class RemembersTraining(Softmax):
    """Keeps a mean of what it reads in training, for evaluation."""

    memory: Any = 0

    def forward(self, *arguments):
        out = super().forward(*arguments)
        if self.training:
            self.memory = out.mean((0, 2), keepdim=True).detach()
            return out
        return out + self.memory


class MixesRows(Softmax):
    """Subtracts the mean of the batch."""

    def forward(self, *arguments):
        out = super().forward(*arguments)
        return out - out.mean(0, keepdim=True) if out.shape[0] > 1 else out


class DrawnBuffer(Softmax):
    """Holds a buffer that no seed decides, outside of its state, behind a gate at zero."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.gate = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=0.0))
        value = torch.randn(1, generator=torch.Generator().manual_seed(torch.initial_seed() % 1000))
        self.register_buffer("drawn", value, persistent=False)

    def forward(self, *arguments):
        return super().forward(*arguments) * (1 + self.gate * self.drawn)


class DrawnByNumpy(Softmax):
    """Holds a number that numpy's own generator decides, behind a gate at zero."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.gate = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=0.0))
        self.drawn = float(np.random.RandomState(np.random.get_state()[1][0] % 1000).randn())

    def forward(self, *arguments):
        return super().forward(*arguments) * (1 + self.gate * self.drawn)


class ZeroGradient(Softmax):
    """Has a parameter whose gradient is always zero."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.idle = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=1.0))

    def forward(self, *arguments):
        return super().forward(*arguments) + 0 * self.idle


class Frozen(ZeroGradient):
    """Has a parameter that is never trained."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.idle.requires_grad_(False)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], ModelSpec]:
    """Build models with this mixer; returns the spec of a small one."""

    def use(mixer: type) -> ModelSpec:
        load: Build = component.load
        monkeypatch.setattr(component, "load", lambda slot, name: mixer if slot == "mixer" else load(slot, name))
        return small(layers=2, width=32, heads=4, ffn_width=48, context=64)

    return use


@pytest.fixture
def failed(use: Callable[[type], ModelSpec]) -> Callable[[type], dict[str, str]]:
    """What the checks state about a model with this mixer."""
    return lambda mixer: model_checks.run_checks(use(mixer), small(context=64))[0]


def test_the_baseline_holds(failed: Callable[[type], dict[str, str]]) -> None:
    assert failed(Softmax) == {}


def combine_components() -> dict[str, dict[str, Any]]:
    """Every component of ours, as few models as have room for them: a method joins the first model whose slots it
    leaves as they are. Each method by itself: tests/model/test_every_method.py holds its causality, decoding and
    padding."""
    models: dict[str, dict[str, Any]] = {"baseline": {}}
    components = set[tuple[str, str]]()
    for name, parts in ALL.items():
        own = {(slot, part["name"]) for slot, part in parts.items() if isinstance(part, dict)}
        if own - components:
            fits = name not in OWN and len(own) == len(parts)  # what changes a size too stands alone
            joined = next((key for key, slots in models.items() if fits and not parts.keys() & slots.keys()), None)
            models |= {joined: models[joined] | parts} if joined else {name: parts}
        components |= own
    return models


@pytest.mark.parametrize("parts", [pytest.param(parts, id=name) for name, parts in combine_components().items()])
def test_every_component_of_ours_holds(parts: dict[str, Any]) -> None:
    sizes = {"layers": 2, "ffn_width": 48, "context": 64}
    spec, baseline = (ModelSpec.from_dict(BASELINE | sizes | slots) for slots in (parts, {}))
    assert model_checks.run_checks(spec, baseline)[0] == {}


@pytest.mark.parametrize(
    ("mixer", "check", "message"),
    [
        (Leaky, "causality", "token 1 of the 2 tokens (72, 3) changed to 51"),
        (ByCall, "prefill = decode", "the 2 tokens (72, 3), decoded one"),
        (SeesPadding, "padding", "1 of padding on"),
        (Unused, "gradients", "parameter blocks.0.attention.mixer.idle gets no gradient"),
        (Drawn, "init identity", "one seed give the 9 tokens"),
        (OverFifty, "causality", "token 52 of the 53 tokens"),
        (LongCalls, "prefill = decode", "the 64 tokens"),
        (InTraining, "causality", "token 1 of the 2 tokens"),
        (Noisy, "repeatable", "training mode, the 2 tokens"),
        (Remembers, "repeatable", "read twice, the 2 tokens"),
        (RemembersTraining, "repeatable", "the 2 tokens"),
        (MixesRows, "rows", "row 0 of a batch of 3, one token"),
        (DrawnBuffer, "init identity", "a different blocks.0.attention.mixer.drawn"),
        (DrawnByNumpy, "init identity", "one seed give the 9 tokens"),
        (ZeroGradient, "gradients", "blocks.0.attention.mixer.idle is zero"),
        (Frozen, "gradients", "the parameter blocks.0.attention.mixer.idle is frozen"),
    ],
)
def test_a_fault_is_named_with_the_smallest_input(
    use: Callable[[type], ModelSpec], mixer: type, check: str, message: str
) -> None:
    with torch.no_grad():
        failure = model_checks.CHECKS[check](use(mixer), small(context=64))
    # Which tokens are drawn is torch's; their number is what is promised.
    assert failure is not None and message.split("(")[0] in failure


def test_an_exception_of_the_component_is_a_failed_check(failed: Callable[[type], dict[str, str]]) -> None:
    class Broken(Softmax):
        def forward(self, *arguments: Any) -> torch.Tensor:
            raise RuntimeError("no kernel")

    assert failed(Broken) == {"repeatable": "RuntimeError: no kernel"}  # reported once, though every check meets it


def test_what_could_not_be_made_is_said_once_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: Callable[[type], dict[str, str]]
) -> None:
    """Its failure may be one of the environment, which the hash of the code does not show."""

    class NotThere(Softmax):
        def __init__(self, model: ModelSpec, layer: int) -> None:
            raise ModuleNotFoundError("No module named 'missing'")

    assert failed(NotThere) == {"build": "ModuleNotFoundError: No module named 'missing'"}
    raised = model_checks.run_checks(small(layers=2), small())[1]
    assert raised == ["build"]
    path = tmp_path / "checks.json"
    for raised, is_kept in (([], True), (["build"], False)):
        path.write_text(json.dumps({"fingerprint": "1", "methods": {"mine": {"failed": {}, "raised": raised}}}))
        assert (checks_report.read_report(path, "1") is not None) == is_kept
    path.unlink()
    report = {"checks": [], "methods": {"mine": {"failed": {"build": "no"}, "flagged": {}, "raised": ["build"]}}}
    monkeypatch.setattr(checks_report, "make_report", lambda mine, train: report)
    monkeypatch.setattr(check_file, "load", lambda *arguments, **options: SimpleNamespace(path="my.yaml"))
    monkeypatch.setattr("sys.argv", ["checks", "my.yaml", "--out", str(path)])
    with pytest.raises(PlumblineError, match=r"my.yaml: mine: build: no"):
        check_file.main()
    assert not path.exists()


def test_too_many_parameters_are_flagged() -> None:
    parity = cost_parity.compare("base", small(ffn_width=208), small(ffn_width=176), tolerance=1.0)
    assert parity.flagged and parity.ffn_width == 176 and parity.restored == parity.baseline
    assert "model.ffn_width: 176 would leave +0.00 % and +0.00 %" in parity.text
    gated = cost_parity.compare("base", small(output={"name": "head_gate"}), small(), tolerance=1.0)
    assert gated.flagged and gated.ffn_width is not None and gated.ffn_width < 176
    assert gated.restored is not None and abs(gated.restored.parameters / gated.baseline.parameters - 1) < 0.005
    assert not cost_parity.compare("base", small(query_key={"name": "qk_norm"}), small(), tolerance=1.0).text


def test_a_weight_that_is_used_again_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop(SwiGLU):
        def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
            for _ in range(8):
                x_BTD = x_BTD + super().forward(x_BTD)
            return x_BTD

    spec = small(layers=2)
    baseline = cost_parity.count_cost(spec)
    load: Build = component.load
    monkeypatch.setattr(component, "load", lambda slot, name: Loop if slot == "ffn" else load(slot, name))
    looped = cost_parity.count_cost(spec)
    assert (looped.parameters, looped.operations) == (baseline.parameters, baseline.operations)
    parity = cost_parity.CostParity(scale="base", method=looped, baseline=baseline, tolerance=1.0)
    assert parity.flagged and parity.run > 100 and "used more than once" in parity.text


@pytest.mark.parametrize(
    "name", [name for name in METHODS if "qknorm" in name or name in ("baseline", "selective_attn")]
)
def test_what_runs_in_chunks_is_flagged_by_its_counts_alone(name: str) -> None:
    spec, baseline = (ModelSpec.from_dict(overlay(method, layers=2, context=1024)) for method in (name, "baseline"))
    parity = cost_parity.compare("base", spec, baseline, tolerance=1.0)
    assert parity.run <= max(abs(parity.operations), 1.0)
