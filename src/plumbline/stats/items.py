"""What a difference of averages over tasks owes to the items that happened to be asked, beside what it owes to seeds.

Source: ours; the transfer study measures distances in units of the spread of seeds alone (section 3.3).

**Items.** A run answers item i of task t with y_ti (a truth, or a share), run s of the reference's n with b_tis. Item
by item d_ti = y_ti - mean over s of b_tis, so that what makes an item easy for all cancels. Tasks have the same weight:

    delta = (1/T) sum_t mean_i d_ti        se_t^2 = sum_i (d_ti - mean_i d_ti)^2 / (N_t (N_t - 1))
    se    = sqrt(sum_t se_t^2) / T         df     = (sum_t se_t^2)^2 / sum_t (se_t^4 / (N_t - 1))

with N_t items of T tasks, items drawn independently and tasks having different ones (proxies that share sentences do
not quite: se is slightly too small of them, and their table says so). t = delta / se is read against
Student's t with df degrees of freedom (Welch, Satterthwaite). The trained runs are held fixed: it answers whether
*these runs* would differ on other items of the same kind. Of fewer than `FEWEST` items a task there is no se: they may
all happen to differ by the same.

**Seeds.** The prediction t (`NoiseFloor.prediction`) holds the items fixed: whether *another seed* would differ on
these.

**Both.** Let an answer be the task's mean + the item's ease + h_ti, what the method does to the item in all its seeds,
+ u_r, what a run's seed does to all items, + e_rti, what it does to this one. Then, over seeds and items,

    Var(delta)               = (1 + 1/n) (Var u + E) + H
    expectation of sigma^2   =            Var u + E              (seeds on fixed items)
    expectation of se^2      = (1 + 1/n)          E  + H         (items under fixed runs)

with E = (1/T^2) sum_t Var(e_t) / N_t and H the same of h. `with_seeds` takes se^2 + (1 + 1/n) sigma^2, which counts the
runs' luck on single items, E, twice: never too small, and too large by at most the factor 2 (by the root of 2 in t).
Where h is nothing the prediction t alone is exact for other items too. E could be subtracted, but as a difference of
two estimates from few runs, which may come out below nothing.

Its t has the smaller of the two degrees of freedom, in practice n - 1. Welch and Satterthwaite's would find more, but
from an estimate with two degrees of freedom they reject up to eight times too often at a corrected level of 0.05 / 19,
which is where it is used; with the smaller number never too often. What passes so passes both single tests too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.stats.multiplicity import adjust
from plumbline.stats.noise_floor import NoiseFloor, two_sided_t

#: Items a task below which their spread is not taken from them.
FEWEST = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """A difference of averages with a standard error, both in the units of the scores, and its degrees of freedom.

    `se` is NaN where it cannot be estimated; t and p are NaN there, and where nothing varies.
    """

    delta: float
    se: float
    df: float

    @property
    def t(self) -> float:
        """delta / se."""
        return self.delta / self.se if self.se > 0 else math.nan

    @property
    def p(self) -> float:
        """Two-sided, by Student's t."""
        return float(two_sided_t(self.t, self.df)) if self.se > 0 else math.nan


def item_distance(method: pd.Series, reference: Sequence[pd.Series]) -> Distance:
    """Distance of a run from the mean of the reference's runs, with the sampling error of items.

    Args:
        method: value of each item, on (task, item), of any order; `name` is for messages.
        reference: the same of each run of the reference.

    Raises:
        PlumblineError: no run of the reference, no item, or runs that did not answer the same items.
    """
    differences = method - mean_by_item(reference, like=method)
    return sampling_error([rows.to_numpy(dtype=float) for _, rows in differences.groupby(level=0, sort=False)])


