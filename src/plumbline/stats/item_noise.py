"""Estimates how much of a difference of averages over tasks is due to the choice of items, in addition to the seeds.

Source: ours; the transfer study measures distances in units of the spread of seeds alone (section 3.3).

**Items.** A run answers item i of task t with y_ti (a truth value, or a share), run s of the reference's n with b_tis.
For each item d_ti = y_ti - mean over s of b_tis, so that what makes an item easy for all cancels. Tasks have the same
weight:

    delta = (1/T) sum_t mean_i d_ti        se_t^2 = sum_i (d_ti - mean_i d_ti)^2 / (N_t (N_t - 1))
    se    = sqrt(sum_t se_t^2) / T         df     = (sum_t se_t^2)^2 / sum_t (se_t^4 / (N_t - 1))

with N_t items of T tasks, items drawn independently and tasks having different ones (this does not quite hold of
proxies that share sentences: their se is slightly too small, and their table says so). t = delta / se is compared with
Student's t with df degrees of freedom (Welch, Satterthwaite). The trained runs are held fixed: the test answers whether
*these runs* would differ on other items of the same kind. With fewer than `FEWEST` items in a task there is no se: they
may all happen to differ by the same.

**Seeds.** The prediction t (`NoiseFloor.prediction`) holds the items fixed: it answers whether *another seed* would
differ on these items.

**Both.** Let an answer be the sum of the task's mean, the item's ease, h_ti (what the method does to the item in all
its seeds), u_r (what a run's seed does to all items) and e_rti (what it does to this one). Then, over seeds and items,

    Var(delta)               = (1 + 1/n) (Var u + E) + H
    expectation of sigma^2   =            Var u + E              (seeds on fixed items)
    expectation of se^2      = (1 + 1/n)          E  + H         (items under fixed runs)

with E = (1/T^2) sum_t Var(e_t) / N_t and H the same of h. `add_seed_error` takes se^2 + (1 + 1/n) sigma^2, which
counts E, the runs' luck on single items, twice: never too small, and too large by at most the factor 2 (by the root of
2 in t).
Where h is zero the prediction t alone is exact for other items too. E could be subtracted, but only as a difference of
two estimates from few runs, which may be negative.

The t of both has the smaller of the two degrees of freedom, in practice n - 1. The degrees of freedom of Welch and
Satterthwaite would find more differences, but from an estimate with two degrees of freedom they reject up to eight
times too often at a corrected level of 0.05 / 19, which is where it is used; the smaller number never rejects too
often. What is significant by this test is so by both single tests too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.multiplicity import adjust
from plumbline.stats.noise_floor import NoiseFloor, two_sided_t
from plumbline.stats.pooling import SigmaEstimate
from plumbline.stats.sample_spread import sample_deviation

if TYPE_CHECKING:
    import pandas as pd

#: Items a task below which their spread is not taken from them.
FEWEST = 8

#: Seeds of a reference beyond which nobody trains: what they do not decide is left.
MOST_SEEDS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanDifference:
    """A difference of averages, its standard error (both in the units of the scores) and its degrees of freedom.

    `se` is NaN where it cannot be estimated; t and p are NaN there, and where nothing varies.
    """

    delta: float
    se: float
    df: float

    @property
    def t(self) -> float:
        """The t statistic delta / se; NaN where se is NaN or 0."""
        return self.delta / self.se if self.se > 0 else math.nan

    @property
    def p(self) -> float:
        """The two-sided p-value of `t` under Student's t with `df` degrees of freedom; NaN where se is NaN or 0."""
        return float(two_sided_t(self.t, self.df)) if self.se > 0 else math.nan


def item_distance(method: pd.Series, reference: Sequence[pd.Series]) -> MeanDifference:
    """Distance of a run from the mean of the reference's runs, with the sampling error of items.

    Args:
        method: value of each item, indexed by (task, item) in any order; its `name` is used in messages.
        reference: the same for each run of the reference.

    Raises:
        PlumblineError: the reference has no run, there is no item, or the runs did not answer the same items.
    """
    differences = method - mean_by_item(reference, like=method)
    return sampling_error([rows.to_numpy(dtype=float) for _, rows in differences.groupby(level=0, sort=False)])


def mean_by_item(runs: Sequence[pd.Series], like: pd.Series | None = None) -> pd.Series:
    """Mean over `runs` of each item's value, indexed by (task, item); in the order of `like`, if given.

    Raises:
        PlumblineError: there is no run or no item, or the runs (and `like`) did not answer the same items.
    """
    import pandas as pd

    if not runs or runs[0].empty:
        raise PlumblineError("items are compared with those of at least one run that has some; there is none")
    first = runs[0] if like is None else like
    for run in runs:
        if not run.index.is_unique or not first.index.is_unique or set(run.index) != set(first.index):
            raise PlumblineError(
                f"{first.name} and {run.name} did not answer the same items{_describe_odd_items(first, run)}"
            )
    return pd.concat([run.astype(float).reindex(first.index) for run in runs], axis=1).mean(axis=1, skipna=False)


