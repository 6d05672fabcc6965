"""Oracles of sigmoid attention."""

from __future__ import annotations

import math

import pytest
import torch

from tests.model.attention_cases import inputs, mixer, plain, scores


def with_bias(value: float, **options):
    built = mixer("sigmoid", **options)
    built.bias.data.fill_(value)
    return built


@pytest.mark.parametrize(
    ("n", "count"), [("context", lambda i: 32), ("sequence", lambda i: 9), ("visible", lambda i: i + 1)]
)
@pytest.mark.parametrize("variant", ["divided", "original"])
def test_is_the_formula(variant: str, n: str, count) -> None:
    q, k, _ = inputs(9)
    built = mixer("sigmoid", variant=variant, n=n)
    weights, z = built.weights(q, k, plain(9)), scores(q, k)
    for i in range(9):
        row = z[:, :, i, : i + 1]
        if variant == "divided":
            expected = torch.sigmoid(row + built.bias) / count(i)
        else:
            expected = torch.sigmoid(row - math.log(count(i)))
        torch.testing.assert_close(weights[:, :, i, : i + 1], expected, rtol=1e-6, atol=1e-9)
        assert not weights[:, :, i, i + 1 :].any()


def test_bias_limits() -> None:
    q, k, v = inputs(9)
    assert with_bias(-1e4)(q, k, v, plain(9)).abs().max() == 0
    # At +inf the running mean over visible keys, times visible / n.
    total = v.cumsum(2).repeat_interleave(4, dim=1)
    torch.testing.assert_close(with_bias(1e4)(q, k, v, plain(9)), total / 32)
    torch.testing.assert_close(with_bias(0.0)(0 * q, k, v, plain(9)), total / 64)


def test_a_bias_for_each_head_is_its_heads_own() -> None:
    q, k, v = inputs(9)
    built = mixer("sigmoid", bias="head", noise=0.0)
    torch.testing.assert_close(built(q, k, v, plain(9)), mixer("sigmoid", noise=0.0)(q, k, v, plain(9)))
    built.bias.data[3] = -1e4
    silent = built(q, k, v, plain(9)).abs().amax(dim=(0, 2, 3)) == 0
    assert silent.tolist() == [head == 3 for head in range(8)]


def test_keys_do_not_compete() -> None:
    q, k, _ = inputs(9)
    changed = k.detach().clone()
    changed[:, :, 3] += 5
    first, other = (mixer("sigmoid").weights(q, keys, plain(9)) for keys in (k, changed))
    others = torch.arange(9) != 3
    torch.testing.assert_close(first[..., others], other[..., others])
    assert not torch.allclose(first[..., 3], other[..., 3])


def test_a_divided_weight_never_exceeds_one_over_n() -> None:
    q, k, _ = inputs(9, spread=20.0)
    assert mixer("sigmoid").weights(q, k, plain(9)).max() <= 1 / 32
    assert mixer("sigmoid", variant="original").weights(q, k, plain(9)).max() > 0.99
