"""QK-clip: what it measures, that logits shrink by exactly what they should, and what it leaves alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import Decoder, create
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.roles import QUERY_KEY
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions.qk_clip import QKClip, largest_scores
from plumbline.train.run_optimizer import RunOptimizer
from tests.model_specs import run_spec, small
from tests.train.intervention_cases import ADAMW, KINDS, MANY_HEADS, MUON, attach_hooks
from tests.train.small_runs import read, settings, train

#: Of 0.25, 1, 1 and 0.01.
ROOTS = [0.5, 1.0, 1.0, 0.1]
TOKENS = torch.randint(0, 97, (3, 31), generator=torch.Generator().manual_seed(5))


def clip(**options: Any) -> dict[str, Any]:
    return {"name": "qk_clip"} | options


def make_spec(model: dict[str, Any], *interventions: dict[str, Any], **overrides: Any) -> RunSpec:
    return run_spec(model=model, interventions=list(interventions), **overrides)


def make_sharp(spec: RunSpec) -> Decoder:
    """In float64, with logits that differ, and biases that are there."""
    model = create(spec.model, spec.init_seed).double()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, role in model.parameter_roles.items():
            value = model.get_parameter(name)
            if role.role in QUERY_KEY:
                value.mul_(6.0)
            elif role.owner in QUERY_KEY:
                value.copy_(0.3 * torch.randn(value.shape, generator=generator, dtype=torch.float64))
    return model


def on(model: Decoder, spec: RunSpec) -> QKClip:
    """The intervention, before step 1."""
    (hook,) = attach_hooks(spec, model)
    hook.begin(1)
    return hook


def logits(model: Decoder, layer: int, x_BTD: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled scores (B, H, T, T) of a layer with nothing above the diagonal, and the input of its attention: its own,
    or the given one."""
    attention = model.blocks[layer].attention
    tensors: dict[str, torch.Tensor] = {}

    def replace(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        tensors["x"] = args[0] if x_BTD is None else x_BTD
        return (tensors["x"], *args[1:])

    def see(mixer: Softmax, args: tuple[Any, ...]) -> None:
        tensors["z"] = mixer.scores(args[0], args[1]).tril()

    handles = [attention.register_forward_pre_hook(replace), attention.mixer.register_forward_pre_hook(see)]
    with torch.no_grad():
        model(TOKENS)
    for handle in handles:
        handle.remove()
    return tensors["z"], tensors["x"]


def largest(model: Decoder, layer: int) -> torch.Tensor:
    """The largest visible logit (H,), from all of them."""
    scores_BHQK, _ = logits(model, layer)
    seen_QK = torch.ones(31, 31, dtype=torch.bool).tril()
    return scores_BHQK.masked_fill(~seen_QK, -math.inf).amax((0, 2, 3))


@pytest.mark.parametrize("time", [1, 5, 40])
def test_the_largest_score_is_over_visible_entries_with_its_sign(time: int) -> None:
    """In several chunks of queries, with grouped keys; a key that comes later may have any score."""
    mixer = Softmax(small(heads=4, key_value_heads=2, head_width=8), 0)
    mixer.smallest_chunk = 4
    generator = torch.Generator().manual_seed(3)
    q_BHTW = torch.randn(2, 4, time, 8, generator=generator, dtype=torch.float64)
    k_BGTW = torch.randn(2, 2, time, 8, generator=generator, dtype=torch.float64)
    q_BHTW[:, 3] = -k_BGTW[:, 1]  # below zero where a token sees itself
    attention_mask = AttentionMask.for_call(torch.zeros(2, time, dtype=torch.int64), None, None)
    scores = largest_scores(mixer, q_BHTW, k_BGTW, attention_mask)
    for head in range(4):
        z = [
            float(q_BHTW[b, head, i] @ k_BGTW[b, head // 2, j]) / math.sqrt(8)
            for b in range(2) for i in range(time) for j in range(i + 1)
        ]  # fmt: skip
        assert scores[head].item() == pytest.approx(max(z), rel=1e-12)
    if time == 1:
        assert scores[3] < 0


@pytest.mark.parametrize("kind", KINDS)
def test_it_sees_every_micro_batch(kind: str) -> None:
    of = make_spec(KINDS[kind], clip())
    model = make_sharp(of)
    hook = on(model, of)
    expected = torch.stack([largest(model, layer) for layer in (0, 1)])
    for part in TOKENS.split(1):
        model(part)
        assert hook.extra_loss(1, part) is None and not hook.inputs
    torch.testing.assert_close(hook.largest_LH, expected, rtol=1e-6, atol=0.0)
    model.eval()
    model(TOKENS)
    assert not hook.inputs, "only calls of training count"
    hook.begin(2)
    assert (hook.largest_LH == -math.inf).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions, rounding", [("learned", 1e-13), ("rotary", 1e-6)])
def test_logits_of_the_same_inputs_shrink_by_exactly_gamma(kind: str, positions: str, rounding: float) -> None:
    """Each head by its own gamma: threshold over its largest logit, or 1. Nothing but queries and keys changes.
    (Rotations are made in float32.)"""
    slots = KINDS[kind] | {"positions": {"name": positions}}
    of = make_spec(slots, clip())
    model = make_sharp(of)
    tops = torch.stack([largest(model, layer) for layer in (0, 1)])
    threshold = tops.flatten().sort().values[3].item() * 1.0001  # half of the heads are below
    hook = on(model, make_spec(slots, clip(threshold=threshold)))
    before = {layer: logits(model, layer) for layer in (0, 1)}
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    model(TOKENS)
    hook.extra_loss(1, TOKENS)
    hook.after_step(1)
    gamma_LH = (threshold / tops).clamp(max=1.0)
    assert 0 < (gamma_LH < 1).sum() < gamma_LH.numel()
    for layer, (scores_BHTT, x_BTD) in before.items():
        after_BHTT, _ = logits(model, layer, x_BTD)
        torch.testing.assert_close(after_BHTT, gamma_LH[layer][:, None, None] * scores_BHTT, rtol=0, atol=rounding)
        assert scores_BHTT.abs().max() > 0.5
    for name, role in model.parameter_roles.items():
        if not {role.role, role.owner} & (QUERY_KEY - {"query_down", "key_value_down", "key_rotary"}):
            assert torch.equal(model.get_parameter(name), start[name]), name
    assert hook.report(1) == {
        "clipped": int((gamma_LH < 1).sum()), "steps": 1, "largest": pytest.approx(tops.max().item(), rel=1e-6)
    }  # fmt: skip


@pytest.mark.parametrize(
    "kind, expected",
    [
        # Roots on queries and keys.
        ("many_heads", {"query": ROOTS, "key": ROOTS}),
        # Keys by the smallest gamma of the two heads that read them; what is missing, or too much, on queries.
        ("shared_keys", {"query": [0.5, 2.0, 10.0, 0.1], "key": [0.5, 0.1]}),
        # Roots on the content part; the rotary key is one for all heads and stays.
        ("latent", {"query_up": ROOTS, "key_up": ROOTS, "query_rotary": [0.25, 1.0, 1.0, 0.01]}),
    ],
)
def test_how_queries_and_keys_share_gamma(kind: str, expected: dict[str, list[float]]) -> None:
    of = make_spec(KINDS[kind], clip())
    model = make_sharp(of)
    hook = on(model, of)
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    hook.clip(torch.tensor([[1.0] * 4, [0.25, 1.0, 1.0, 0.01]], dtype=torch.float64))
    for name, role in model.parameter_roles.items():
        factors = expected.get(role.owner or role.role, [1.0]) if role.layer == 1 else [1.0]
        rows = torch.tensor(factors, dtype=torch.float64).repeat_interleave(len(start[name]) // len(factors))
        scaled = start[name] * rows.reshape(-1, *[1] * (start[name].ndim - 1))
        torch.testing.assert_close(model.get_parameter(name), scaled, rtol=1e-12, atol=0)


@pytest.mark.parametrize("optimizer", [ADAMW, MUON])
def test_momentum_stays_and_the_update_comes_first(optimizer: dict[str, Any]) -> None:
    """A step with the intervention is the step without it, then the clip by what was seen before it."""
    of = make_spec(MANY_HEADS, clip(threshold=0.5), optimizer=optimizer)
    ends = []
    for with_clip in (True, False):
        model = make_sharp(of).float()
        hook = on(model, of)
        built = RunOptimizer(model, model.parameter_roles, of.optimizer, [hook] if with_clip else [])
        loss = model(TOKENS).logsumexp(-1).sum()
        hook.extra_loss(1, TOKENS)
        loss.backward()
        built.step(1, 0.01)
        if not with_clip:
            hook.after_step(1)
        ends.append((dict(model.named_parameters()), built.tensors()))
        assert hook.report(1)["clipped"] > 0
    (weights, state), (expected, same) = ends
    assert all(torch.equal(value, expected[name]) for name, value in weights.items())
    assert all(torch.equal(value, same[name]) for name, value in state.items()) and state


def test_below_the_threshold_a_run_is_the_control_to_the_bit(packs: Path, tmp_path: Path) -> None:
    runs = {"control": [], "clip": [clip(threshold=1e6)]}
    for name, interventions in runs.items():
        assert train(make_spec(MANY_HEADS, *interventions), settings(packs, tmp_path / name)) == 0
    first, second = (sha256_file(tmp_path / name / "out/model.safetensors") for name in runs)
    assert first == second
    (report,) = read(tmp_path / "clip/out/outcome.json")["interventions"]
    assert report["clipped"] == report["steps"] == 0 and 0 < report["largest"] < 1


def test_a_run_keeps_its_logits_down_and_says_what_it_did(packs: Path, tmp_path: Path) -> None:
    fast = {"optimizer__learning_rate": 0.03, "train__steps": 24, "schedule": {"name": "constant", "warmup_steps": 0}}
    tops = {}
    for name, threshold in (("free", 1e9), ("held", 1.0)):
        of = make_spec(MANY_HEADS, clip(threshold=threshold), **fast)
        assert train(of, settings(packs, tmp_path / name, micro_batch=4)) == 0
        logged = frames.read(tmp_path / name / "out/points/online.parquet", "probes")
        tops[name] = logged[logged.probe == "qk_clip_largest"].value.tolist()
        clipped = logged[logged.probe == "qk_clip_heads"].value
        (report,) = read(tmp_path / name / "out/outcome.json")["interventions"]
        assert report == {"clipped": clipped.sum(), "steps": (clipped > 0).sum(), "largest": max(tops[name])}
        assert logged.step.unique().tolist() == list(range(1, 25))
    assert tops["held"][0] == tops["free"][0], "nothing was done before the first step"
    assert max(tops["free"]) > 10.0 and max(tops["held"]) < 4.0 and report["clipped"] > 4


@pytest.mark.parametrize(
    "changes, options, message",
    [
        ({}, {"threshold": 0.0}, r"qk_clip.threshold \(0\) must be above 0"),
        ({"mixer": {"name": "sigmoid"}}, {}, "qk_clip: the weights of model.mixer 'sigmoid'"),
        ({"query_key": {"name": "qk_norm"}}, {}, "qk_clip: .*query_key 'qk_norm', .* not linear"),
        ({"projections": {"name": "identity_query"}}, {}, r"qk_clip: .*'identity_query'.* roles \['key'\]"),
    ],
)
def test_what_cannot_be_meant_is_refused(packs: Path, tmp_path: Path, changes: Any, options: Any, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        train(make_spec(MANY_HEADS | changes, clip(**options)), settings(packs, tmp_path))


def test_divided_softmax_is_clipped_by_logits_that_enter_it() -> None:
    maxima = []
    for mixer in ({"name": "scaled_softmax", "divisor": 4.0}, {"name": "softmax"}):
        of = make_spec(MANY_HEADS | {"mixer": mixer}, clip())
        model = make_sharp(of)
        hook = on(model, of)
        model(TOKENS)
        hook.extra_loss(1, TOKENS)
        maxima.append(hook.largest_LH[0])
    torch.testing.assert_close(4.0 * maxima[0], maxima[1])
