"""Other questions than "does it improve": is it as good within a margin, and what does a rule of others keep?

    python benchmarks/other_questions.py                        # a minute or two; other_questions.md
    python benchmarks/other_questions.py --worlds 2000 --out /tmp/quick.md

Nothing is trained: runs are drawn, with a fixed seed. Gains and margins are in sigma, the spread of one run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from decision_rules.rates_page import RatesPage, make_page, rng_of

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths
from plumbline.verdict.decision.as_good_as import FUTILITY, count_fresh_runs, propose_runs
from plumbline.verdict.rule_rates import GAINS, MadeUpRuns, Share, load_rule, measure_lines, measure_single

#: The rule of autoresearch-mlx (three seeds, bootstrap P >= .95) as a user would have it, and its row of the pages.
BOOTSTRAP = """\
import json, sys
from itertools import product
DRAWS = list(product(range(3), repeat=3))
def decide(baseline, candidate):
    base, own = (sorted(sum(arm[i] for i in draw) / 3 for draw in DRAWS) for arm in (baseline, candidate))
    return sum(mine < theirs for mine in own for theirs in base) >= 0.95 * len(DRAWS) ** 2
if __name__ == "__main__":
    for line in sys.stdin:
        arms = json.loads(line)
        print("keep" if decide(arms["baseline"], arms["candidate"]) else "discard")
"""
EXPECTED = dict(zip(GAINS, (0.126, 0.487, 0.862)))


def as_good_as(page: RatesPage) -> None:
    """Tries with --as-good-as: what is accepted, with the margin made of the bank's own sigma and with fresh runs."""
    rows = []
    for margin in (1.0, 2.0):
        proposed = propose_runs(0.05, margin)
        assert proposed is not None
        for bank, most in ((5, 8), (proposed, proposed)):
            rng = rng_of("as good", margin, bank)
            design = SequentialDesign(bank=bank, most=most, target_gain_sigmas=margin, futility=FUTILITY)
            base_WB = rng.standard_normal((page.worlds, bank))
            margin_W1 = margin * base_WB.std(axis=1, ddof=1)[:, None]
            fresh = count_fresh_runs(bank, margin)
            cells = []
            for gain in (0.0, -margin, -2.0 * margin):
                own_WK = rng.standard_normal((page.worlds, most)) + gain + margin_W1
                fresh_WN = rng.standard_normal((page.worlds, fresh)) + gain + margin_W1
                accepted_W, _, runs_W = find_ends(integrate_paths(design)[0], simulate_paths(design, base_WB, own_WK))
                fresh_base_WN = rng.standard_normal((page.worlds, fresh))
                accepted_W = accepted_W & (p_of_fresh_runs(fresh_base_WN, fresh_WN) <= FRESH_LEVEL)
                cells.append((page.share(accepted_W), 40 * accepted_W.mean(), runs_W.mean()))
            nothing, at_margin, twice = cells
            rows.append(
                (
                    f"{margin:g} sigma",
                    f"{bank} + {most} at most + {fresh} fresh",
                    f"{nothing[0]} ({nothing[1]:.1f} of 40)",
                    at_margin[0],
                    f"{twice[0]} ({twice[1]:.2f} of 40)",
                    f"{nothing[2]:.1f} / {twice[2]:.1f}",
                )
            )
    page.table(
        "As good as",
        f"{page.worlds:,} tries a row, normal noise, one-sided .05; the margin is of the sigma of the bank's runs, and "
        "what is accepted has to be confirmed by fresh runs of both arms, as many of each. The second size is the one "
        "that the command proposes; with 5 + 8 it says so and makes no run of the test unless it is told to.",
        [
            "margin",
            "runs",
            "does nothing: accepted",
            "loses the margin: accepted",
            "loses twice the margin: accepted",
            "candidate runs (nothing / twice)",
        ],
        rows,
    )


def rules_of_others(page: RatesPage) -> None:
    """`plumbline noise --rule` of the bootstrap rule, in its three ways, next to what the page of rules has."""
    runs = MadeUpRuns(mean=3.0, sigma=0.01, higher=False, baseline_runs=3, candidate_runs=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bootstrap_rule.py"
        path.write_text(BOOTSTRAP)
        command = f"{sys.executable} {path}"
        function, script = (load_rule(text, metric="loss", higher=False)[0] for text in (f"{path}:decide", command))
        ways = {
            "a function": measure_single(function, runs, most=5000, seconds=20.0),
            "a script, all changes at once": measure_lines(command, runs, metric="loss"),
            "a script, a call a change": measure_single(script, runs, most=200, seconds=30.0, at_once=2),
        }
    rows = [("experiment_rules.md", *(f"{EXPECTED[gain]:.3f}" for gain in GAINS), "")]
    for way, shares in ways.items():
        inside = sum(share.interval[0] <= EXPECTED[gain] <= share.interval[1] for gain, share in shares.items())
        rows.append((way, *map(_format_share, shares.values()), f"{inside} of {len(GAINS)}"))
    page.table(
        "A rule of others",
        "`plumbline noise --rule` on the bootstrap rule (three runs of each): the share that it keeps, with its 95 % "
        "interval, and how many of the intervals hold what the page of rules has.",
        ["way", *(f"{gain:g} sigma kept" for gain in GAINS), "intervals that hold it"],
        rows,
    )


def _format_share(share: Share) -> str:
    low, high = share.interval
    return f"{share.value:.3f} ({low:.3f} to {high:.3f}; {share.tried:,})"


def main() -> None:
    title = "Other questions, where the truth is known"
    make_page(__file__, (as_good_as, rules_of_others), title=title, text="", flag="--worlds", worlds=40_000)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
