"""What must hold for every method and every alternative variant of it (U1 to U7), and which start as the baseline."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.mixers._base import Mixer
from plumbline.specs.spec import ModelSpec
from tests.model.attention_cases import inputs, mixer, padded, plain
from tests.model.transfer_methods import ALL, LENGTH_DEPENDENT, METHODS, PAPER, overlay

LENGTH = 12


def cases(*, broken_by_length: bool) -> list:
    """All methods; those whose n is the call's length are expected to fail where length matters."""
    mark = pytest.mark.xfail(strict=True, reason="n is the length of the call: what follows a token changes it")
    return [pytest.param(name, marks=[mark] if broken_by_length and name in LENGTH_DEPENDENT else []) for name in ALL]


@cache
def lively(name: str) -> Decoder:
    """A small model of a method with every parameter off its start, so that nothing is switched off. Read only."""
    model = create(ModelSpec.from_dict(overlay(name, init_std=0.15)), init_seed=5)
    generator = torch.Generator().manual_seed(6)
    for value in model.parameters():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)
    return model.eval()


def tokens(length: int = LENGTH, rows: int = 2) -> torch.Tensor:
    return torch.randint(0, 97, (rows, length), generator=torch.Generator().manual_seed(7))


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    # Logits of a model without norms are in the hundreds: rounding goes by the largest of them.
    torch.testing.assert_close(actual, expected, rtol=2e-4, atol=2e-4 * max(1.0, expected.abs().max().item() / 10))


@pytest.mark.parametrize("name", cases(broken_by_length=False))
@torch.no_grad()
def test_u1_later_tokens_change_nothing(name: str) -> None:
    model, first = lively(name), tokens()
    second = first.clone()
    second[:, 7:] = (second[:, 7:] + 31) % 97
    ours, other = model(first), model(second)
    close(ours[:, :7], other[:, :7])
    assert not torch.allclose(ours[:, 7:], other[:, 7:], atol=1e-3)


@pytest.mark.parametrize("name", cases(broken_by_length=True))
@torch.no_grad()
def test_u2_appended_tokens_change_nothing(name: str) -> None:
    model, whole = lively(name), tokens()
    close(model(whole[:, :5]), model(whole)[:, :5])


@pytest.mark.parametrize("name", cases(broken_by_length=True))
@torch.no_grad()
def test_u3_prefill_is_decoding_token_by_token(name: str) -> None:
    model, whole = lively(name), tokens()
    expected, cache = model(whole), DecodingCache()
    parts = [model(part, cache=cache) for part in whole.split([5, 1, 3, 1, 1, 1], dim=1)]
    close(torch.cat(parts, dim=1), expected)


@pytest.mark.parametrize("name", cases(broken_by_length=True))
@torch.no_grad()
def test_u4_padding_changes_no_real_row(name: str) -> None:
    model, whole = lively(name), tokens()
    expected = model(whole)
    tokens_BT = torch.zeros(2, LENGTH + 4, dtype=torch.long)
    padding_BT = torch.ones_like(tokens_BT, dtype=torch.bool)
    tokens_BT[0, 4:], padding_BT[0, 4:] = whole[0], False
    tokens_BT[1, :-4], padding_BT[1, :-4] = whole[1], False
    actual = model(tokens_BT, padding_BT=padding_BT)
    close(actual[0, 4:], expected[0])
    close(actual[1, :-4], expected[1])
    # Decoding goes on from a padded prompt, each row from its own last token.
    cache, following = DecodingCache(), tokens(LENGTH + 1)[:, -1:]
    model(tokens_BT, padding_BT=padding_BT, cache=cache)
    close(model(following, cache=cache), model(torch.cat([whole, following], dim=1))[:, -1:])


MIXERS = {name: ALL[name]["mixer"] for name in ALL if "mixer" in ALL[name] and "selective_qknorm" not in name}


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("recompute_above", [16, 1000])
@pytest.mark.parametrize("name", MIXERS)
def test_u5_the_fast_path_is_the_reference(name: str, recompute_above: int, padding: bool) -> None:
    built = mixer(**MIXERS[name])
    built.smallest_chunk, built.recompute_above = 8, recompute_above
    attention_mask = padded(37, left=5, right=9) if padding else plain(37)
    arguments = inputs(37, groups=built.groups)
    real_BT = (attention_mask.query_positions_BQ >= 0).expand(2, -1)
    results = []
    for path in (built.forward, built.reference):
        out = path(*arguments, attention_mask)
        assert out.shape == (2, built.output_heads, 37, 8)
        out = out * real_BT[:, None, :, None]
        weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape).sin()
        learned = list(built.parameters())
        gradients = torch.autograd.grad((out * weights).sum(), [*arguments, *learned])
        results.append((out, *gradients))
    for fast, reference in zip(*results, strict=True):
        torch.testing.assert_close(fast, reference, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["huge", "equal"])
@pytest.mark.parametrize("name", MIXERS)
def test_u6_extreme_scores_give_finite_gradients_in_bfloat16(name: str, kind: str) -> None:
    built = mixer(**MIXERS[name]).float()
    for length in (1, 2, 9):
        assert_finite(built, kind, length)


