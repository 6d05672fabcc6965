"""The entropy floor: value and gradient by the naive formula; not there where it has nothing to do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import Decoder, create
from plumbline.model.mixers.softmax import Softmax
from plumbline.train.interventions import InterventionInputs, build
from plumbline.train.interventions.entropy_floor import EntropyFloor, is_softmax, normalised_entropy
from tests.model_specs import run_spec, small
from tests.train.intervention_cases import ALWAYS, MODEL, WINDOW, spec
from tests.train.small_runs import products, read, settings, train, train_ranks
from tests.train.test_pretrain import StopAt


def floor(**options: Any) -> dict[str, Any]:
    """Of 24 steps: released after 12."""
    return {"name": "entropy_floor", "release": "fixed", "release_at": 0.5, "ramp": 0.25} | options


def naive(q_HTW: torch.Tensor, k_HTW: torch.Tensor) -> torch.Tensor:
    """Mean normalised entropy, row by row, from the definition."""
    heads, time, width = q_HTW.shape
    rows = []
    for head in range(heads):
        for i in range(1, time):
            z = torch.stack([(q_HTW[head, i] * k_HTW[head, j]).sum() for j in range(i + 1)]) / math.sqrt(width)
            p = z.exp() / z.exp().sum()
            rows.append(-(p * p.log()).sum() / math.log(i + 1))
    return torch.stack(rows).mean()


def queries_and_keys(time: int, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor, AttentionMask]:
    """float64, with gradients: 2 sequences, 4 heads of queries in 2 groups, width 8."""
    generator = torch.Generator().manual_seed(3)
    q = scale * torch.randn(2, 4, time, 8, generator=generator, dtype=torch.float64)
    k = scale * torch.randn(2, 2, time, 8, generator=generator, dtype=torch.float64)
    attention_mask = AttentionMask.for_call(torch.zeros(2, time, dtype=torch.int64), None, None)
    return q.requires_grad_(), k.requires_grad_(), attention_mask


@pytest.fixture
def mixer() -> Softmax:
    layer = Softmax(small(heads=4, key_value_heads=2, head_width=8), 0)
    layer.smallest_chunk = 4
    return layer


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("recompute", [False, True])
def test_value_and_gradient_are_those_of_the_naive_formula(mixer: Softmax, scale: float, recompute: bool) -> None:
    """In several chunks of queries, with grouped keys, kept or computed again for the gradient."""
    q, k, attention_mask = queries_and_keys(13, scale)
    mixer.recompute_above = 0 if recompute else 1000
    assert len(mixer.spans(13)) == 4
    value = normalised_entropy(mixer, q, k, attention_mask)
    gradients = torch.autograd.grad(value, (q, k))
    expected = torch.stack([naive(q[b], k[b].repeat_interleave(2, dim=0)) for b in range(2)]).mean()
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, (q, k)), rtol=1e-10, atol=1e-14)


def test_the_gradient_is_the_derivative(mixer: Softmax) -> None:
    q, k, attention_mask = queries_and_keys(6)
    assert torch.autograd.gradcheck(lambda q, k: normalised_entropy(mixer, q, k, attention_mask), (q, k))


def test_uniform_attention_is_one(mixer: Softmax) -> None:
    q, k, attention_mask = queries_and_keys(9)
    assert normalised_entropy(mixer, q * 0, k, attention_mask).item() == pytest.approx(1.0, abs=1e-12)
    sharp = normalised_entropy(mixer, q * 1e4, k, attention_mask)
    assert sharp.item() < 1e-3
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(sharp, (q, k)))


def test_half_precision_is_widened(mixer: Softmax) -> None:
    q, k, attention_mask = queries_and_keys(9, 2.0)
    half = normalised_entropy(mixer, q.bfloat16(), k.bfloat16(), attention_mask)
    assert half.dtype == torch.float32
    exact = normalised_entropy(mixer, q.bfloat16().double(), k.bfloat16().double(), attention_mask)
    assert half.item() == pytest.approx(exact.item(), abs=1e-6)


class Quiet:
    def say(self, text: str) -> None: ...


def attach_floor(model: Decoder, **options: Any) -> EntropyFloor:
    """The intervention on a bare model, before step 1 of 24."""
    chosen = spec(floor(**options))
    (hook,) = build(chosen.interventions)
    hook.attach(InterventionInputs(spec=chosen, model=model, ranks=None, validation=None, progress=Quiet()))  # type: ignore
    hook.begin(1)
    return hook


def make_sharp(seed: int = 0) -> Decoder:
    """A model whose attention is not nearly uniform."""
    model = create(spec().model, seed)
    with torch.no_grad():
        for name, role in model.parameter_roles.items():
            if role.role in ("query", "key"):
                model.get_parameter(name).mul_(30.0)
    return model


@pytest.mark.parametrize("recompute", [False, True])
def test_the_term_is_the_hinge_on_the_mean_over_the_upper_layers(recompute: bool) -> None:
    """Its gradient reaches the upper layers' queries and keys, and everything below by way of their inputs, but
    nothing of the last layer's that comes after its scores. The same where blocks are computed again."""
    model = make_sharp()
    model.recompute = recompute
    hook = attach_floor(model, floor=0.9, weight=0.3)
    tokens = torch.arange(96).reshape(3, 32) * 7 % 97
    logits = model(tokens)
    upper = [normalised_entropy(model.blocks[layer].attention.mixer, *hook.inputs[layer]) for layer in (2, 3)]
    term = hook.extra_loss(1, tokens)
    assert term.item() == pytest.approx(0.3 * (0.9 - sum(upper).item() / 2), rel=1e-6) and term.item() > 0.01
    (logits.sum() * 0.0 + term).backward()
    assert not hook.inputs, "computed again for the gradient, layers are not watched"
    for name, role in model.parameter_roles.items():
        moved = bool(model.get_parameter(name).grad.abs().max() > 1e-9)
        after_the_scores = role.layer == 3 and (role.role in ("value", "output", "gate", "up", "down") or role.owner)
        if after_the_scores and role.owner not in ("query", "key"):
            assert not moved, name
        elif role.role in ("query", "key", "embedding", "value", "down"):
            assert moved, name


