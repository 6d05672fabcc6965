"""Says in words whether a distance from a reference is significant: one rule over the p-values of items, seeds and
both.

Source: ours. All p-values are corrected for the tests made; `plumbline.stats.items` defines them.
"""

from __future__ import annotations

import math

BETTER, WORSE = "better", "worse"
ITEM_NOISE, SEED_NOISE = "nothing: item noise", "nothing: seed noise"

#: The rule as it stands under a table.
RULE = (
    "Believed, the first that holds (level 0.05, p-values after Bonferroni): nothing: item noise, if other items could "
    "undo the difference (p items); better or worse, if other seeds and other items together could not (p seeds + "
    "items); nothing: seed noise, if not even z, which takes σ as known, stands out (p Bonferroni); else unsettled: "
    "z stands out, but with so few seeds of the reference σ is not known well enough."
)


def believed(
    delta: float,
    *,
    p_items: float,
    p_both: float,
    p_z: float,
    seeds: int,
    alpha: float = 0.05,
) -> str:
    """Name the significance of a difference `delta` (higher is better) from a reference of so many finished `seeds`.

    The constant `RULE` of this module states the rule in full.

    Args:
        p_items: corrected p of these runs on other items; NaN where it is not known.
        p_both: corrected p on other seeds and other items; NaN without a noise floor.
        p_z: corrected p of the normal z, which takes mean and spread of the reference as known; NaN as p_both.
    """
    if delta == 0 or p_items > alpha:
        return ITEM_NOISE
    if math.isnan(p_items):
        return "unsettled: items"
    if p_both <= alpha:
        return BETTER if delta > 0 else WORSE
    if p_z > alpha:
        return SEED_NOISE
    return f"unsettled: {seeds} {'seed' if seeds == 1 else 'seeds'}"