def mean_by_item(runs: Sequence[pd.Series], like: pd.Series | None = None) -> pd.Series:
    """Mean over runs of each item's value, on (task, item); of the items of `like`, if given.

    Raises:
        PlumblineError: no run, no item, or runs that did not answer the same items.
    """
    if not runs or runs[0].empty:
        raise PlumblineError("items are compared with those of at least one run that has some; there is none")
    first = runs[0] if like is None else like
    for run in runs:
        if not run.index.is_unique or not first.index.is_unique or set(run.index) != set(first.index):
            raise PlumblineError(f"{first.name} and {run.name} did not answer the same items{_which(first, run)}")
    return pd.concat([run.astype(float).reindex(first.index) for run in runs], axis=1).mean(axis=1, skipna=False)


def sampling_error(differences: Sequence[np.ndarray]) -> Distance:
    """Mean over tasks of the mean over items, its standard error and degrees of freedom.

    Args:
        differences: for each task the values of its items (N_t), at least one. Where any N_t is below `FEWEST`,
            se is NaN.
    """
    counts_T = np.array([len(values_N) for values_N in differences])
    delta = float(np.mean([values_N.mean() for values_N in differences]))
    if counts_T.min() < FEWEST:
        return Distance(delta=delta, se=math.nan, df=math.nan)
    squares_T = np.array([values_N.var(ddof=1) for values_N in differences]) / counts_T
    df = float(squares_T.sum() ** 2 / (squares_T**2 / (counts_T - 1)).sum()) if squares_T.any() else math.nan
    return Distance(delta=delta, se=math.sqrt(squares_T.sum()) / len(counts_T), df=df)


def with_seeds(items: Distance, floor: NoiseFloor) -> Distance:
    """The same difference with the error of other items and of other seeds, of the reference and of the method.

    `floor`: the seeds' averages over the same items. NaN where it is no floor.
    """
    if not floor.usable:
        return Distance(delta=items.delta, se=math.nan, df=math.nan)
    se = math.sqrt(items.se**2 + floor.sigma**2 * (1 + 1 / floor.n))
    return Distance(delta=items.delta, se=se, df=float(np.nanmin([floor.n - 1, items.df])))


def item_verdicts(distances: Mapping[str, Distance], floor: NoiseFloor, *, m: int) -> pd.DataFrame:
    """What stands beside `plumbline.stats.verdicts` where each item's value is known.

    Args:
        distances: method -> `item_distance`.
        floor: that of the averages over the same items.
        m: size of the family of tests; methods without a distance count in it.

    Returns:
        On the methods se_items, t_items, df_items, p_items and p_items_bonferroni: these runs on other items; and
        t_both, p_both and p_both_bonferroni: other seeds on other items. What cannot be computed is NaN.
    """
    both = [with_seeds(one, floor) for one in distances.values()]
    frame = pd.DataFrame(
        {
            "se_items": [one.se for one in distances.values()],
            "t_items": [one.t for one in distances.values()],
            "df_items": [one.df for one in distances.values()],
            "p_items": [one.p for one in distances.values()],
            "p_items_bonferroni": math.nan,
            "t_both": [one.t for one in both],
            "p_both": [one.p for one in both],
            "p_both_bonferroni": math.nan,
        },
        index=list(distances),
        dtype=float,
    )
    for name in ("p_items", "p_both"):
        frame[f"{name}_bonferroni"] = adjust(frame[name], "bonferroni", m=m)
    return frame


def at_chance(reference: pd.Series, chance: Mapping[str, float], errors: float = 2.0) -> list[str]:
    """Tasks of which the mean over items is within so many standard errors of guessing; none of fewer items
    than `FEWEST`.

    Args:
        reference: mean over runs of each item's value, on (task, item).
        chance: task -> what guessing scores.
    """
    found = []
    for task, values in reference.groupby(level=0, sort=False):
        error = values.std(ddof=1) / math.sqrt(len(values))
        if len(values) >= FEWEST and abs(values.mean() - chance[str(task)]) <= errors * error:
            found.append(str(task))
    return found


def _which(first: pd.Series, run: pd.Series) -> str:
    """An item that only one of them answered, and how many there are."""
    odd = sorted(set(first.index) ^ set(run.index))
    return f": {len(odd)} belong to one alone, such as {odd[0][1]} of {odd[0][0]}" if odd else ", or one of them twice"
