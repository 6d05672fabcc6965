"""Order agreement against a second derivation: loops over pairs, all orders, all samples of methods; ties and NaN."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.stats.order_agreement import order_agreement

Column = dict[str, float]

#: Few different values, so that ties are frequent; a value may be missing or not finite.
VALUE = st.sampled_from([-1.0, 0.0, 0.5, 2.0, 7.0, math.nan, math.inf])
DRAWS = 4000


def credit(first: Column, other: Column, a: str, b: str) -> float:
    """Say whether both columns put a on the same side of b: 1 or 0, a half where either cannot say."""
    if first[a] == first[b] or other[a] == other[b]:
        return 0.5
    return float((first[a] < first[b]) == (other[a] < other[b]))


def share_of(first: Column, other: Column, names: list[str], counted: set[frozenset[str]]) -> float:
    """The share alike of the pairs of `names`, which may name a method twice, that count; NaN without any."""
    pairs = [(a, b) for a, b in itertools.combinations(names, 2) if a != b and frozenset((a, b)) in counted]
    return sum(credit(first, other, a, b) for a, b in pairs) / len(pairs) if pairs else math.nan


def matrix(names: list[str], counted: set[frozenset[str]]) -> np.ndarray:
    return np.array([[a != b and frozenset((a, b)) in counted for b in names] for a in names])


def both_finite(first: Column, other: Column) -> list[str]:
    return [a for a in first if math.isfinite(first[a]) and a in other and math.isfinite(other[a])]


@given(st.data())
def test_pairs_and_their_share(data: st.DataObject) -> None:
    first = data.draw(st.dictionaries(st.sampled_from("abcdefgh"), VALUE))
    other = data.draw(st.dictionaries(st.sampled_from("hgfedcbaz"), VALUE))
    names = both_finite(first, other)
    pairs = {frozenset(pair) for pair in itertools.combinations(names, 2)}
    counted = {pair for pair in sorted(pairs, key=sorted) if data.draw(st.booleans())}
    for choice, given_to_it in ((pairs, None), (counted, matrix(names, counted).reshape(len(names), len(names)))):
        result = order_agreement(first, other, counted=given_to_it, draws=0)
        assert (result.methods, result.pairs) == (len(names), len(choice))
        assert result.share == pytest.approx(share_of(first, other, names, choice), nan_ok=True)
        turned = order_agreement(first, {a: -value for a, value in other.items()}, counted=given_to_it, draws=0)
        assert result.alike + turned.alike == pytest.approx(len(choice)), "an order and its reverse share all pairs"


def near_quantile(value: float, values: np.ndarray, level: float) -> bool:
    """Whether `value` lies where that quantile of `values` does, give or take the error of DRAWS draws."""
    give = 5 * math.sqrt(level * (1 - level) / DRAWS)
    return (values < value - 1e-9).mean() <= level + give and (values <= value + 1e-9).mean() >= level - give


@pytest.mark.parametrize("world", range(6))
def test_interval_and_chance_are_those_of_all_samples(world: int) -> None:
    """With 4 or 5 methods every sample with replacement and every order can be listed; even worlds have ties."""
    rng = np.random.default_rng(world)
    names = list("abcde")[: (4, 4, 5, 5, 5, 5)[world]]
    first = dict(zip(names, rng.normal(size=6).round(0 if world % 2 == 0 else 9), strict=False))
    other = {a: first[a] + rng.normal() for a in names}
    if world % 2 == 0:
        other[names[0]] = other[names[-1]]
    # What has no value in one of the columns must change nothing.
    first, other = {"only": 3.0, **first, "nan": math.nan}, {"nan": 1.0, **other, "inf": math.inf}
    pairs = [frozenset(pair) for pair in itertools.combinations(names, 2)]
    counted = set(pairs if world % 3 == 0 else pairs[1:])
    result = order_agreement(first, other, counted=matrix(names, counted), draws=DRAWS, seed=world)

    samples = [share_of(first, other, list(sample), counted) for sample in itertools.product(names, repeat=len(names))]
    shares = np.array([share for share in samples if not math.isnan(share)])
    orders = itertools.permutations(names)
    by_chance = np.array(
        [share_of(first, {a: other[b] for a, b in zip(names, order, strict=True)}, names, counted) for order in orders]
    )
    assert near_quantile(result.low, shares, 0.025) and near_quantile(result.high, shares, 0.975)
    assert near_quantile(result.chance, by_chance, 0.95)
    p = (by_chance >= share_of(first, other, names, counted) - 1e-12).mean()
    assert result.p == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / DRAWS) + 1 / DRAWS)
