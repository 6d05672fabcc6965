"""What the page of small models tells beside the verdicts comes out of the record's runs by a few lines of numpy."""

from __future__ import annotations

import numpy as np

from tests.studies.small_record import bound_mean, read_page, read_record

PAGE = read_page("premature")
WORDS = " ".join(PAGE.split())
SHALLOW, DEEP = SIZES = ("shallow", "deep")
UPPER = {SHALLOW: (2, 3), DEEP: (4, 5, 6, 7)}
LOWER = {SHALLOW: (0, 1), DEEP: (0, 1, 2, 3)}
MULTIPLIERS = ("gpt", "mult_0p5", "gpt_slow", "mult_0p125")
#: Method -> its row of the page's table, and how many seeds it has.
ARMS = {
    "gpt": ("control", 8),
    "mult_0p5": ("slowed to a half", 8),
    "gpt_slow": ("slowed to a quarter (the paper's)", 9),
    "mult_0p125": ("slowed to an eighth", 8),
    "entropy_floor": ("a floor under entropy", 6),
    "global_half_lr": ("half the rate for everything", 6),
    "gpt_swiglu": ("SwiGLU block", 8),
    "gpt_swiglu_slow": ("SwiGLU block, slowed", 8),
    "gpt_geglu": ("GEGLU block", 8),
    "gpt_geglu_slow": ("GEGLU block, slowed", 8),
}


def read_losses(size: str, method: str, count: int) -> np.ndarray:
    return read_record("premature").read_losses(size, method, count)


def read_probes(
    size: str, method: str, probe: str, fraction: float, layers: tuple[int, ...] = (), column: str = "value"
) -> np.ndarray:
    return read_record("premature").read_probes(size, method, 8, probe, fraction, layers, column)


def compare_slowed(size: str, probe: str, fraction: float, layers: tuple[int, ...]) -> str:
    slowed, control = (read_probes(size, name, probe, fraction, layers).mean() for name in ("gpt_slow", "gpt"))
    return f"{slowed:.3f} against {control:.3f}"


def format_bounds(gains: np.ndarray, digits: int = 4) -> str:
    low, high = bound_mean(gains)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def test_the_table_of_losses_is_the_records() -> None:
    for method, (label, count) in ARMS.items():
        losses = [read_losses(size, method, count) for size in SIZES]
        cells = [f"{each.mean():.3f} | {each.std(ddof=1):.3f}" for each in losses]
        assert f"| {label} | {count} | {' | '.join(cells)} |" in PAGE
    worse, *better = (
        abs(read_losses(DEEP, method, 8).mean() - read_losses(SHALLOW, method, 8).mean())
        for method in ("gpt", "gpt_swiglu", "gpt_geglu")
    )
    assert f"GPT ends {worse:.3f} above the shallower one" in WORDS
    assert f"gated blocks {better[0]:.3f} (SwiGLU) and {better[1]:.3f} (GEGLU) below" in WORDS


def test_ends_and_minutes_are_the_records() -> None:
    record = read_record("premature")
    for size in SIZES:
        assert {outcome["outcome"] for outcome in record.list_files(size, "outcome.json")} == {"completed"}
    manifests = [each for size in SIZES for each in record.list_files(size, "manifest.json")]
    assert {each["processor"] for each in manifests} == {"GenuineIntel 6 207 Intel(R) Xeon(R) Processor AVX512"}
    minutes = [f"{record.measure_minutes(size):.0f} minutes" for size in SIZES]
    assert f"Runs took {minutes[0]} at 0.8M and {minutes[1]} at 1.3M, two at a time" in WORDS
    assert f"{sum(map(record.measure_minutes, SIZES)) / 60:.1f} hours in all" in WORDS
    assert "eleven of them were started twice" in WORDS and sum(each["attempts"] > 1 for each in manifests) == 11
    assert len(manifests) == len(SIZES) * sum(count for _, count in ARMS.values()) and "No run diverged" in WORDS


def measure_gains(size: str, step: int) -> np.ndarray:
    """The control's held-out loss after a step less the slowed run's, of each seed."""
    losses = [
        [read_record("premature").read_curve(size, method, seed, "validation")[step] for seed in range(101, 109)]
        for method in ("gpt", "gpt_slow")
    ]
    return np.subtract(*losses)


def test_what_is_told_of_the_loss_is_the_records() -> None:
    gains = measure_gains(DEEP, 1000)
    assert f"*not seen*: {gains.mean():.4f} ({format_bounds(gains)}), seven positive" in WORDS
    assert (gains > 0).sum() == 7 and bound_mean(gains)[0] < 0 < 0.0071 < bound_mean(gains)[1] < 0.011
    six = gains[:6]
    assert f"*seen*: {six.mean():.4f} ({format_bounds(six)}), all six positive" in WORDS
    assert bound_mean(six)[0] > 0 and min(six) > 0
    costs = [-measure_gains(size, 250) for size in SIZES]
    told = [f"by {each.mean():.4f} ({format_bounds(each)}) at {label}" for each, label in zip(costs, ("0.8M", "1.3M"))]
    assert f"higher {told[0]} and {told[1]}" in WORDS
    rises = [measure_gains(size, 1000) + cost for size, cost in zip(SIZES, costs)]
    assert f"the gain has risen by {rises[0].mean():.4f}, {format_bounds(rises[0])})" in WORDS
    assert f"at 1.3M it has risen by {rises[1].mean():.4f} ({format_bounds(rises[1])})" in WORDS
    assert bound_mean(measure_gains(SHALLOW, 1000))[0] < 0 < bound_mean(measure_gains(SHALLOW, 1000))[1]


