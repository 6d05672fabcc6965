"""Oracles of softpick's three variants."""

from __future__ import annotations

import pytest
import torch

from plumbline.model.mixers.softpick import EPSILON
from tests.model.attention_cases import GROUPS, HEADS, inputs, mixer, plain, scores, with_scores


def test_rectified_is_the_formula() -> None:
    q, k, _ = inputs(9)
    weights, z = mixer("softpick").weights(q, k, plain(9)), scores(q, k)
    for i in range(9):
        expected = (z[:, :, i, : i + 1].softmax(-1) - 1 / (i + 1)).clamp(min=0)
        torch.testing.assert_close(weights[:, :, i, : i + 1], expected, rtol=1e-6, atol=1e-8)
        assert not weights[:, :, i, i + 1 :].any()


def test_rectified_rows_sum_to_at_most_one_minus_one_over_n() -> None:
    q, k, _ = inputs(30, spread=6.0)
    weights = mixer("softpick").weights(q, k, plain(30))
    sums, n = weights.sum(-1), torch.arange(1, 31)
    assert (sums >= 0).all() and (sums <= 1 - 1 / n + 1e-6).all()
    # Unless a row is uniform, some key is above 1 / n.
    assert ((weights > 0).any(-1)[:, :, 1:]).all()
    assert not weights[:, :, 0].any()


def test_rectified_is_invariant_to_a_shift_of_the_scores() -> None:
    z = torch.randn(HEADS, 6, 6, dtype=torch.float64)
    differences = {}
    for variant in ("rectified", "original"):
        built = mixer("softpick", variant=variant)
        base, shifted = (built.weights(*with_scores(value), plain(6)) for value in (z, z + 3))
        differences[variant] = (base - shifted).abs().max()
    assert differences["rectified"] < 1e-12
    assert differences["original"] > 0.05


def test_rectified_limits() -> None:
    built, n = mixer("softpick"), 6
    peak = torch.zeros(HEADS, n, n, dtype=torch.float64)
    peak[:, -1, 2] = 1e3
    row = built.weights(*with_scores(peak), plain(n))[0, 0, -1]
    assert row[2] == pytest.approx(1 - 1 / n) and row.sum() == row[2]
    uniform = built.weights(*with_scores(torch.zeros(HEADS, n, n, dtype=torch.float64)), plain(n))
    assert uniform.abs().max() < 1e-7


@pytest.mark.parametrize(("n", "count"), [("context", 32), ("sequence", 9)])
def test_rectified_variants_of_n(n: str, count: int) -> None:
    q, k, _ = inputs(9)
    weights, z = mixer("softpick", n=n).weights(q, k, plain(9)), scores(q, k)
    for i in range(9):
        expected = (z[:, :, i, : i + 1].softmax(-1) - 1 / count).clamp(min=0)
        torch.testing.assert_close(weights[:, :, i, : i + 1], expected, rtol=1e-6, atol=1e-8)


def test_rectified_approaches_softmax_with_many_keys() -> None:
    q, k, _ = inputs(9)
    built = mixer("softpick", n="context")
    built.context = 10**12
    softmax = mixer("softmax").weights(q, k, plain(9))
    torch.testing.assert_close(built.weights(q, k, plain(9)), softmax, rtol=1e-6, atol=1e-9)


def test_the_gradient_needs_the_threshold_term() -> None:
    """delta = do . o + c (do . u): what a kernel that keeps no rows of p must use; do . o alone is wrong."""
    q, k, v = inputs(11)
    built = mixer("softpick")
    out = built(q, k, v, plain(11))
    do = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    dq, _, _ = torch.autograd.grad((out * do).sum(), (q, k, v))

    per_group = HEADS // GROUPS
    k_BHKW, v_BHKW = (x.detach().repeat_interleave(per_group, dim=1) for x in (k, v))
    mask = torch.ones(11, 11).tril().bool()
    p = scores(q, k).detach().masked_fill(~mask, float("-inf")).softmax(-1)
    c = 1 / torch.arange(1, 12, dtype=torch.float64)[:, None]
    step = (p > c + 1e-7).double()
    o, u = (step * (p - c)) @ v_BHKW, step @ v_BHKW
    torch.testing.assert_close(out.detach(), o, rtol=1e-6, atol=1e-6)
    dp = step * (do @ v_BHKW.mT)
    with_term = (do * o).sum(-1, keepdim=True) + c * (do * u).sum(-1, keepdim=True)
    without = (do * o).sum(-1, keepdim=True)
    expected, wrong = (p * (dp - delta) @ k_BHKW * 8**-0.5 for delta in (with_term, without))
    torch.testing.assert_close(dq, expected, rtol=1e-5, atol=1e-6)
    assert (dq - wrong).abs().max() > 1e-3


def test_original_is_the_formula() -> None:
    q, k, _ = inputs(9)
    weights, z = mixer("softpick", variant="original").weights(q, k, plain(9)), scores(q, k)
    for i in range(9):
        row = z[:, :, i, : i + 1].exp() - 1
        torch.testing.assert_close(
            weights[:, :, i, : i + 1],
            row.clamp(min=0) / (row.abs().sum(-1, keepdim=True) + EPSILON),
            rtol=1e-4,
            atol=1e-6,
        )
        assert not weights[:, :, i, i + 1 :].any()


def test_original_is_silent_where_all_scores_are_negative() -> None:
    z = -torch.rand(HEADS, 6, 6, dtype=torch.float64) - 0.1
    for variant in ("original", "masked_negative"):
        assert not mixer("softpick", variant=variant).weights(*with_scores(z), plain(6)).any()


def test_masked_negative_is_softmax_over_positive_scores() -> None:
    q, k, _ = inputs(9)
    weights, z = mixer("softpick", variant="masked_negative").weights(q, k, plain(9)), scores(q, k)
    for i in range(9):
        row = z[:, :, i, : i + 1]
        terms = row.exp() * (row >= 0)
        expected = terms / terms.sum(-1, keepdim=True).clamp(min=1e-300)
        torch.testing.assert_close(weights[:, :, i, : i + 1], expected, rtol=1e-10, atol=1e-12)
