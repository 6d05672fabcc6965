"""Oracles of what stands around a mixer (QK-Norm, value residual, head gate) and of the capped softmax."""

from __future__ import annotations

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Decoder, create
from tests.model.attention_cases import GROUPS, HEADS, WIDTH, inputs, mixer, plain, scores, with_scores
from tests.model_specs import small

QK_NORM = {"query_key": {"name": "qk_norm"}}
TOKENS = torch.randint(0, 97, (2, 10), generator=torch.Generator().manual_seed(1))


def model(**overrides) -> Decoder:
    return create(small(init_std=0.15, **overrides), init_seed=2)


def attention_of(built: Decoder, x_BTD: torch.Tensor, layer: int = 0) -> torch.Tensor:
    context = ForwardContext(attention_mask=plain(x_BTD.shape[1]), cache=None)
    return built.blocks[layer].attention(x_BTD, context, built.positions)


def test_qk_norm_gives_heads_of_equal_length_and_bounded_scores() -> None:
    q, k, _ = (x.detach().float() for x in inputs(9))
    q, k = model(**QK_NORM).blocks[0].attention.query_key(q, k)
    torch.testing.assert_close(q.norm(dim=-1), torch.full(q.shape[:-1], WIDTH**0.5), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(k.norm(dim=-1), torch.full(k.shape[:-1], WIDTH**0.5), rtol=1e-3, atol=1e-3)
    assert mixer("softmax").scores(q, k).abs().max() <= WIDTH**0.5 + 1e-4


@torch.no_grad()
def test_qk_norm_removes_the_scale_of_queries_and_keys() -> None:
    built = model(**QK_NORM, norm_eps=1e-12)
    before = built(TOKENS)
    for block in built.blocks:
        block.attention.projections.query.weight *= 3.7
        block.attention.projections.key.weight *= 0.2
    torch.testing.assert_close(built(TOKENS), before, rtol=1e-4, atol=1e-4)


def test_qk_norm_gains_are_shared_by_heads() -> None:
    norm = model(**QK_NORM).blocks[0].attention.query_key
    assert norm.query_norm.gain.shape == norm.key_norm.gain.shape == (WIDTH,)


def test_the_cap_is_softmax_inside_and_level_outside() -> None:
    q, k, v = inputs(9)
    capped, softmax = mixer("softmax_cap"), mixer("softmax")
    assert torch.equal(capped.weights(q, k, plain(9)), softmax.weights(q, k, plain(9)))
    torch.testing.assert_close(capped(q, k, v, plain(9)), softmax(q, k, v, plain(9)))
    z = torch.zeros(HEADS, 3, 3, dtype=torch.float64)
    z[:, -1] = torch.tensor([60.0, 55.0, 0.0])
    q, k = (x.requires_grad_() for x in with_scores(z))
    row = capped.weights(q, k, plain(3))[0, 0, -1]
    assert row[0].item() == row[1].item() == pytest.approx(0.5) and row[2].item() < 1e-20
    # No gradient where the clamp holds.
    (gradient,) = torch.autograd.grad(row[0], q)
    assert not gradient[0, 0, -1, :2].any()


def test_a_tanh_bounds_scores_and_lets_gradients_through() -> None:
    q, k, v = inputs(9, spread=6.0)
    z, cap = scores(q, k), 2.0
    assert (z.abs() > 2 * cap).any() and (z.abs() < cap / 2).any()
    visible = torch.ones(9, 9, dtype=torch.bool).tril()
    # e^(2x) = (1 + tanh x) / (1 - tanh x), so that the formula is written without a tanh; softmax by its own sums.
    bounded = cap * (1 - 2 / (1 + torch.exp(2 * z / cap)))
    terms = torch.exp(bounded) * visible
    built = mixer("tanh_cap", cap=cap)
    expected = terms / terms.sum(-1, keepdim=True)
    torch.testing.assert_close(built.weights(q, k, plain(9)), expected)
    values = v.repeat_interleave(HEADS // GROUPS, dim=1)
    (ours, theirs) = (
        torch.autograd.grad(out.square().sum(), (q, k, v), retain_graph=True)
        for out in (built(q, k, v, plain(9)), expected @ values)
    )
    for gradient, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, other)
    # Where the clamp of `softmax_cap` holds and gives no gradient, there is one.
    z = torch.zeros(HEADS, 3, 3, dtype=torch.float64)
    z[:, -1] = torch.tensor([6.0, 5.0, 0.0])
    q, k = (x.requires_grad_() for x in with_scores(z))
    (gradient,) = torch.autograd.grad(built.weights(q, k, plain(3))[0, 0, -1, 0], q)
    assert gradient[0, 0, -1, :2].all()
    with pytest.raises(PlumblineError, match=r"model\.mixer\.cap \(0\)"):
        mixer("tanh_cap", cap=0.0)


def test_value_residual_blends_with_the_first_layers_values() -> None:
    built = model(values={"name": "value_residual"})
    context = ForwardContext(attention_mask=plain(5), cache=None)
    first, later = torch.randn(2, 1, GROUPS, 5, WIDTH).unbind()
    values = [block.attention.values for block in built.blocks]
    assert values[0](first, context) is first and values[0].share is None
    torch.testing.assert_close(values[2](later, context), 0.5 * later + 0.5 * first)
    values[3].share.data.fill_(0.25)
    torch.testing.assert_close(values[3](later, context), 0.75 * later + 0.25 * first)


def test_value_residual_may_have_a_share_for_each_key_value_head() -> None:
    built = model(values={"name": "value_residual", "shares": "head"})
    context = ForwardContext(attention_mask=plain(5), cache=None)
    first, later = torch.randn(2, 1, GROUPS, 5, WIDTH).unbind()
    values = [block.attention.values for block in built.blocks]
    values[0](first, context)
    torch.testing.assert_close(values[2](later, context), 0.5 * later + 0.5 * first)
    values[2].share.data[1] = 0.0
    blended = values[2](later, context)
    torch.testing.assert_close(blended[:, 0], 0.5 * later[:, 0] + 0.5 * first[:, 0])
    torch.testing.assert_close(blended[:, 1], later[:, 1])


def test_value_residual_of_one_cuts_later_value_projections_off() -> None:
    built = model(values={"name": "value_residual", "initial": 1.0})
    built(TOKENS).square().sum().backward()
    gradients = [block.attention.projections.value.weight.grad for block in built.blocks]
    assert gradients[0].abs().max() > 0
    assert not any(gradient.any() for gradient in gradients[1:])


def test_first_values_collect_gradients_from_all_layers() -> None:
    built = model(values={"name": "value_residual"})
    gradients = []
    for last in (1, 3):
        for block in built.blocks[1:]:
            block.attention.values.share.data.fill_(0.0)
        built.blocks[last].attention.values.share.data.fill_(0.5)
        built.zero_grad()
        built(TOKENS).square().sum().backward()
        gradients.append(built.blocks[0].attention.projections.value.weight.grad.clone())
        assert built.blocks[last].attention.values.share.grad.abs() > 0
    assert not torch.allclose(*gradients)


@torch.no_grad()
def test_a_gate_of_zero_halves_attention() -> None:
    gated, plain_model = model(**QK_NORM, output={"name": "head_gate"}), model(**QK_NORM)
    x = torch.randn(2, 10, 64)
    expected = attention_of(plain_model, x)
    gate = gated.blocks[0].attention.output.gate
    assert gate.weight.shape == (HEADS, 64) and gate.bias is None
    gate.weight.zero_()
    torch.testing.assert_close(attention_of(gated, x), 0.5 * expected)
    gate.bias = torch.nn.Parameter(torch.full((HEADS,), 100.0))
    torch.testing.assert_close(attention_of(gated, x), expected)


@torch.no_grad()
def test_a_gate_is_one_number_for_a_head_and_token() -> None:
    gated = model(output={"name": "head_gate"})
    output, x = gated.blocks[0].attention.output, torch.randn(2, 5, 64)
    ones = torch.ones(2, HEADS, 5, WIDTH)
    expected = (x @ output.gate.weight.T).sigmoid().transpose(1, 2)[..., None].expand_as(ones)
    torch.testing.assert_close(output(ones, x), expected)


def test_values_norm_has_unit_rms_and_one_gain() -> None:
    built = model(values={"name": "rms_norm"})
    values = built.blocks[1].attention.values
    v = 5 * torch.randn(2, GROUPS, 7, WIDTH)
    out = values(v, ForwardContext(attention_mask=plain(7), cache=None))
    torch.testing.assert_close(out.square().mean(-1), torch.ones(2, GROUPS, 7), rtol=1e-3, atol=1e-3)
    assert [tuple(p.shape) for p in values.parameters()] == [(WIDTH,)]
