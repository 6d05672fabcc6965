"""Oracles of scalable softmax."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.model.mixers.ssmax import ORIGINAL_SCALE
from tests.model.attention_cases import HEADS, WIDTH, inputs, mixer, plain, scores, with_scores


def sharpness(built) -> torch.Tensor:
    """s of each head."""
    logits = built.scale_parameter.detach()
    return logits if built.variant == "original" else torch.log1p(logits.exp()) + 0.5


@pytest.mark.parametrize(("n", "count"), [("visible", lambda i: i + 1), ("context", lambda i: 32)])
@pytest.mark.parametrize("variant", ["multiply", "divide", "original"])
def test_is_the_formula(variant: str, n: str, count) -> None:
    q, k, _ = inputs(9)
    built = mixer("ssmax", variant=variant, n=n)
    weights, z, s = built.weights(q, k, plain(9)), scores(q, k), sharpness(built)
    for i in range(1, 9):
        factor = (s * math.log(count(i)))[:, None]
        row = z[:, :, i, : i + 1]
        expected = (row / factor if variant == "divide" else row * factor).softmax(-1)
        torch.testing.assert_close(weights[:, :, i, : i + 1], expected, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(weights[:, :, 0, 0], torch.ones_like(weights[:, :, 0, 0]))


def test_plain_scores_are_not_divided_by_the_root_of_the_width() -> None:
    q, k, v = inputs(9, spread=0.5)
    built, scaled = mixer("ssmax", scores="plain"), mixer("ssmax")
    torch.testing.assert_close(built(q, k, v, plain(9)), scaled(q * WIDTH**0.5, k, v, plain(9)))
    built.scale_parameter.data.fill_(-1e4)  # s = 0.5
    expected = (0.5 * math.log(9) * scores(q, k, scale=1.0)[:, :, -1]).softmax(-1)
    torch.testing.assert_close(built.weights(q, k, plain(9))[:, :, -1], expected, rtol=1e-5, atol=1e-7)


def test_neutral_scale_is_softmax() -> None:
    q, k, v = inputs(9)
    built = mixer("ssmax", variant="original", n="context")
    built.scale_parameter.data.fill_(1 / math.log(32))
    torch.testing.assert_close(built(q, k, v, plain(9)), mixer("softmax")(q, k, v, plain(9)), rtol=1e-6, atol=1e-6)
    built.scale_parameter.data.zero_()
    torch.testing.assert_close(
        built.weights(q, k, plain(9))[..., -1, :], torch.full((2, HEADS, 9), 1 / 9, dtype=torch.float64)
    )


def test_weights_are_n_to_the_power_of_the_score() -> None:
    z = torch.randn(HEADS, 8, 8, dtype=torch.float64)
    built = mixer("ssmax", variant="original")
    weights, s = built.weights(*with_scores(z), plain(8)), sharpness(built)
    powers = 8.0 ** (s[:, None] * z[:, -1])
    torch.testing.assert_close(weights[0, :, -1], powers / powers.sum(-1, keepdim=True), rtol=1e-5, atol=1e-8)


def test_starting_scales() -> None:
    assert sharpness(mixer("ssmax", noise=0.0)) == pytest.approx(math.log(2) + 0.5)
    # softplus + 0.5 keeps the multiplier at n = 1024 above 3.47: neutral cannot be reached.
    assert 0.5 * math.log(1024) == pytest.approx(3.466, abs=1e-3)
    mean_log = math.lgamma(1025) / 1024
    assert pytest.approx(1 / mean_log, abs=1e-3) == ORIGINAL_SCALE
