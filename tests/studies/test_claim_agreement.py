"""No claim is reproduced, or partly so, where none of its printed values is: what holds beside them is no result.

Values are those of the world in which the paper is right; every printed one is moved far from it and keeps its sign,
and what is computed beside them (that the models differ beyond noise, say) stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.results.claims.claim_checkers import ComputedValues, check
from plumbline.results.claims.claim_registry import MissingRun
from tests.studies.test_claim_senses import STUDIES


def move(value: Any) -> Any:
    """A thousand times as far from zero; none of the names."""
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, float, np.integer, np.floating)):
        return 1000 * value or 1000
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], str):
        return [move(item) for item in value]
    return ["none"] if isinstance(value, (list, tuple)) else "none"


#: Study -> claim -> the verdict that it keeps, and what of it is not moved by this.
EXCEPT: dict[str, dict[str, tuple[str, str]]] = {
    "transfer": {
        "spearman_7": ("partly", "the sign of a statistic and the side of its p"),
        "hyper_finite_1p2b": ("partly", "the sign of a statistic, beyond two sigmas"),
    },
    "premature": {"gain_every_paired_difference": ("reproduced", "the signs of differences, beyond noise")},
    "query_free": {"mlp_transfer_cosdist": ("partly", "one of its distances is printed as a lower bound")},
}


@pytest.mark.parametrize("study", list(STUDIES))
def test_a_claim_of_whose_values_none_agrees_is_not_reproduced(study: str, tmp_path: Path) -> None:
    checks, evidence = STUDIES[study](tmp_path)
    reproduced: dict[str, str] = {}
    looked_at = 0
    for claim in evidence.published.claims():
        registered = checks[claim.id]
        try:
            computed = registered(evidence, claim) if registered.function else ComputedValues()
        except MissingRun:
            continue
        printed = set(claim.values) & set(computed.values)
        if computed.holds is not None or not printed:
            continue
        looked_at += 1
        moved = {name: move(value) if name in printed else value for name, value in computed.values.items()}
        verdict, _ = check(claim, replace(computed, values=moved), registered.compare, registered.effect)
        if verdict != "not reproduced":
            reproduced[claim.id] = verdict
    assert looked_at > 5
    assert reproduced == {claim: verdict for claim, (verdict, _) in EXCEPT.get(study, {}).items()}