def assert_finite(built: Mixer, kind: str, length: int) -> None:
    arguments = [x.detach().bfloat16() for x in inputs(length, groups=built.groups, spread=1.0)]
    if kind == "huge":
        # Keys are their queries' mirror in one half and opposed to them in the other: |z| up to about 1000.
        size = (1000 / (8 * built.scale)) ** 0.5
        arguments[0] = torch.full_like(arguments[0], size)
        arguments[1] = torch.full_like(arguments[1], size)
        arguments[1][:, :, ::2] *= -1
        assert 900 < built.scores(*arguments[:2]).abs().max() < 1500
    else:
        arguments[1] = arguments[1][:, :, :1].expand_as(arguments[1]).clone()
    arguments = [x.requires_grad_() for x in arguments]
    for path in (built.forward, built.reference):
        out = path(*arguments, plain(length))
        assert out.dtype == torch.bfloat16
        gradients = torch.autograd.grad(out.float().square().sum(), [*arguments, *built.parameters()])
        for value in (out, *gradients):
            assert value.isfinite().all()


@pytest.mark.parametrize("name", ALL)
def test_u6_models_have_finite_gradients_under_autocast(name: str) -> None:
    model = lively(name)
    for length in (1, 2, 9):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens(length))
        logits.square().mean().backward()
        assert logits.dtype == torch.float32 and logits.isfinite().all()
    for parameter_name, value in model.named_parameters():
        assert value.grad is not None and value.grad.isfinite().all(), parameter_name


#: Parameters in addition to the baseline's 1,216,710,656 at paper size (Table 4 prints them rounded).
PARAMETERS = {
    "baseline": 0,
    "softpick": 0,
    "qknorm": 3_072,
    "selective_attn": -25_165_824,
    "selective_attn.halved_key_values": -25_165_824,
    "selective_attn.original": 0,
    "selective_attn.after_softmax": -25_165_824,
    "selective_qknorm": -25_162_752,
    "sigmoid_attn": 24,
    "sigmoid_attn.original": 0,
    "sigmoid_attn.bias_per_head": 768,
    "ssmax": 768,
    "ssmax.original": 768,
    "diff_attn": 101_376,
    "diff_attn.per_head_lambda": 98_304 + 1_536,
    "diff_attn.official": 24 * (4 * 64 + 128),
    "value_residual": 23,
    "value_residual.share_per_head": 184,
    "gated_attn_qknorm": 1_575_936,
    "softmax_cap": 0,
    "hybrid_norm": 0,
    "hybrid_norm.official": -44_544,
    "sandwich_norm": 98_304,
    "geglu_ffn": 0,
    "qknorm_geglu": 3_072,
    "relu_squared": 0,
    "relu_squared.squared_output": 0,
    "denseformer": 300,
    "denseformer.official": 324,
    "layerscale": 49_152,
    "layerscale.two_vectors": 98_304,
    "hyper": 96,
    "hyper.per_layer": 48,
    "hyper.at_output": 49,
    "attnres": 200_704,
    "attnres.whole_layers": 200_704,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_u7_parameter_counts_at_paper_size(name: str) -> None:
    model = on_meta(ModelSpec.from_dict(overlay(name, **PAPER)))
    assert sum(value.numel() for value in model.parameters()) == 1_216_710_656 + PARAMETERS[name]


@cache
def start(name: str, **changes) -> Decoder:
    """A small model of a method as it starts. Read only."""
    return create(ModelSpec.from_dict(overlay(name) | changes), init_seed=5)


@pytest.mark.parametrize("name", ALL)
def test_shared_parameters_start_the_same(name: str) -> None:
    model = start(name)
    spec = model.spec
    init = {"init_std": spec.init_std, "residual_init_scaling": spec.residual_init_scaling}
    baseline = dict(start("baseline", **init).named_parameters())
    shared = [key for key, value in model.named_parameters() if key in baseline and baseline[key].shape == value.shape]
    assert "embedding" in shared and len(shared) >= 20
    for key in shared:
        assert torch.equal(model.get_parameter(key), baseline[key]), key


#: Start with the baseline's logits: bit by bit where the arithmetic is the same.
EXACT = ("denseformer", "denseformer.official", "hyper", "hyper.per_layer", "hyper.at_output")
CLOSE = ("softmax_cap", "tanh_cap", "attnres.official", "attnres.zero_queries", "hyper.official")


@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_methods_that_start_as_the_baseline(name: str) -> None:
    # Streams that are a mean or a multiple of the baseline's are the same to a norm without epsilon.
    expected, actual = start("baseline", norm_eps=1e-12)(tokens()), start(name, norm_eps=1e-12)(tokens())
    if name in EXACT:
        assert torch.equal(actual, expected)
    elif name in CLOSE:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    elif name != "baseline":
        assert not torch.allclose(actual, expected, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_value_residual_without_a_share_is_the_baseline() -> None:
    off = overlay("baseline", values={"name": "value_residual", "initial": 0.0})
    model = create(ModelSpec.from_dict(off), init_seed=5)
    torch.testing.assert_close(model(tokens()), start("baseline")(tokens()), rtol=0, atol=0)


def test_there_are_twenty_methods() -> None:
    assert len(METHODS) == 20
    assert set(METHODS) <= set(PARAMETERS)
