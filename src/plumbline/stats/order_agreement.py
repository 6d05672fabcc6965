"""Computes decision accuracy, the share of pairs of methods that two columns of values order alike, with its interval
and with what chance gives.

Source: ours; the word is that of Magnusson et al., DataDecide (2025), section 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

#: Random draws behind an interval and behind what chance gives, and how many are made at once.
DRAWS, AT_ONCE = 100_000, 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderAgreement:
    """How alike two columns order `methods` that have a value in both.

    Attributes:
        alike: pairs in the same order; a pair that is tied in either column counts half.
        pairs: all pairs that count.
        low: lower end of the 95 % interval of their share, if these methods were drawn from more of their kind; NaN
            below 4 methods.
        high: its upper end.
        chance: the share below which 95 % of random orders stay; NaN below 4 methods.
        p: the share of random orders with at least this agreement.
    """

    methods: int
    alike: float
    pairs: int
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    p: float = math.nan

    @property
    def share(self) -> float:
        """The share of pairs that are ordered alike; NaN without pairs."""
        return self.alike / self.pairs if self.pairs else math.nan


#: Fewer methods have hardly any orders to draw.
FEWEST = 4


def order_agreement(
    values: Mapping[str, float],
    other_values: Mapping[str, float],
    *,
    counted: np.ndarray | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> OrderAgreement:
    """Compare the order of every pair of methods that have a finite value in both columns.

    The interval resamples methods with replacement (a method paired with itself counts nowhere); chance permutes one
    column. Pairs are not independent of each other, so that no binomial interval holds.

    Args:
        counted: methods x methods, in the order of the methods of `values` that have both values: which pairs
            count; None for all.
        draws: random draws behind interval and chance; 0 leaves both out.
    """
    names = [name for name in values if math.isfinite(values[name]) and math.isfinite(other_values.get(name, math.nan))]
    first, second = (np.array([column[name] for name in names], dtype=float) for column in (values, other_values))
    n = len(names)
    upper = np.triu(np.ones((n, n)), 1) if counted is None else np.triu(np.asarray(counted, dtype=float), 1)
    weight = upper + upper.T
    scores = _score_pairs(first, second) * weight
    pairs = int(upper.sum())
    agreement = OrderAgreement(methods=n, alike=float(np.triu(scores, 1).sum()), pairs=pairs)
    if n < FEWEST or not pairs or not draws:
        return agreement
    rng = np.random.default_rng(seed)
    shares, chance_shares = [], []
    signs_first, signs_second = _signs(first), _signs(second)
    for start in range(0, draws, AT_ONCE):
        size = min(AT_ONCE, draws - start)
        times = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float)
        pair_counts = ((times @ weight) * times).sum(1)
        shares.append((((times @ scores) * times).sum(1))[pair_counts > 0] / pair_counts[pair_counts > 0])
        orders = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        signs = signs_second[orders[:, :, None], orders[:, None, :]]
        chance_shares.append(((1 + signs_first * signs) / 2 * upper).sum((1, 2)) / pairs)
    low, high = np.quantile(np.concatenate(shares), [0.025, 0.975])
    chances = np.concatenate(chance_shares)
    return OrderAgreement(
        methods=n,
        alike=agreement.alike,
        pairs=pairs,
        low=float(low),
        high=float(high),
        chance=float(np.quantile(chances, 0.95)),
        # Rounding errors must not decide whether an order agrees as much as the observed one.
        p=float(((chances >= agreement.share - 1e-12).sum() + 1) / (draws + 1)),
    )


def _signs(values: np.ndarray) -> np.ndarray:
    return np.sign(values[:, None] - values[None, :])


def _score_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Score each pair of methods: 1 if both columns order it alike, 0 if not, a half with a tie; 0 on the diagonal."""
    product = (1 + _signs(first) * _signs(second)) / 2
    np.fill_diagonal(product, 0.0)
    return product
