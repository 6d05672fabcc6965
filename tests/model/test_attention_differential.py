"""Oracles of differential attention."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import create
from plumbline.model.kernel_choice import choose
from plumbline.model.kernels.selection import CHUNKED, SDPA
from plumbline.model.mixers import softmax
from plumbline.model.positions import rotary as positions
from plumbline.model.positions.rotary import Rotary
from tests.model.attention_cases import GROUPS, HEADS, WIDTH, inputs, mixer, padded, plain, scores
from tests.model_specs import small

VARIANTS = ("half_width", "per_head_lambda", "official")
MASK = torch.ones(9, 9).tril().bool()


def causal_softmax(z: torch.Tensor) -> torch.Tensor:
    return z.masked_fill(~MASK, float("-inf")).softmax(-1)


def force_lambda(built, value: float) -> None:
    """lambda_init is all of lambda once the vectors are zero."""
    for name in ("lambda_query_1", "lambda_key_1", "lambda_query_2", "lambda_key_2"):
        getattr(built, name).data.zero_()
    built.lambda_init = torch.tensor(value)


def test_half_width_is_the_formula() -> None:
    q, k, v = inputs(9)
    built = mixer("differential")
    half = WIDTH // 2
    first = causal_softmax(scores(q[..., :half], k[..., :half], half**-0.5))
    second = causal_softmax(scores(q[..., half:], k[..., half:], half**-0.5))
    dots = [(getattr(built, f"lambda_query_{i}") @ getattr(built, f"lambda_key_{i}")).exp() for i in (1, 2)]
    difference = first - (dots[0] - dots[1] + built.lambda_init) * second
    out = difference @ v.repeat_interleave(HEADS // GROUPS, dim=1)
    for head in range(HEADS):
        expected = torch.nn.functional.layer_norm(
            out[:, head], (WIDTH,), built.norm_gain[head], built.norm_bias[head], eps=1e-5
        ) * (1 - built.lambda_init)
        torch.testing.assert_close(built(q, k, v, plain(9))[:, head], expected)


@pytest.mark.parametrize("variant", ["half_width", "per_head_lambda"])
def test_the_whole_heads_width_divides_by_the_root_of_two_more(variant: str) -> None:
    q, k, v = inputs(9)
    half, whole = (mixer("differential", variant=variant, divisor=divisor) for divisor in ("half", "whole"))
    torch.testing.assert_close(whole(q, k, v, plain(9)), half(q / 2**0.5, k, v, plain(9)))
    half_width = WIDTH // 2
    first = causal_softmax(scores(q[..., :half_width], k[..., :half_width], WIDTH**-0.5))
    force_lambda(whole, 0.0)
    torch.testing.assert_close(whole.weights(q, k, plain(9)), first)


def test_half_width_norm_is_group_norm_of_single_tokens() -> None:
    q, k, v = inputs(9)
    built = mixer("differential", one_minus_lambda_init=False)
    difference = built.weights(q, k, plain(9)) @ v.repeat_interleave(HEADS // GROUPS, dim=1)
    channels = difference.transpose(1, 2).flatten(-2)
    norm = torch.nn.GroupNorm(HEADS, HEADS * WIDTH, eps=1e-5).double()
    norm.weight.data, norm.bias.data = built.norm_gain.detach().flatten(), built.norm_bias.detach().flatten()
    expected = norm(channels.flatten(0, 1)).view(2, 9, HEADS, WIDTH).transpose(1, 2)
    torch.testing.assert_close(built(q, k, v, plain(9)), expected)


def test_official_pairs_neighbouring_heads_and_their_values() -> None:
    q, k, v = inputs(9)
    built = mixer("differential", variant="official")
    maps = causal_softmax(scores(q, k))
    factor = built.differential_lambda().squeeze()
    heads = []
    for pair in range(HEADS // 2):
        group = pair // (HEADS // GROUPS)  # of the value pairs, of which there are GROUPS / 2
        values = torch.cat([v[:, 2 * group], v[:, 2 * group + 1]], dim=-1)
        out = (maps[:, 2 * pair] - factor * maps[:, 2 * pair + 1]) @ values
        out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + 1e-5) * built.norm_gain
        heads.append(out * (1 - built.lambda_init))
    expected = torch.cat(heads, dim=-1)
    actual = built(q, k, v, plain(9)).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_sum_to_one_minus_lambda_before_the_norm(variant: str) -> None:
    q, k, _ = inputs(9)
    built = mixer("differential", variant=variant)
    sums = built.weights(q, k, plain(9)).sum(-1)
    torch.testing.assert_close(sums, (1 - built.differential_lambda()).squeeze(-1).expand_as(sums))


def test_without_lambda_it_is_normalised_attention_of_first_half() -> None:
    q, k, v = inputs(9)
    built = mixer("differential", variant="per_head_lambda", one_minus_lambda_init=False)
    force_lambda(built, 0.0)
    half = WIDTH // 2
    plain_out = causal_softmax(scores(q[..., :half], k[..., :half], half**-0.5)) @ v.repeat_interleave(4, dim=1)
    expected = plain_out * torch.rsqrt(plain_out.square().mean(-1, keepdim=True) + 1e-5) * built.norm_gain
    torch.testing.assert_close(built(q, k, v, plain(9)), expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_halves_leave_one_minus_lambda(variant: str) -> None:
    q, k, v = (x.detach().clone() for x in inputs(9))
    if variant == "official":
        q[:, 1::2], k[:, 1::2] = q[:, ::2], k[:, ::2]
    else:
        q[..., 4:], k[..., 4:] = q[..., :4], k[..., :4]
    built = mixer("differential", variant=variant)
    built.eps = 1e-14
    outputs = []
    for value in (0.2, 0.7):
        force_lambda(built, value)
        outputs.append(built(q, k, v, plain(9)))
    torch.testing.assert_close(*outputs)


def test_lambda_starts_by_depth() -> None:
    model = create(small(mixer={"name": "differential"}), init_seed=1)
    starts = [block.attention.mixer.lambda_init for block in model.blocks]
    assert starts == pytest.approx(
        [0.2, 0.8 - 0.6 * math.exp(-0.3), 0.8 - 0.6 * math.exp(-0.6), 0.8 - 0.6 * math.exp(-0.9)]
    )
    first = model.blocks[0].attention.mixer
    assert abs(first.differential_lambda().item() - 0.2) < 0.5
    assert 0.02 < torch.cat([first.lambda_query_1, first.lambda_key_1, first.lambda_query_2]).std() < 0.3
    # The norm starts neutral.
    assert (first.norm_gain == 1).all() and (first.norm_bias == 0).all()


def test_each_half_is_rotated_on_its_own() -> None:
    """Scores of both halves depend on distance only, which fails where a rotated head is split."""
    rotary, length = Rotary(small()), 12
    context = ForwardContext(attention_mask=plain(length), cache=None)
    q, k = (torch.randn(1, 1, 1, WIDTH).expand(1, 1, length, WIDTH) for _ in range(2))
    rotated_q, rotated_k = rotary.rotate(q, context, 2), rotary.rotate(k, context, 2)
    for half in (slice(0, 4), slice(4, 8)):
        z = rotated_q[0, 0, :, half] @ rotated_k[0, 0, :, half].mT
        for distance in range(4):
            diagonal = z.diagonal(-distance)
            torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_short_calls_on_a_processor_are_explicit(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As their manifests state; longer ones, and those elsewhere, take torch's fused attention with twice the heads."""
    model = create(small(mixer={"name": "differential", "variant": variant}), 1)
    assert choose(model, "auto", "cpu", torch.float32)["kernel"] == CHUNKED
    assert choose(model, "auto", "cpu", torch.bfloat16)["kernel"] == SDPA
    assert choose(model, "auto", "cuda", torch.float32)["kernel"] == SDPA
    built, arguments = mixer("differential", variant=variant), inputs(9)
    built.recompute_above = 8
    fused = built(*arguments, plain(9))
    monkeypatch.setattr(softmax, "scaled_dot_product_attention", None)
    built.recompute_above, built.smallest_chunk = 9, 2
    torch.testing.assert_close(built(*arguments, plain(9)), fused)


@pytest.mark.parametrize("splits", [1, 2, 4])
@pytest.mark.parametrize("attention_mask", [plain(9), padded(9, left=2, right=3)])
def test_narrow_parts_to_the_same_bits(
    splits: int, attention_mask: AttentionMask, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, context = (
        inputs(9)[0].detach().float().requires_grad_(),
        ForwardContext(attention_mask=attention_mask, cache=None),
    )
    both = []
    for narrow in (16, 0):
        monkeypatch.setattr(positions, "NARROW", narrow)
        turned = Rotary(small()).rotate(head, context, splits)
        both.append((turned, *torch.autograd.grad(turned.sin().sum(), head)))
    assert all(torch.equal(first, other) for first, other in zip(*both, strict=True))


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(PlumblineError, match="multiple of 4"):
        create(small(head_width=6, mixer={"name": "differential"}), 1)
    with pytest.raises(PlumblineError, match="is odd"):
        create(small(key_value_heads=1, mixer={"name": "differential", "variant": "official"}), 1)