def test_above_floor_and_in_evaluation_there_is_nothing_to_pay() -> None:
    model = create(spec().model, 0)
    hook = attach_floor(model)
    tokens = torch.arange(64).reshape(2, 32)
    model(tokens)
    assert hook.extra_loss(1, tokens) is None
    model.eval()
    model(tokens)
    assert not hook.inputs
    hook.begin(13)
    model.train()
    model(tokens)
    assert not hook.inputs and hook.extra_loss(13, tokens) is None, "released"


def test_the_weight_is_off_at_once_or_ramped() -> None:
    model = create(spec().model, 0)
    off, ramp = attach_floor(model, weight=0.1), attach_floor(model, weight=0.1, after_release="ramp")
    assert [off.weight(step) for step in (1, 12, 13, 24)] == [0.1, 0.1, 0.0, 0.0]
    assert [ramp.weight(step) for step in (1, 12, 18, 24)] == [0.1, 0.1, 0.0, 0.0]
    assert [ramp.weight(step) for step in (13, 15, 17)] == pytest.approx([0.1 * 5 / 6, 0.05, 0.1 / 6])


def test_with_nothing_to_do_a_run_is_the_control_to_the_bit(packs: Path, tmp_path: Path, unslowed: Path) -> None:
    """A floor that no row is below of, and a weight of zero."""
    for name, options in (("low", {"floor": 0.0, "release": "never"}), ("zero", {"weight": 0.0})):
        assert train(spec(floor(**options)), settings(packs, tmp_path / name)) == 0
        mine, other = tmp_path / name / "out/model.safetensors", unslowed / "out/model.safetensors"
        assert sha256_file(mine) == sha256_file(other), name


