"""Rules that keep a change, on changes whose truth is known: what they keep of nothing, find of gains, and cost.

    python benchmarks/experiment_rules.py                        # 100 s of one quiet core; experiment_rules.md
    python benchmarks/experiment_rules.py --comparisons-per-row 2000 --out /tmp/quick.md

Nothing is trained: runs are drawn, with a fixed seed, so that two runs of this script give one table. Gains are in
sigma, the spread of one run. Figures come with their Monte-Carlo standard error.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from decision_rules.candidate_sessions import drifting, nulls, some_real
from decision_rules.rates_of_estimates import after_stopping, boundaries, metrics
from decision_rules.rates_page import RatesPage, promises
from decision_rules.sigma_and_fresh_runs import fresh_runs
from decision_rules.simulated_try import the_loop
from decision_rules.single_candidate import one_candidate, other_noise, rules_in_use
from machine_description import describe

from plumbline.core.files import atomic_write_text

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
    parser = argparse.ArgumentParser(description="Simulates rules that keep a change")
    parser.add_argument("--comparisons-per-row", type=int, default=40_000, help="comparisons a row")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    page, start = RatesPage(arguments.comparisons_per_row), time.process_time()
    for section in SECTIONS:
        began = time.process_time()
        section(page)
        print(f"{section.__name__}: {time.process_time() - began:.0f} s", flush=True)
    head = (
        "# Rules that keep a change, where the truth is known\n\n"
        f"{describe(with_torch=False)}. {arguments.comparisons_per_row:,} comparisons a row, "
        f"{time.process_time() - start:.0f} s of CPU time. "
        "`python benchmarks/experiment_rules.py`\n\n"
        "One-sided everywhere. A rule of Plumbline promises that a change which does nothing is kept with a chance of "
        "0.05 at most, for normal runs of one spread; `fwer` promises it of a session."
    )
    atomic_write_text(arguments.out, "\n\n".join([head, *page.parts]) + "\n")


if __name__ == "__main__":
    main()
