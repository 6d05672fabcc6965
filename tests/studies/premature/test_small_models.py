"""What the page of small models tells beside the verdicts comes out of the record's runs by a few lines of numpy."""

from __future__ import annotations

import numpy as np

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


def read_probes(method: str, probe: str, fraction: float, layers: tuple[int, ...] = ()) -> np.ndarray:
    return read_record("premature").read_probes(SIZE, method, 8, probe, fraction, layers)


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
    (tokens,) = {each["tokens"] for each in manifests}
    assert f"not, after {round(0.03 * tokens):,} tokens" in WORDS


def test_what_is_told_of_the_mechanism_is_the_records() -> None:
    slowed, control = (read_probes(method, "entropy", 0.03, UPPER).mean() for method in ("gpt_slow", "gpt"))
    assert f"({slowed:.3f} of uniform against {control:.3f})" in WORDS
    slowed, control = (
        (read_probes(method, "loss_neither", 1.0) - read_probes(method, "loss", 1.0)).mean()
        for method in ("gpt_slow", "gpt")
    )
    assert f"({slowed:.3f} against {control:.3f} nats)" in WORDS
    moved = [read_probes(m, "bilinear_displacement", 0.03, UPPER).mean() for m in list(ARMS)[:4]]
    assert f"{moved[0]:.3f}, {moved[1]:.3f}, {moved[2]:.3f} and {moved[3]:.3f} halve" in WORDS
    control, slowed = (read_probes(method, "lower_copy", 0.2, LOWER).mean() for method in ("gpt", "gpt_slow"))
    assert f"{control:.3f} in the control and {slowed:.3f} slowed at 20 %" in WORDS


def test_what_is_told_of_releases_is_the_records() -> None:
    outcomes = read_record("premature").read_outcomes(SIZE, "gpt_slow", 9)
    releases = sorted((each["fraction"], each["why"]) for run in outcomes for each in run["interventions"])
    assert releases == [(0.095, "score"), *[(0.12, "forced")] * 8]
    assert "one run of nine**, at 9.5 % of training; eight are forced at 12 %" in WORDS
    multipliers = [read_record("premature").read_outcomes(SIZE, name, 8) for name in ("mult_0p5", "mult_0p125")]
    assert min(each["fraction"] for runs in multipliers for run in runs for each in run["interventions"]) > 0.03


def test_what_is_told_of_the_other_arms_is_the_records() -> None:
    control = read_losses("gpt", 6)
    low, high = bound_mean(read_losses("global_half_lr", 6) - control)
    assert f"ends {low:.3f} to {high:.3f} above the control" in WORDS
    low, high = bound_mean(read_losses("entropy_floor", 6) - control)
    assert f"({low:.3f} to {high:.3f})" in WORDS and low < 0 < high


def test_what_earlier_texts_would_say_is_the_records() -> None:
    """Six seeds, a target of 0.0071, of 0.02 in the last, and a margin of 0.002."""
    slowed = read_losses("gpt_slow", 6)
    low, high = bound_mean(read_losses("gpt", 6) - slowed)
    assert f"(gain {low:.3f} to {high:.3f})" in WORDS and low < 0 < 0.0071 < high
    copies = read_probes("gpt_slow", "lower_copy", 0.2, LOWER) - read_probes("gpt", "lower_copy", 0.2, LOWER)
    low, high = bound_mean(copies[:6])
    assert low < -0.002 and high > 0
    assert bound_mean(read_losses("entropy_floor", 6) - slowed, 0.0125)[1] < 0.02
    wider = read_probes("gpt_slow", "entropy", 0.03, UPPER) - read_probes("gpt", "entropy", 0.03, UPPER)
    assert bound_mean(wider[:6])[0] > 0
    depends = [read_probes(m, "loss_neither", 1.0) - read_probes(m, "loss", 1.0) for m in ("gpt", "gpt_slow")]
    assert bound_mean((depends[0] - depends[1])[:6])[0] > 0
