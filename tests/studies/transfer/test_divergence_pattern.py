"""The classifier of divergences on synthetic histories of gradient norms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plumbline.studies.transfer.divergence_pattern import classify
from tests.studies.transfer.synthetic_runs import history

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("step", [2800, 2900, 3500])
def test_nan_from_a_stable_range_is_sudden(step):
    pattern = classify(*zip(*history("sudden", step), strict=True), warmup_steps=2000)
    assert pattern.signature == "sudden" and 0.17 < pattern.stable < 0.2 and math.isnan(pattern.elevated_from)


def test_a_spike_at_the_last_logged_step_is_still_sudden():
    steps, norms = map(list, zip(*history("sudden", 3500), strict=True))
    norms[-2] = 0.83
    pattern = classify(steps, norms, warmup_steps=2000)
    assert pattern.signature == "sudden" and pattern.elevated_from == 3400 and pattern.elevated_steps == 100
    assert pattern.peak == pattern.last == 0.83


def test_a_monotone_rise():
    pattern = classify(*zip(*history("rise", 5800), strict=True), warmup_steps=2000)
    assert pattern.signature == "rise" and pattern.elevated_from == 4000 and pattern.elevated_steps == 1800
    assert pattern.first == pytest.approx(27) and pattern.last > 1500


def test_a_rise_may_be_noisy_and_finely_logged():
    steps = np.arange(1, 5801)
    level = np.where(steps < 4000, 0.3, 27 * (1578 / 27) ** ((steps - 4000) / 1800))
    pattern = classify(steps, level * np.exp(0.2 * RNG.standard_normal(steps.size)), warmup_steps=2000)
    assert pattern.signature == "rise"


def test_sustained_inflation():
    pattern = classify(*zip(*history("inflation", 18300), strict=True), warmup_steps=2000)
    assert pattern.signature == "inflation" and pattern.elevated_from == 15000 and pattern.peak > 100


def test_peaks_with_calm_steps_between_are_one_stretch():
    steps = np.arange(0, 18301, 100)
    norms = np.where((steps >= 15000) & (steps % 500 == 0), 130.0, 0.4)
    norms[40] = 50.0  # long before: not of it
    pattern = classify(steps, [*norms[:-1], math.nan], warmup_steps=2000)
    assert pattern.signature == "inflation" and pattern.elevated_from == 15000 and pattern.before == 0.4


def test_peaks_that_ended_long_before_are_not_the_divergence():
    steps = np.arange(0, 18301, 100)
    norms = np.where((steps >= 9000) & (steps < 12000), 130.0, 0.4)
    assert classify(steps, [*norms[:-1], math.nan], warmup_steps=2000).signature == "sudden"


def test_peaks_during_warmup_do_not_matter():
    steps, norms = map(list, zip(*history("sudden", 3500), strict=True))
    norms[:10] = [50.0] * 10
    assert classify(steps, norms, warmup_steps=2000).signature == "sudden"


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_short_history_is_not_classified(n):
    pattern = classify(range(1, n + 1), [1e9] * n, warmup_steps=0)
    assert pattern.signature == "too short" and math.isnan(pattern.stable)


def test_the_scale_of_the_norms_does_not_matter():
    for kind, at in (("sudden", 3500), ("rise", 5800), ("inflation", 18300)):
        steps, norms = zip(*history(kind, at), strict=True)
        scaled = classify(steps, np.array(norms) * 1e4, warmup_steps=2000)
        assert scaled.signature == kind == classify(steps, norms, warmup_steps=2000).signature