def measure_dependence(size: str, method: str, fraction: float) -> np.ndarray:
    """What the loss rises by without upper queries and keys."""
    return read_probes(size, method, "loss_neither", fraction) - read_probes(size, method, "loss", fraction)


def test_what_is_told_of_attention_is_the_records() -> None:
    wide = [compare_slowed(size, "entropy", 0.03, UPPER[size]) for size in SIZES]
    assert f"({wide[0]} of uniform at 0.8M, {wide[1]} at 1.3M)" in WORDS
    start, late = (
        [f"{read_probes(size, 'gpt', 'entropy', at, UPPER[size]).mean():.3f}" for size in SIZES] for at in (0.0, 0.2)
    )
    assert f"({start[0]}, {start[1]})" in WORDS and f"at 20 % its attention is at {late[0]} and {late[1]}" in WORDS
    ends = [compare_slowed(size, "entropy", 1.0, UPPER[size]) for size in SIZES]
    lower = [compare_slowed(size, "entropy", 1.0, LOWER[size]) for size in SIZES]
    assert f"({ends[0]}, {ends[1]})" in WORDS and f"({lower[0]}, {lower[1]})" in WORDS
    moves = [
        [f"{read_probes(size, m, 'bilinear_displacement', 0.03, UPPER[size]).mean():.3f}" for m in MULTIPLIERS]
        for size in SIZES
    ]
    told = [f"{', '.join(each[:3])} and {each[3]}" for each in moves]
    assert f"{told[0]} halve as the rates do (full, half, quarter, eighth; {told[1]} at 1.3M)" in WORDS
    for size in SIZES:
        orders = [read_probes(size, m, "entropy", 0.03, UPPER[size]).mean() for m in MULTIPLIERS]
        assert orders == sorted(orders)


def test_what_is_told_of_dependence_is_the_records() -> None:
    depends = {
        (method, at): [measure_dependence(size, method, at) for size in SIZES]
        for method in ("gpt", "gpt_slow")
        for at in (0.03, 0.06, 0.12, 1.0)
    }
    means = {place: [each.mean() for each in both] for place, both in depends.items()}
    slowed, control = means["gpt_slow", 1.0], means["gpt", 1.0]
    assert f"({slowed[0]:.3f} against {control[0]:.3f} nats, {slowed[1]:.3f} against {control[1]:.3f})" in WORDS
    early = [format_bounds(each) for each in depends["gpt", 0.03]]
    assert f"({early[0]} nats, {early[1]})" in WORDS
    (a, b), (c, d), (e, f) = (means[place] for place in (("gpt", 0.06), ("gpt", 0.12), ("gpt_slow", 0.12)))
    assert f"{a:.4f} and {b:.4f} at 6 % and {c:.3f} and {d:.3f} at 12 % (slowed {e:.4f} and {f:.4f})" in WORDS


def test_what_is_told_of_copying_is_the_records() -> None:
    copies, shares, nulls = [], [], set()
    for size in SIZES:
        control, slowed = (read_probes(size, m, "lower_copy", 0.2, LOWER[size]).mean() for m in ("gpt", "gpt_slow"))
        null = read_probes(size, "gpt", "lower_copy", 0.2, LOWER[size], "null").mean()
        copies.append(f"{control:.3f} and {slowed:.3f}")
        shares.append(f"{100 * 0.008 / (control - null):.0f}")
        nulls.add(f"{null:.3f}")
    assert f"score {copies[0]} at 20 % ({copies[1]} at 1.3M), uniform attention {nulls.pop()}" in WORDS and not nulls
    assert f"0.008 is {shares[0]} and {shares[1]} % of what the control scores above that" in WORDS