def sampling_error(differences: Sequence[np.ndarray]) -> MeanDifference:
    """Mean over tasks of the mean over items, its standard error and degrees of freedom.

    Args:
        differences: for each task the values of its items (N_t), at least one. Where any N_t is below `FEWEST`,
            se is NaN.
    """
    counts_T = np.array([len(values_N) for values_N in differences])
    delta = float(np.mean([values_N.mean() for values_N in differences]))
    if counts_T.min() < FEWEST:
        return MeanDifference(delta=delta, se=math.nan, df=math.nan)
    squares_T = np.array([sample_deviation(values_N) ** 2 for values_N in differences]) / counts_T
    df = float(squares_T.sum() ** 2 / (squares_T**2 / (counts_T - 1)).sum()) if squares_T.any() else math.nan
    return MeanDifference(delta=delta, se=math.sqrt(squares_T.sum()) / len(counts_T), df=df)


def add_seed_error(items: MeanDifference, floor: NoiseFloor, spread: SigmaEstimate | None = None) -> MeanDifference:
    """The same difference with an error that counts other items and other seeds, of the reference and of the method.

    Args:
        items: the difference with the error of items alone (`item_distance`).
        floor: the noise floor of the seeds' averages over the same items; se and df are NaN where it is not usable.
        spread: sigma and its degrees of freedom where it is not that of `floor` (pooled over several references).
    """
    sigma, df = spread or (floor.sigma, floor.n - 1)
    if not floor.usable or not sigma > 0:
        return MeanDifference(delta=items.delta, se=math.nan, df=math.nan)
    se = math.sqrt(items.se**2 + sigma**2 * (1 + 1 / floor.n))
    return MeanDifference(delta=items.delta, se=se, df=float(np.nanmin([df, items.df])))


def seeds_that_decide(items: MeanDifference, floor: NoiseFloor, level: float) -> int | None:
    """The least number of reference seeds at which a difference as large would have p at most `level`.

    Other items, and other seeds whose sigma is what it is now; None if `MOST_SEEDS` are not enough.

    Args:
        items: the difference with the error of items alone.
        floor: the noise floor, whose sigma is taken; only its number of seeds changes, and not below what it is.
    """
    for seeds in range(max(floor.n, 2), MOST_SEEDS + 1):
        more = NoiseFloor(mean=floor.mean, sigma=floor.sigma, n=seeds)
        if add_seed_error(items, more).p <= level:
            return seeds
    return None


def item_verdicts(
    distances: Mapping[str, MeanDifference], floor: NoiseFloor, *, m: int, pooled: SigmaEstimate | None = None
) -> pd.DataFrame:
    """The tests over items, per method, to join to the frame of `plumbline.stats.noise_floor.compute_verdicts`.

    Args:
        distances: method -> `item_distance`.
        floor: the noise floor of the averages over the same items.
        m: size of the family of tests; methods without a distance count in it.
        pooled: sigma over several references; none: the columns of it are NaN.

    Returns:
        A frame on the methods with se_items, t_items, df_items, p_items and p_items_bonferroni: these runs on other
        items; t_seeds_and_items, p_seeds_and_items and p_seeds_and_items_bonferroni: other seeds on other items; and
        p_pooled_seeds_and_items and its Bonferroni, by the pooled sigma. What cannot be computed is NaN.
    """
    import pandas as pd

    distances_with_seeds = [add_seed_error(distance, floor) for distance in distances.values()]
    frame = pd.DataFrame(
        {
            "se_items": [distance.se for distance in distances.values()],
            "t_items": [distance.t for distance in distances.values()],
            "df_items": [distance.df for distance in distances.values()],
            "p_items": [distance.p for distance in distances.values()],
            "p_items_bonferroni": math.nan,
            "t_seeds_and_items": [distance.t for distance in distances_with_seeds],
            "p_seeds_and_items": [distance.p for distance in distances_with_seeds],
            "p_seeds_and_items_bonferroni": math.nan,
            "p_pooled_seeds_and_items": [
                add_seed_error(distance, floor, pooled).p if pooled else math.nan for distance in distances.values()
            ],
            "p_pooled_seeds_and_items_bonferroni": math.nan,
        },
        index=list(distances),
        dtype=float,
    )
    for name in ("p_items", "p_seeds_and_items", "p_pooled_seeds_and_items"):
        frame[f"{name}_bonferroni"] = adjust(frame[name], "bonferroni", m=m)
    return frame


def compare_with_chance(
    reference: pd.Series, chance: Mapping[str, float]
) -> dict[str, Literal["at", "below", "above"]]:
    """Task -> whether its mean over items is within two standard errors of guessing, or beyond them.

    Tasks of fewer than `FEWEST` items are left out: their error is not known.

    Args:
        reference: mean over runs of each item's value, indexed by (task, item).
        chance: task -> what guessing scores.
    """
    positions: dict[str, Literal["at", "below", "above"]] = {}
    for task, values in reference.groupby(level=0, sort=False):
        if len(values) < FEWEST:
            continue
        distance = values.mean() - chance[str(task)]
        error = sample_deviation(values) / math.sqrt(len(values))
        positions[str(task)] = "at" if abs(distance) <= 2 * error else "below" if distance < 0 else "above"
    return positions


def _describe_odd_items(first: pd.Series, run: pd.Series) -> str:
    """Name an item that only one of two runs answered, and count such items, as the end of a message."""
    odd = sorted(set(first.index) ^ set(run.index))
    return f": {len(odd)} belong to one alone, such as {odd[0][1]} of {odd[0][0]}" if odd else ", or one of them twice"
