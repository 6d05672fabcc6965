"""Computes the protocol's statistics, as a library: noise floor, corrections, paired differences, ranks, power.

Missing values are NaN going in and NaN coming out: never zero, never dropped from an index.
"""

from plumbline.stats.bootstrap import BootstrapInterval, bootstrap_interval, probability_not_above
from plumbline.stats.curve_crossing import first_at_or_below
from plumbline.stats.item_noise import (
    MeanDifference,
    compare_with_chance,
    item_distance,
    item_verdicts,
    mean_by_item,
    sampling_error,
    with_seeds,
)
from plumbline.stats.multiplicity import adjust, family_wise_error_rate
from plumbline.stats.noise_floor import (
    NoiseFloor,
    noise_floor,
    signal_of_noise,
    two_sided_normal,
    two_sided_t,
    verdicts,
)
from plumbline.stats.paired_runs import PairedRatio, PairedResult, paired_difference, paired_ratio
from plumbline.stats.power import chance_called, power_of_gain, resolved_distance, resolved_gain, seeds_needed
from plumbline.stats.rank_correlation import SpearmanResult, descending_ranks, signs_preserved, spearman
from plumbline.stats.sample_spread import sample_deviation
from plumbline.stats.significance import significance
from plumbline.stats.welch_and_stouffer import (
    StoufferResult,
    WelchResult,
    stouffer,
    task_correlation,
    welch,
    welch_per_task,
)

__all__ = [
    "BootstrapInterval",
    "MeanDifference",
    "NoiseFloor",
    "PairedRatio",
    "PairedResult",
    "SpearmanResult",
    "StoufferResult",
    "WelchResult",
    "adjust",
    "bootstrap_interval",
    "chance_called",
    "compare_with_chance",
    "descending_ranks",
    "family_wise_error_rate",
    "first_at_or_below",
    "item_distance",
    "item_verdicts",
    "mean_by_item",
    "noise_floor",
    "paired_difference",
    "paired_ratio",
    "power_of_gain",
    "probability_not_above",
    "resolved_distance",
    "resolved_gain",
    "sample_deviation",
    "sampling_error",
    "seeds_needed",
    "signal_of_noise",
    "significance",
    "signs_preserved",
    "spearman",
    "stouffer",
    "task_correlation",
    "two_sided_normal",
    "two_sided_t",
    "verdicts",
    "welch",
    "welch_per_task",
    "with_seeds",
]
