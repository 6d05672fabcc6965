"""Statistics of the protocol, as a library: noise floor, corrections, paired differences, ranks, power.

Missing values are NaN going in and NaN coming out: never zero, never dropped from an index.
"""

from plumbline.stats.multiplicity import adjust, family_wise_error_rate
from plumbline.stats.noise_floor import NoiseFloor, noise_floor, two_sided_normal, two_sided_t, verdicts

__all__ = [
    "NoiseFloor",
    "adjust",
    "family_wise_error_rate",
    "noise_floor",
    "two_sided_normal",
    "two_sided_t",
    "verdicts",
]
