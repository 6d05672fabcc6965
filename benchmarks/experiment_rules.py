"""Rules that keep a change, on changes whose truth is known: what they keep of nothing, find of gains, and cost.

    python benchmarks/experiment_rules.py                        # 100 s of one quiet core; experiment_rules.md
    python benchmarks/experiment_rules.py --comparisons-per-row 2000 --out /tmp/quick.md

Nothing is trained: runs are drawn, with a fixed seed, so that two runs of this script give one table. Gains are in
sigma, the spread of one run. Figures come with their Monte-Carlo standard error.
"""

from __future__ import annotations

from decision_rules.candidate_sessions import drifting, nulls, some_real
from decision_rules.rates_of_estimates import after_stopping, boundaries, metrics
from decision_rules.rates_page import make_page, promises
from decision_rules.sigma_and_fresh_runs import fresh_runs
from decision_rules.simulated_try import the_loop
from decision_rules.single_candidate import one_candidate, other_noise, rules_in_use

SECTIONS = (
    one_candidate,
    other_noise,
    rules_in_use,
    the_loop,
    nulls,
    some_real,
    drifting,
    after_stopping,
    metrics,
    fresh_runs,
    boundaries,
    promises,
)


def main() -> None:
    make_page(
        __file__,
        SECTIONS,
        title="Rules that keep a change, where the truth is known",
        text="One-sided everywhere. A rule of Plumbline promises that a change which does nothing is kept with a "
        "chance of 0.05 at most, for normal runs of one spread; `fwer` promises it of a session.",
        flag="--comparisons-per-row",
        worlds=40_000,
        draws=lambda worlds: f"{worlds:,} comparisons a row",
    )


if __name__ == "__main__":
    main()
