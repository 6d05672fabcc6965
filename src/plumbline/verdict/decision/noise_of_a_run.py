"""Computes what a bank says of the noise of a run, and which gain so many runs find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbline.stats.pooling import SigmaEstimate, pooled, resolved_gain
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.power import sigma_interval

#: Candidate runs for which it is said what they resolve.
SEEDS = (2, 3, 5, 8, 12)


def noise(bank: Bank, beside: Mapping[str, int]) -> list[dict[str, Any]]:
    """Compute what the bank says of sigma: for each trainer and budget, on each machine, and what seeds resolve.

    `beside`: of a trainer and budget the baseline's runs that the next candidate is compared with, where it is known;
    else it is those of the newest candidate.
    """
    found = []
    for group in sorted({one.group for one in bank.runs}):
        for fingerprint, values in sorted(bank.spreads(group).items()):
            runs = beside.get(group) or _beside_newest(bank, group) or max(map(len, values))
            found.append(_row(group, fingerprint, values, runs))
    return [row for row in found if row is not None]


def _beside_newest(bank: Bank, group: str) -> int:
    return next((len(one.beside) for one in reversed(bank.runs) if one.group == group and one.beside), 0)


def _row(group: str, fingerprint: str, values: list[list[float]], runs: int) -> dict[str, Any] | None:
    spread = pooled(values)
    if not (spread.sigma > 0 and spread.df > 0):
        return None
    low, high = sigma_interval(spread.sigma, spread.df)
    return {
        "group": group,
        "fingerprint": fingerprint,
        "arms": len(values),
        "runs": sum(map(len, values)),
        "sigma": spread.sigma,
        "low": low,
        "high": high,
        "bank": runs,
        "resolves": {str(seeds): _resolved(spread, runs, seeds) for seeds in SEEDS},
    }


def _resolved(spread: SigmaEstimate, bank: int, seeds: int) -> float:
    """The gain that so many candidate runs beside such a bank find with a chance of 80 %, if sigma is as estimated."""
    return resolved_gain(spread, baseline=bank, candidate=seeds, alpha=0.05)