def test_what_is_told_of_releases_is_the_records() -> None:
    for size, first in zip(SIZES, (0.095, 0.1), strict=True):
        outcomes = read_record("premature").read_outcomes(size, "gpt_slow", 9)
        releases = [(each["fraction"], each["why"]) for run in outcomes for each in run["interventions"]]
        assert releases == [(first, "score"), *[(0.12, "forced")] * 8]
        copies = [read_probes(size, "gpt_slow", "lower_copy", at, LOWER[size]) for at in (0.01, 0.02, 0.03, 0.06, 0.12)]
        assert np.min(copies) > 2 * 0.005
    releases = [
        {
            (seed, each["fraction"])
            for block in ("gpt_swiglu_slow", "gpt_geglu_slow")
            for seed, run in enumerate(read_record("premature").read_outcomes(size, block, 8), start=101)
            for each in run["interventions"]
            if each["why"] != "forced"
        }
        for size in SIZES
    ]
    assert (
        releases == [{(101, 0.08)}, set()] and "seed 101 alone is released at 0.8M, at 8 %, and none at 1.3M" in WORDS
    )
    told = (
        "one run of nine at each size**, the start of seed 101, at 9.5 and 10 % of training; eight are forced at 12 %"
    )
    assert told in WORDS
    for size in SIZES:
        multipliers = [read_record("premature").read_outcomes(size, name, 8) for name in ("mult_0p5", "mult_0p125")]
        assert min(each["fraction"] for runs in multipliers for run in runs for each in run["interventions"]) > 0.03


def test_what_is_told_of_the_other_arms_is_the_records() -> None:
    above, floors, steps = [], [], []
    for size in SIZES:
        losses = read_losses(size, "gpt", 6)
        above.append(format_bounds(read_losses(size, "global_half_lr", 6) - losses, 3))
        floors.append(format_bounds(read_losses(size, "entropy_floor", 6) - losses, 3))
        differs = []
        for seed in range(101, 107):
            arms = ("gpt", "entropy_floor")
            control, floor = (read_record("premature").read_curve(size, arm, seed, "train") for arm in arms)
            differs.append(control.index[control != floor][0])
        steps.append(f"{min(differs)} to {max(differs)}")
    assert f"ends {above[0]} above the control ({above[1]} at 1.3M)" in WORDS
    assert f"the control's until step {steps[0]} ({steps[1]})" in WORDS
    assert f"({floors[0]}, {floors[1]})" in WORDS


def test_what_is_told_of_gated_blocks_is_the_records() -> None:
    differences = []
    for block, name in (("gpt_swiglu", "SwiGLU"), ("gpt_geglu", "GEGLU")):
        gains, advantages = [], []
        for size in SIZES:
            control, slowed, gated, gated_slowed = (
                read_losses(size, each, 8) for each in ("gpt", "gpt_slow", block, f"{block}_slow")
            )
            gain, advantage = gated - gated_slowed, control - gated
            gains.append(f"{gain.mean():.4f} ({format_bounds(gain)})")
            advantages.append(f"{advantage.mean():.3f} ({format_bounds(advantage, 3)})")
            differences.append((control - slowed - gain).mean())
        assert f"{gains[0]} and {gains[1]} in the {name} block" in WORDS.replace(", at 0.8M and 1.3M,", "")
        assert f"{advantages[0]} and {advantages[1]} ({name})" in WORDS
    assert f"the four differences, {min(differences):.4f} to {max(differences):.4f}, have the paper's sign" in WORDS
    assert f"own gain is {max(bound_mean(measure_gains(size, 1000))[1] for size in SIZES):.4f} at most" in WORDS
    for size in SIZES:
        counts = {each["parameters"] for each in read_record("premature").list_files(size, "manifest.json")}
        assert f"of {100 * (max(counts) / min(counts) - 1):.1f} % more parameters" in WORDS


def test_what_earlier_texts_would_say_is_the_records() -> None:
    """Six seeds, a target of 0.0071, of 0.018 between blocks, of 0.02 in the last, and a margin of 0.002."""
    of_gpt = measure_gains(SHALLOW, 1000)[:6]
    low, high = bound_mean(of_gpt)
    assert f"(gain {low:.4f} to {high:.4f})" in WORDS and low < 0 < 0.0071 < high
    for size in SIZES:
        slowing = measure_gains(size, 1000)[:6]
        swiglu, geglu = (
            bound_mean(slowing - read_losses(size, block, 6) + read_losses(size, f"{block}_slow", 6), 0.0125)
            for block in ("gpt_swiglu", "gpt_geglu")
        )
        if size == DEEP:
            assert f"*seen*, {swiglu[0]:.4f} to {swiglu[1]:.4f}; GEGLU not, {geglu[0]:.4f} to {geglu[1]:.4f}" in WORDS
            assert swiglu[0] > 0 and geglu[0] < 0 and geglu[1] > 0.018
        else:
            assert geglu[0] < 0 and geglu[1] < 0.018
        slowed, control = (read_probes(size, m, "lower_copy", 0.2, LOWER[size])[:6] for m in ("gpt_slow", "gpt"))
        low, high = bound_mean(slowed - control)
        assert low < -0.002 and high > 0
        assert bound_mean(read_losses(size, "entropy_floor", 6) - read_losses(size, "gpt_slow", 6), 0.0125)[1] < 0.02
        slowed, control = (read_probes(size, m, "entropy", 0.03, UPPER[size])[:6] for m in ("gpt_slow", "gpt"))
        assert bound_mean(slowed - control)[0] > 0
        depends = measure_dependence(size, "gpt", 1.0) - measure_dependence(size, "gpt_slow", 1.0)
        assert bound_mean(depends[:6])[0] > 0
