"""Judges every claim of a study in many drawn worlds, and counts the verdicts."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims.claim_checkers import check
from plumbline.results.claims.claim_registry import ClaimChecks, ClaimEvidence, MissingRun
from plumbline.results.claims.replication_rates import ClaimRates, StudyRates
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

#: `perfect`: a replication where the printed numbers are the truth. `null`: one where every model is the reference.
World = Literal["perfect", "null"]
WORLDS: tuple[World, ...] = get_args(World)


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnStudy:
    """A study whose runs can be drawn.

    `draw`: runs of one world, as if each had been trained once more with seeds of its own; they may lie in the given
    folder. `noise`: what is drawn, how large, and where the size is from. `not_drawn`: claim -> why its runs cannot be.
    `null_agrees`: claim -> why the null world agrees with it, drawn or not.
    """

    study: Study
    published: PrintedNumbers
    checks: ClaimChecks
    evidence: type[ClaimEvidence]
    draw: Callable[[World, np.random.Generator, Path], RunFrames]
    noise: list[str]
    not_drawn: Mapping[str, str]
    null_agrees: Mapping[str, str]

    def list_claims(self) -> list[PaperClaim]:
        """List the claims of trained models whose runs can be drawn."""
        trained = {
            name for name, registered in self.checks.items() if registered.function and registered.scope == "training"
        }
        return [claim for claim in self.published.claims() if claim.id in trained and claim.id not in self.not_drawn]

    def verdicts(self, world: World, rng: np.random.Generator, claims: list[PaperClaim]) -> dict[str, str]:
        """Judge the claims in one drawn world: claim id -> verdict."""
        with tempfile.TemporaryDirectory() as folder:
            evidence = self.evidence(self.draw(world, rng, Path(folder)), self.study, self.published)
            return {claim.id: self._verdict(claim, evidence) for claim in claims}

    def _verdict(self, claim: PaperClaim, evidence: Any) -> str:
        registered = self.checks[claim.id]
        try:
            return check(claim, registered(evidence, claim), registered.compare, registered.effect)[0]
        except MissingRun as absent:
            return absent.word


def count_verdicts(study: DrawnStudy, draws: int, seed: int) -> StudyRates:
    """Draw each world so often and count how often each claim is reproduced, and how often partly."""
    claims = study.list_claims()
    counts = {world: {claim.id: Counter[str]() for claim in claims} for world in WORLDS}
    for number in range(draws):
        for place, world in enumerate(WORLDS):
            rng = np.random.default_rng([seed, place, number])
            for name, verdict in study.verdicts(world, rng, claims).items():
                counts[world][name][verdict] += 1
        if (number + 1) % max(1, draws // 20) == 0:
            print(f"{study.study.name}: {number + 1} of {draws} draws", file=sys.stderr, flush=True)
    rates = {
        claim.id: ClaimRates(**{
            f"{world}_{verdict}": counts[world][claim.id][verdict] / draws
            for world in WORLDS
            for verdict in ("reproduced", "partly")
        })
        for claim in claims
    }  # fmt: skip
    return StudyRates(
        draws=draws,
        seed=seed,
        noise=study.noise,
        claims=rates,
        not_drawn=dict(study.not_drawn),
        null_agrees=dict(study.null_agrees),
    )
