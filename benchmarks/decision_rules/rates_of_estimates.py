"""What a kept change gained, a metric chosen after a look, the boundary on a grid."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from decision_rules.rates_page import RatesPage, rng_of
from decision_rules.rules_and_noise_laws import DEFAULT, GAINS, WORLDS, design

from plumbline.stats.after_stopping import chance_farther, estimate
from plumbline.stats.sequential import Look, SequentialDesign, boundary
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

#: Gains and t at which chances are tabulated; medians between them are interpolated.
TABLED, POINTS = np.arange(-6, 10.01, 0.4), np.linspace(-6, 14, 51)


@cache
def tabulate_medians(own: SequentialDesign, look: int) -> np.ndarray:
    """The median-unbiased gain in sigma at each of the points."""
    table = np.stack([chance_farther(own, float(gain), look, POINTS) for gain in TABLED])
    return np.array([np.interp(0.5, np.maximum.accumulate(column), TABLED) for column in table.T])


def medians(own: SequentialDesign, t: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Median-unbiased gains in sigma of many ends at once: those that `estimate` solves for, by a table."""
    gains = np.empty(len(t))
    for look in np.unique(last):
        gains[last == look] = np.interp(t[last == look], POINTS, tabulate_medians(own, int(look)))
    return gains


def after_stopping(page: RatesPage) -> None:
    rows = []
    for title, own, noise in (
        ("stopping rule", DEFAULT, "normal"),
        ("`make quick`", design(3, 3), "normal"),
        ("stopping rule, t3", DEFAULT, "t3"),
    ):
        world = WORLDS[noise]
        upper = np.array(boundary(replace(own, first_keep=1, target_gain_sigmas=None)).keep)
        lower = np.array(boundary(own).keep)
        for gain in GAINS:
            rng = rng_of("after", title, gain)
            baseline, candidate = world.arms(rng, page.worlds, (own.bank, own.most))
            candidate = candidate + gain
            t = simulate_paths(own, baseline, candidate)
            is_kept, _, last = find_ends(boundary(own), t)
            index = np.arange(page.worlds)
            mean = candidate.cumsum(axis=1)[index, last - 1] / last - baseline.mean(axis=1)
            unit = mean / t[index, last - 1]
            sigma = unit * np.sqrt([own.information(look) for look in range(1, own.most + 1)])[last - 1]
            reach = [np.nan_to_num(edge, nan=np.inf)[last - 1] * unit for edge in (lower, upper)]
            low, high = mean - reach[0], mean + reach[1]
            median = np.clip(medians(own, t[index, last - 1], last) * sigma, low, high)
            covered = (low <= gain) & (gain <= high)
            label = f"{title}, gain {gain:g}"
            for name, missed in (("truth below the interval", low > gain), ("truth above it", high < gain)):
                page.share(missed, 0.05, f"{label}: {name}", noise)
            rows.append(
                (
                    title,
                    f"{gain:g}",
                    page.share(covered),
                    page.share(median > gain),
                    page.share(mean > gain),
                    f"{np.median(median[is_kept]):.2f}",
                    f"{np.mean(mean[is_kept]):.2f}",
                )
            )
    page.table(
        "The estimate after stopping",
        "The interval says 0.90, and 0.05 on either side; the median should be too high in half of all worlds. The "
        "last columns are of kept candidates alone: no estimate is unbiased among what was chosen for being high.",
        [
            "design",
            "true gain",
            "covered",
            "median too high",
            "plain mean too high",
            "kept: median of medians",
            "kept: plain mean",
        ],
        rows,
    )
    own, checked = DEFAULT, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = simulate_paths(own, rng.standard_normal((1, 5)), rng.standard_normal((1, 8)) + 1.5)
        is_kept, discarded, last = find_ends(boundary(own), t)
        looks = [
            Look(
                k=k,
                t=t[0, k - 1],
                df=own.df(k),
                sigma=1.0,
                gain=t[0, k - 1] / math.sqrt(own.information(k)),
                information=own.information(k),
            )
            for k in range(1, last[0] + 1)
        ]
        gain_estimate = estimate(
            own, looks, "keep" if is_kept[0] else "discard" if discarded[0] else "undecided"
        ).median
        checked.append(abs(gain_estimate - medians(own, t[[0], last - 1], last)[0]))
    page.parts.append(
        f"`estimate` itself, on 20 of these, differs from the table's medians by {max(checked):.3f} sigma at most."
    )


def metrics(page: RatesPage) -> None:
    rows = []
    for count, tied in product((2, 4, 12), (0.0, 0.8)):
        row: list[object] = [count, f"{tied:g}"]
        for alpha in (0.05, 0.05 / count):
            own, rng = replace(DEFAULT, alpha=alpha), rng_of("metrics", count, tied, alpha)
            worlds = max(2000, page.worlds // 4)
            common = [rng.standard_normal((worlds, size)) for size in (5, 8)]
            is_kept = np.zeros(worlds, dtype=bool)
            for _ in range(count):
                arms = [
                    math.sqrt(tied) * part + math.sqrt(1 - tied) * rng.standard_normal(part.shape) for part in common
                ]
                is_kept |= find_ends(integrate_paths(own)[0], simulate_paths(own, *arms))[0]
            row.append(
                page.share(
                    is_kept, None if alpha == 0.05 else 0.05, f"best of {count} metrics, paid, correlation {tied:g}"
                )
            )
        rows.append(row)
    page.table(
        "A metric chosen after a look",
        "A null candidate is kept by the metric that shows it best: at the level of one metric, and at the level "
        "divided by the number looked at.",
        ["metrics", "correlation", "not paid", "paid"],
        rows,
    )


def boundaries(page: RatesPage) -> None:
    worlds, rows = 2 * page.worlds, []
    grid = [
        SequentialDesign(bank=bank, most=most, plan=plan)
        for plan, banks in (("bank", (2, 3, 5, 10, 30)), ("interleaved", (2, 5)), ("paired", (0,)))
        for bank, most in product(banks, (2, 4, 8, 16))
    ]  # type: ignore[arg-type]
    for own in grid:
        rng = rng_of("grid", own.plan, own.bank, own.most)
        baseline = rng.standard_normal((worlds, own.baseline_runs(own.most)))
        candidate = rng.standard_normal((worlds, own.most))
        if own.plan == "paired":
            baseline, candidate = baseline / math.sqrt(2), candidate / math.sqrt(2)
        t = simulate_paths(own, baseline, candidate)
        crossed = (t >= np.array(boundary(own).keep)).any(axis=1)
        page.share(crossed, 0.05, f"boundary of {own.plan}, bank {own.bank}, most {own.most}")
        rows.append((abs(float(crossed.mean()) - 0.05), boundary(own).error, own))
    worst, error = max(rows, key=lambda row: row[0]), max(row[1] for row in rows)
    own = worst[2]
    page.parts.append(
        "## The boundary on a grid of designs\n\n"
        f"{len(grid)} designs (banks of 2 to 30, 2 to 16 runs, interleaved, pairs), "
        f"{worlds:,} null paths each, discards not heeded: the share that crosses is 0.05 to within {worst[0]:.4f} "
        f"(standard error {math.sqrt(0.05 * 0.95 / worlds):.4f}; the farthest is {own.plan}, bank {own.bank}, at most "
        f"{own.most}). The integration states an error of {error:.3f} of a boundary at most."
    )
