"""Runs of one seed are found by their curves; independent runs, also of few steps, are not taken for them."""

from __future__ import annotations

import numpy as np

from plumbline.stats.repeated_curves import MOST_CURVES, SHARE, find_repeated_curves, measure_shares


def curve(rng: np.random.Generator, steps: int = 12, noise: float = 0.01) -> dict[int, float]:
    return {100 * step: 3 + 1 / step + noise * rng.standard_normal() for step in range(1, steps + 1)}


def test_a_run_that_was_made_again_is_found() -> None:
    rng = np.random.default_rng(0)
    curves = [curve(rng) for _ in range(6)]
    assert find_repeated_curves(curves) == []
    again = {step: value + 1e-5 * rng.standard_normal() for step, value in curves[2].items()}
    (repeat,) = find_repeated_curves([*curves, again])
    assert (repeat.earlier, repeat.later) == (2, 6) and repeat.share < SHARE


def test_too_few_curves_or_shared_steps_tell_nothing() -> None:
    rng = np.random.default_rng(1)
    same = curve(rng)
    assert find_repeated_curves([same, same]) == []
    short = [curve(rng, steps=4) for _ in range(5)]
    assert find_repeated_curves([*short, short[0]]) == []
    apart = [{step + offset: value for step, value in curve(rng).items()} for offset in range(4)]
    assert measure_shares(apart) is None
    assert measure_shares([curve(rng) for _ in range(MOST_CURVES + 1)]).shape == (MOST_CURVES, MOST_CURVES)
