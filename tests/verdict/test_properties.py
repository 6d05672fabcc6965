"""What is checked before a training: each check sees the fault that it is for, and names the smallest input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from plumbline.model import component
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.roles import Constant, parameter
from plumbline.specs.spec import ModelSpec
from plumbline.verdict import parity, properties
from tests.model_specs import small

Build = Callable[..., Any]


class Leaky(Softmax):
    """Sees the key after its own too."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, visibility, cache=None):
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, visibility, cache)
        return out + 0.01 * following[:, :, -out.shape[2] :]


class ByCall(Softmax):
    """Scales by how many queries the call has."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, visibility, cache=None):
        return super().forward(q_BHQW, k_BGKW, v_BGKW, visibility, cache) * (1 + 0.1 * q_BHQW.shape[2])


class SeesPadding(Softmax):
    """Adds the mean of all values of the call's first key, padding or not."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, visibility, cache=None):
        first = v_BGKW[:, :, :1].repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        return super().forward(q_BHQW, k_BGKW, v_BGKW, visibility, cache) + 0.1 * first


class Unused(Softmax):
    """Has a parameter that nothing reads."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.idle = parameter(1, role="scalar", layer=layer, init=Constant(value=0.0))


class Drawn(Softmax):
    """Draws something that no seed decides."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__(model, layer)
        self.scale = self.scale * (1 + float(torch.rand(())))


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], dict[str, str]]:
    """What the checks say of a model with this mixer."""

    def of(mixer: type) -> dict[str, str]:
        load: Build = component.load
        monkeypatch.setattr(component, "load", lambda slot, name: mixer if slot == "mixer" else load(slot, name))
        return properties.failed(small(layers=2, width=32, heads=4, ffn_width=48), small())

    return of


def test_the_baseline_holds(failed: Callable[[type], dict[str, str]]) -> None:
    assert failed(Softmax) == {}


@pytest.mark.parametrize(
    ("mixer", "check", "words"),
    [
        (Leaky, "causality", "token 1 of the 2 tokens (72, 3) changed to 51 moves the logits at token 0, which comes"),
        (ByCall, "prefill = decode", "the 2 tokens (72, 3), decoded one at a time, have other logits at token 0 than"),
        (SeesPadding, "padding", "1 of padding on the left of the 2 tokens"),
        (
            Unused,
            "gradients",
            "the parameter blocks.0.attention.mixer.idle gets no gradient (at the start, float32, on",
        ),
        (Drawn, "init identity", "two models of one seed give the 9 tokens"),
    ],
)
def test_a_fault_is_named_with_the_smallest_input(
    failed: Callable[[type], dict[str, str]], mixer: type, check: str, words: str
) -> None:
    found = failed(mixer)
    assert next(iter(found)) == check or mixer is Drawn
    # Which tokens are drawn is torch's; their number is what is promised.
    assert words.split("(")[0] in found[check]


def test_an_exception_of_the_component_is_a_failed_check(failed: Callable[[type], dict[str, str]]) -> None:
    class Broken(Softmax):
        def forward(self, *arguments: Any) -> torch.Tensor:
            raise RuntimeError("no kernel")

    assert failed(Broken)["causality"] == "RuntimeError: no kernel"


def test_too_many_parameters_are_flagged_with_the_width_that_restores_parity() -> None:
    found = parity.compare("base", small(ffn_width=208), small(ffn_width=176), tolerance=1.0)
    assert found.flagged and found.ffn_width == 176 and found.restored == found.baseline
    assert "model.ffn_width: 176 would leave +0.00 % and +0.00 %" in found.words
    gated = parity.compare("base", small(output={"name": "head_gate"}), small(), tolerance=1.0)
    assert gated.flagged and gated.ffn_width is not None and gated.ffn_width < 176
    assert gated.restored is not None and abs(gated.restored.parameters / gated.baseline.parameters - 1) < 0.005
    assert not parity.compare("base", small(query_key={"name": "qk_norm"}), small(), tolerance=1.0).words
