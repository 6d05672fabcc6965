"""Compares the same methods at the base and at the large scale: values, distances, ranks, and what of the order is
left.

Source: transfer study, sections 5.1 and 5.2.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.stats.rank_correlation import SpearmanResult, descending_ranks, spearman

from .headline_runs import LARGE, base_values, first_seed


def two_scales(frames: RunFrames, study: Study, reference: str) -> pd.DataFrame:
    """On the method: base and large average, their deltas from the reference, ranks; NaN if there is none.

    At the base scale the reference is the mean of its seeds and ranks go over all methods; at the large scale every
    method is one seed, the reference too, and ranks go over the methods that completed.
    """
    base, large_runs = base_values(frames, study, reference), frames.select(LARGE, study.methods)
    methods = [method for method in study.methods if method in set(large_runs["method"])]
    large = pd.Series({m: first_seed(large_runs, m)["average"].mean() for m in methods}, dtype=float)
    frame = pd.DataFrame({"base": base.reindex(methods), "large": large}, index=pd.Index(methods, name="method"))
    frame["climb_avg_delta_base"] = frame["base"] - base.get(reference, math.nan)
    frame["climb_avg_delta_large"] = frame["large"] - large.get(reference, math.nan)
    frame["rank_base"] = descending_ranks(base).reindex(methods)
    frame["rank_large"] = descending_ranks(large)
    return frame


def improvers(values: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Methods above the reference at the base scale that completed at the large one (the paper's seven)."""
    return values[(values["climb_avg_delta_base"] > 0) & values["large"].notna() & (values.index != reference)]


def failures(values: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Methods below the reference at the base scale that completed at the large one (the paper's two)."""
    return values[(values["climb_avg_delta_base"] < 0) & values["large"].notna() & (values.index != reference)]


def rank_correlation(values: pd.DataFrame) -> SpearmanResult | None:
    """Spearman's rho between the scales; None for fewer than three methods."""
    try:
        return spearman(values["base"], values["large"])
    except PlumblineError:
        return None
