"""How the made-up paper's claims are measured."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_registry import ClaimChecks, ClaimEvidence, Values

CHECKS = ClaimChecks()
#: The study needs no accessors of its own.
Evidence = ClaimEvidence


@CHECKS.of()
def wide_is_lower(evidence: ClaimEvidence, claim: PaperClaim) -> Values:
    losses = evidence.frames.runs.set_index("method")["validation_loss"]
    evidence.used |= set(evidence.frames.runs.index)
    return {"lowest": losses.idxmin()}


@CHECKS.of(scope="arithmetic")
def four_times(evidence: ClaimEvidence, claim: PaperClaim) -> Values:
    width = {run.spec.method: run.spec.model.ffn_width for run in evidence.study.runs.values()}
    return {"times": width["wide"] // width["narrow"]}
