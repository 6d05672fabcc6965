"""What the page of small models tells beside the verdicts comes out of the record's runs by a few lines of numpy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.studies.small_record import ROOT, bound_mean, read_page, read_record

PAGE = read_page("query_free")
WORDS = " ".join(PAGE.split())
SIZE = "shallow"
BASELINE, IDENTITY = "baseline_reduced_schedule", "wq_identity"
#: Method -> its row of the page's table, its seeds.
ARMS = {
    "baseline": ("baseline | 0.0048 to a tenth", 6),
    "baseline_small_mlp": ("smaller MLP | 0.0048 to a tenth", 6),
    "baseline_small_d": ("smaller width | 0.0048 to a tenth", 6),
    "wq_identity_baseline_schedule": ("W_Q = I | 0.0048 to a tenth", 6),
    f"{BASELINE}-rate_0.5": ("baseline, tuned | 0.0064 to an 80th", 15),
    f"{IDENTITY}-rate_0.5": ("W_Q = I, tuned | 0.0064 to an 80th", 15),
    BASELINE: ("baseline | 0.0128 to an 80th", 6),
    IDENTITY: ("W_Q = I | 0.0128 to an 80th", 6),
    "wk_identity": ("W_K = I | 0.0128 to an 80th", 6),
    "wv_identity": ("W_V = I | 0.0128 to an 80th", 6),
    "wq_identity_large_mlp": ("W_Q = I, larger MLP | 0.0176 to a 110th", 6),
    "baseline.untied": ("baseline, untied | 0.0048 to a tenth", 6),
    "wq_identity.untied": ("W_Q = I, untied | 0.0128 to an 80th", 6),
}


def read_losses(method: str, count: int = 6) -> np.ndarray:
    return read_record("query_free").read_losses(SIZE, method, count)


def compare(method: str, other: str, count: int = 6) -> np.ndarray:
    """What the second method ends below the first, of each seed."""
    return read_losses(method, count) - read_losses(other, count)


def format_gain(gains: np.ndarray) -> str:
    low, high = sorted(np.sign(gains.mean()) * np.array(bound_mean(gains)))
    return f"{abs(gains.mean()):.4f} ({low:.4f} to {high:.4f})"


def test_the_table_of_losses_is_the_records() -> None:
    for method, (label, count) in ARMS.items():
        losses = read_losses(method, count)
        parameters = read_record("query_free").read_file(SIZE, method, 101, "manifest.json")["parameters"]
        ends = f"{losses.mean():.3f} | {losses.std(ddof=1):.3f} | {losses.min():.3f} to {losses.max():.3f}"
        assert f"| {label} | {parameters:,} | {count} | {ends} |" in PAGE


def test_ends_and_minutes_are_the_records() -> None:
    record = read_record("query_free")
    manifests = record.list_files(SIZE, "manifest.json")
    assert {each["outcome"] for each in record.list_files(SIZE, "outcome.json")} == {"completed"}
    assert {each["processor"] for each in manifests} == {"GenuineIntel 6 207 Intel(R) Xeon(R) Processor AVX512"}
    assert f"{len(manifests)} runs took {2 * record.measure_minutes(SIZE):.0f} minutes of a core" in WORDS
    assert "two were interrupted" in WORDS and sum(each["attempts"] > 1 for each in manifests) == 2
    assert len(manifests) == sum(count for _, count in ARMS.values()) + 2 * 4 * 3 and "No run diverged" in WORDS


def test_what_the_tuning_seeds_tell_is_the_records() -> None:
    lowest = []
    for name, lead in ((BASELINE, "the baseline"), (IDENTITY, "W_Q = I")):
        outcomes = [
            [
                read_record("query_free").read_file(SIZE, name + rate, seed, "outcome.json")["validation_loss"]
                for seed in (201, 202, 203)
            ]
            for rate in ("-rate_0.25", "-rate_0.5", "", "-rate_2")
        ]
        means = [f"{np.mean(losses):.3f}" for losses in outcomes]
        assert f"{lead} {', '.join(means[:-1])} and {means[-1]}" in WORDS
        assert int(np.argmin([np.mean(losses) for losses in outcomes])) == 1
        lowest.append(np.mean(outcomes[1]))
    assert f"The tuning runs' own gain, {lowest[0] - lowest[1]:.3f}" in WORDS
    assert f"{min(outcomes[2]):.3f} to {max(outcomes[2]):.3f} in the three tuning runs" in WORDS


def test_what_is_told_of_tuned_models_is_the_records() -> None:
    tuned = compare(f"{BASELINE}-rate_0.5", f"{IDENTITY}-rate_0.5", 15)
    assert f"{format_gain(tuned)}, in all fifteen pairs" in WORDS and tuned.min() > 0
    assert f"By the six stated until then it is *seen* as well: {format_gain(tuned[:6])}" in WORDS
    sizes = [
        read_record("query_free").read_file(SIZE, method, 101, "manifest.json")["parameters"]
        for method in ("baseline", IDENTITY)
    ]
    assert f"with {100 * (1 - sizes[1] / sizes[0]):.1f} % fewer parameters" in WORDS
    worse = compare(f"{BASELINE}-rate_0.5", "baseline")
    also_worse = compare(f"{IDENTITY}-rate_0.5", "wq_identity_baseline_schedule")
    told = f"the baseline is {format_gain(worse)} above its own schedule, and W_Q = I {format_gain(also_worse)} above"
    assert told in WORDS
    against_own = compare("baseline", f"{IDENTITY}-rate_0.5")
    low, high = bound_mean(against_own)
    assert (
        f"tuned W_Q = I is {-against_own.mean():.4f} ({-high:.4f} to {-low:.4f}) above" in WORDS
        and low < -0.01 < 0 < high
    )
    same = compare("baseline", "wq_identity_baseline_schedule")
    assert (
        f"it ends {format_gain(same)} below the baseline" in WORDS and (same > 0).sum() == 5 and "five of six" in WORDS
    )


def test_what_is_told_of_the_high_rate_is_the_records() -> None:
    harms = [
        compare(IDENTITY, "wq_identity_baseline_schedule"),
        compare(BASELINE, "baseline"),
        compare(BASELINE, IDENTITY),
    ]
    told = [format_gain(each) for each in harms]
    assert f"raises W_Q = I's less, by {told[0]}, all six positive, than the baseline's, by {told[1]}" in WORDS
    assert harms[0].min() > 0
    others = [compare(BASELINE, method) for method in ("wk_identity", "wv_identity")]
    told = [*told, *map(format_gain, others)]
    assert f"ends {told[3]} above W_K = I and {told[4]} above W_V = I, in all six pairs" in WORDS
    assert min(map(np.min, others)) > 0
    assert f"W_Q = I ends {told[2]} below the baseline" in WORDS
    low, high = (sorted(loss for loss in read_losses(IDENTITY) if (loss < 5) == below) for below in (True, False))
    assert (
        f"{low[0]:.3f} to {low[-1]:.3f} in four runs of the test and at {high[0]:.3f} and {high[1]:.3f} in two" in WORDS
    )
    assert (len(low), len(high)) == (4, 2)
    table = pd.read_csv(ROOT / "studies/query_free/small.csv")
    power = table[(table["size"] == "0.8M") & (table["seeds_stated"] == 6)]["power"]
    assert f"at six, power is {100 * power.min():.0f} to {100 * power.max():.0f} %" in WORDS
    untied = np.sort(read_losses("wq_identity.untied"))
    assert f"untied at {untied[0]:.3f} and {untied[1]:.3f} in two, at {untied[2]:.3f} to {untied[-1]:.3f} in" in WORDS
    curves = {
        seed: read_record("query_free").read_curve(SIZE, IDENTITY, seed, "train").loc[201:300].mean()
        for seed in range(101, 107)
    }
    bad = [curves.pop(seed) for seed in (103, 106)]
    assert (
        f"{min(curves.values()):.2f} to {max(curves.values()):.2f} against {min(bad):.2f} and {max(bad):.2f}" in WORDS
    )


def test_what_is_told_of_smaller_baselines_is_the_records() -> None:
    methods = ("baseline_small_mlp", "baseline_small_d")
    smaller = [compare(method, "wq_identity_baseline_schedule") for method in methods]
    told = [format_gain(each) for each in smaller]
    assert f"{told[0]} below the smaller MLP and {told[1]} below the smaller width" in WORDS
    costs = [compare(method, "baseline") for method in methods]
    told = [format_gain(each) for each in costs]
    assert f"end {told[0]} and {told[1]} above the baseline" in WORDS
