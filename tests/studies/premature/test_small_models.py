"""What the page of small models tells beside the verdicts comes out of the record's runs by a few lines of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.studies.small_record import bound_mean, read_page, read_record

PAGE = read_page("premature")
WORDS = " ".join(PAGE.split())
SIZE, UPPER, LOWER = "shallow", (2, 3), (0, 1)
#: Method -> its row of the page's table, and how many seeds it has.
ARMS = {
    "gpt": ("control", 8),
    "mult_0p5": ("slowed to a half", 8),
    "gpt_slow": ("slowed to a quarter (the paper's)", 9),
    "mult_0p125": ("slowed to an eighth", 8),
    "entropy_floor": ("a floor under entropy", 6),
    "global_half_lr": ("half the rate for everything", 6),
}


def read_losses(method: str, count: int) -> np.ndarray:
    return read_record("premature").read_losses(SIZE, method, count)


def read_probes(
    method: str, probe: str, fraction: float, layers: tuple[int, ...] = (), column: str = "value"
) -> np.ndarray:
    return read_record("premature").read_probes(SIZE, method, 8, probe, fraction, layers, column)


def test_the_table_of_losses_is_the_records() -> None:
    for method, (label, count) in ARMS.items():
        losses = read_losses(method, count)
        assert f"| {label} | {count} | {losses.mean():.3f} | {losses.std(ddof=1):.3f} |" in PAGE


def test_ends_and_minutes_are_the_records() -> None:
    record = read_record("premature")
    ends = [outcome["outcome"] for outcome in record.list_files(SIZE, "outcome.json")]
    assert set(ends) == {"completed"} and "No run diverged" in WORDS
    manifests = record.list_files(SIZE, "manifest.json")
    assert {each["processor"] for each in manifests} == {"GenuineIntel 6 207 Intel(R) Xeon(R) Processor AVX512"}
    assert f"Runs took {record.measure_minutes(SIZE):.0f} minutes, two at a time" in WORDS


def measure_dependence(method: str, fraction: float) -> np.ndarray:
    """What the loss rises by without upper queries and keys."""
    return read_probes(method, "loss_neither", fraction) - read_probes(method, "loss", fraction)


def test_what_is_told_of_the_mechanism_is_the_records() -> None:
    start = read_probes("gpt", "entropy", 0.0, UPPER).mean()
    slowed, control = (read_probes(method, "entropy", 0.03, UPPER).mean() for method in ("gpt_slow", "gpt"))
    assert f"({slowed:.3f} of uniform against {control:.3f}; at the start it is {start:.3f})" in WORDS
    assert read_probes("gpt", "entropy", 0.2, UPPER).mean() == pytest.approx(0.621, abs=0.03)
    slowed, control = (measure_dependence(method, 1.0).mean() for method in ("gpt_slow", "gpt"))
    assert f"({slowed:.3f} against {control:.3f} nats)" in WORDS
    low, high = bound_mean(measure_dependence("gpt", 0.03))
    assert f"({low:.4f} to {high:.4f} nats)" in WORDS
    slowed, control = (read_probes(method, "entropy", 1.0, LOWER).mean() for method in ("gpt_slow", "gpt"))
    assert f"({slowed:.3f} of uniform against {control:.3f})" in WORDS
    moved = [read_probes(m, "bilinear_displacement", 0.03, UPPER).mean() for m in list(ARMS)[:4]]
    assert f"{moved[0]:.3f}, {moved[1]:.3f}, {moved[2]:.3f} and {moved[3]:.3f} halve" in WORDS
    control, slowed = (read_probes(method, "lower_copy", 0.2, LOWER).mean() for method in ("gpt", "gpt_slow"))
    null = read_probes("gpt", "lower_copy", 0.2, LOWER, column="null").mean()
    said = f"{control:.3f} in the control and {slowed:.3f} slowed at 20 %, where uniform attention has {null:.3f}"
    assert said in WORDS


def test_what_is_told_of_releases_is_the_records() -> None:
    outcomes = read_record("premature").read_outcomes(SIZE, "gpt_slow", 9)
    releases = sorted((each["fraction"], each["why"]) for run in outcomes for each in run["interventions"])
    assert releases == [(0.095, "score"), *[(0.12, "forced")] * 8]
    assert "one run of nine**, at 9.5 % of training; eight are forced at 12 %" in WORDS
    copies = [read_probes("gpt_slow", "lower_copy", fraction, LOWER) for fraction in (0.01, 0.02, 0.03, 0.06, 0.12)]
    assert np.min(copies) > 3 * 0.005
    multipliers = [read_record("premature").read_outcomes(SIZE, name, 8) for name in ("mult_0p5", "mult_0p125")]
    assert min(each["fraction"] for runs in multipliers for run in runs for each in run["interventions"]) > 0.03


def test_what_is_told_of_the_other_arms_is_the_records() -> None:
    control = read_losses("gpt", 6)
    low, high = bound_mean(read_losses("global_half_lr", 6) - control)
    assert f"ends {low:.3f} to {high:.3f} above the control" in WORDS
    low, high = bound_mean(read_losses("entropy_floor", 6) - control)
    assert f"({low:.3f} to {high:.3f})" in WORDS and low < 0 < high
    differs = []
    for seed in range(101, 107):
        control, floor = (read_record("premature").read_training(SIZE, arm, seed) for arm in ("gpt", "entropy_floor"))
        differs.append(control.index[control != floor][0])
    assert f"the control's until step {min(differs)} to {max(differs)}" in WORDS


def test_what_earlier_texts_would_say_is_the_records() -> None:
    """Six seeds, a target of 0.0071, of 0.02 in the last, and a margin of 0.002."""
    slowed = read_losses("gpt_slow", 6)
    low, high = bound_mean(read_losses("gpt", 6) - slowed)
    assert f"(gain {low:.4f} to {high:.4f})" in WORDS and low < 0 < 0.0071 < high
    copies = read_probes("gpt_slow", "lower_copy", 0.2, LOWER) - read_probes("gpt", "lower_copy", 0.2, LOWER)
    low, high = bound_mean(copies[:6])
    assert low < -0.002 and high > 0
    assert bound_mean(read_losses("entropy_floor", 6) - slowed, 0.0125)[1] < 0.02
    wider = read_probes("gpt_slow", "entropy", 0.03, UPPER) - read_probes("gpt", "entropy", 0.03, UPPER)
    assert bound_mean(wider[:6])[0] > 0
    depends = measure_dependence("gpt", 1.0) - measure_dependence("gpt_slow", 1.0)
    assert bound_mean(depends[:6])[0] > 0
