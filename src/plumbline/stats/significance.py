"""Decides whether a distance from a reference is significant: one rule over the tests of items, seeds and both.

Source: ours. All p-values are corrected for the tests made; `plumbline.stats.item_noise` has what they are of.
"""

from __future__ import annotations

import math

#: The level of every test.
LEVEL = 0.05
BETTER, WORSE = "better", "worse"
ITEM_SAMPLING, SEED_VARIANCE = "not significant (item sampling)", "not significant (seed variance)"
NO_ITEM_ERROR, BASELINE_SEEDS = "inconclusive (no item error)", "inconclusive (baseline seeds)"

#: The rule as it stands under a table.
RULE = (
    "Significance, the first that holds (level 0.05, p-values after Bonferroni): not significant (item sampling), if "
    "other items could undo the difference (p, items); better or worse, if other seeds and other items together could "
    "not (p, seeds and items); not significant (seed variance), if not even z, which takes σ as known, stands out (p "
    "Bonferroni); else inconclusive (baseline seeds): z stands out, but with so few seeds of the reference σ is not "
    "known well enough. Where the error of the items is not known: inconclusive (no item error)."
)


def significance(delta: float, *, p_items: float, p_both: float, p_z: float) -> str:
    """Return the label of a difference `delta` (higher is better) from a reference.

    Args:
        delta: the difference; 0 is not significant.
        p_items: corrected p of these runs on other items; NaN if it is not known.
        p_both: corrected p on other seeds and other items; NaN without a noise floor.
        p_z: corrected p of the normal z, which takes mean and spread of the reference as known; NaN as p_both.
    """
    if delta == 0 or p_items > LEVEL:
        return ITEM_SAMPLING
    if math.isnan(p_items):
        return NO_ITEM_ERROR
    if p_both <= LEVEL:
        return BETTER if delta > 0 else WORSE
    if p_z > LEVEL:
        return SEED_VARIANCE
    return BASELINE_SEEDS
