"""Makes the arms of a comparison from their runs alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence


def compare(theirs: Iterable[RunEvidence], ours: Iterable[RunEvidence], **terms: Any) -> ComparedArms:
    """Compare `new` with `base`, whose runs have the seeds 0, 1, ...; `terms`: other fields of the arms."""
    runs = {arm: {str(seed): run for seed, run in enumerate(side)} for arm, side in (("base", theirs), ("new", ours))}
    return ComparedArms(evidence=Evidence(metric="loss", runs=runs), baseline="base", candidate="new", **terms)
