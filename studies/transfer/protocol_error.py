"""Computes what the study's own protocol is worth: how often it crowns a method when none does anything, and what it
finds.

Source: transfer study, section 3.3. See `plumbline.stats.protocol_error`; the paper has no such numbers.
"""

from __future__ import annotations

from plumbline.stats.distributions import normal_isf
from plumbline.stats.power import compute_resolvable_distance
from plumbline.stats.protocol_error import ALPHA, WORLDS, ErrorRates, Statistic, simulate_protocol

#: Runs of the reference; the paper has three.
COUNTS = tuple(range(2, 11))

#: Gains in units of the spread of seeds.
GAINS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)

STATISTICS = {"normal": "normal z", "prediction": "prediction t"}
CORRECTIONS = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "BH"}

#: What the simulation takes for granted.
ASSUMED = (
    f"By simulation of {WORLDS:,} worlds, no training: seeds are drawn from one normal law whose spread no method "
    "changes, one run a method."
)


def compute_error_rates(statistic: str, correction: str, m: int, n: int) -> ErrorRates:
    """Of `m` methods against `n` runs of the reference."""
    return simulate_protocol(statistic, correction, m=m, n=n, gains=GAINS)  # type: ignore[arg-type]


def find_threshold(statistic: Statistic, m: int, n: int) -> float:
    """The |z| from which Bonferroni over `m` methods calls a run different from `n` runs of the reference."""
    return float(normal_isf(ALPHA / m / 2)) if statistic == "normal" else compute_resolvable_distance(1.0, n, m=m)


def sentence(m: int, n: int) -> str:
    """What stands under a table of z scores: the worth of the paper's protocol at this number of seeds."""
    printed, paid = (
        compute_error_rates("normal", "bonferroni", m, n),
        compute_error_rates("prediction", "bonferroni", m, n),
    )
    return (
        f"With {n} seeds of the reference, z under Bonferroni calls at least one of {m} methods different in "
        f"{printed.survivor:.0%} of worlds in which none does anything, and one of them better in "
        f"{printed.improver:.0%}; the prediction in {paid.survivor:.0%} and {paid.improver:.0%} (table protocol_error)."
    )