def test_a_floor_keeps_attention_flatter(packs: Path, tmp_path: Path, unslowed: Path) -> None:
    """A floor of 1 with a large weight: the upper layers' entropy ends above the control's. Stopped and resumed, and
    cut into ranks, it is the same run."""
    from safetensors.torch import load_file

    chosen = spec(floor(floor=1.0, weight=50.0, release="never"))
    assert train(chosen, settings(packs, tmp_path / "whole")) == 0
    entropies = []
    for work in (unslowed, tmp_path / "whole"):
        model = create(chosen.model, 0)
        model.load_state_dict(load_file(work / "out/model.safetensors"))
        hook = attach_floor(model)
        model(torch.arange(320).reshape(10, 32) * 5 % 97)
        entropies.append(
            sum(float(normalised_entropy(hook.mixers[layer], *hook.inputs[layer]).detach()) for layer in (2, 3)) / 2
        )
    assert 1.0 > entropies[1] > entropies[0], entropies
    parts = settings(packs, tmp_path / "parts", max_starts_without_progress=0, checkpoint_seconds=1e9)
    assert [train(chosen, parts, StopAt(number)) for number in (9, 14, 90)][-1] == 0
    assert products(tmp_path / "parts") == products(tmp_path / "whole")


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_ranks_pay_as_one(packs: Path, tmp_path: Path, strategy: str) -> None:
    """One sequence a micro-batch on either side: the hinge is on a micro-batch's mean."""
    from safetensors.torch import load_file

    chosen = spec(floor(floor=1.0, weight=20.0), train__steps=8, train__batch_tokens=128)
    assert train(chosen, settings(packs, tmp_path / "one", micro_batch=1)) == 0
    assert train_ranks(2, chosen, settings(packs, tmp_path / "two", micro_batch=1, strategy=strategy)) == [0, 0]
    mine, other = (load_file(tmp_path / name / "out/model.safetensors") for name in ("two", "one"))
    for name, value in other.items():
        torch.testing.assert_close(mine[name], value, rtol=1e-3, atol=1e-4)


def test_resumed_in_the_ramp_to_the_same_bits(packs: Path, tmp_path: Path) -> None:
    chosen = spec(floor(floor=1.0, weight=5.0, after_release="ramp"))
    assert train(chosen, settings(packs, tmp_path / "whole")) == 0
    parts = settings(packs, tmp_path / "parts", checkpoint_steps=1)
    assert train_ranks(1, chosen, parts, STOP_AFTER_STEP="15") == [75]
    assert train(chosen, parts) == 0
    assert products(tmp_path / "parts") == products(tmp_path / "whole")


def test_it_ends_by_the_same_rule_as_the_main_intervention(packs: Path, tmp_path: Path) -> None:

    chosen = spec({"name": "entropy_floor"} | WINDOW | ALWAYS)
    assert train(chosen, settings(packs, tmp_path)) == 0
    assert read(tmp_path / "out/outcome.json")["interventions"] == [{"released": 8, "fraction": 8 / 24, "why": "score"}]


@pytest.mark.parametrize(
    "mixer, softmax",
    [
        ({"name": "softmax"}, True),
        ({"name": "softmax_cap"}, False),
        ({"name": "sigmoid"}, False),
        ({"name": "softpick"}, False),
        ({"name": "ssmax"}, False),
        ({"name": "differential"}, False),
        ({"name": "selective"}, False),
    ],
)
def test_only_softmax_has_this_entropy(packs: Path, tmp_path: Path, mixer: dict[str, Any], softmax: bool) -> None:
    model = MODEL | {"mixer": mixer, "heads": 8, "key_value_heads": 2}
    chosen = run_spec(model=model, interventions=[floor()])
    assert is_softmax(Decoder(chosen.model).blocks[0].attention.mixer, 8, 8) is softmax
    if not softmax:
        with pytest.raises(PlumblineError, match=rf"the weights of model.mixer '{mixer['name']}' are not the softmax"):
            train(chosen, settings(packs, tmp_path))


@pytest.mark.parametrize(
    "options, message", [({"floor": 1.5}, r"floor \(1.5\) must lie"), ({"weight": -0.1}, r"weight \(-0.1\) must be 0")]
)
def test_what_cannot_be_meant_is_refused(packs: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        train(spec(floor(**options)), settings(packs, tmp_path))
