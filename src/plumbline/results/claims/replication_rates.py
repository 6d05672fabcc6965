"""Reads how often each claim would be judged as reproduced if the paper were right, and if nothing differed.

A verdict alone does not show how hard the claim is: with the paper's own numbers as the truth and its own noise, a sign
inside the noise is wrong in nearly half of all replications. `benchmarks/claim_rates` draws such replications
and writes the rates to a study's ``replication_rates.yaml``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from plumbline.core.structs import ClosedStruct
from plumbline.specs.field_types import Fraction, WholeNumber
from plumbline.specs.study_folders import RATES
from plumbline.specs.yaml_files import read_struct

#: Columns of the claims file.
COLUMNS = (
    "reproduced_if_paper_right",
    "partly_if_paper_right",
    "reproduced_if_nothing_differs",
    "partly_if_nothing_differs",
)


class ClaimRates(ClosedStruct, frozen=True, kw_only=True):
    """Shares of the drawn replications in which a claim is judged as reproduced, and as partly reproduced."""

    perfect_reproduced: Fraction
    perfect_partly: Fraction
    null_reproduced: Fraction
    null_partly: Fraction


class StudyRates(ClosedStruct, frozen=True, kw_only=True):
    """The rates of a study's claims.

    `draws` a world, from `seed`; `noise`: what is drawn and how large it is; `not_drawn`: claim -> why it has no rate;
    `null_agrees`: claim -> why a world in which nothing differs agrees with it.
    """

    draws: WholeNumber
    seed: WholeNumber
    noise: list[str]
    claims: dict[str, ClaimRates]
    not_drawn: dict[str, str]
    null_agrees: dict[str, str]

    def columns(self, claim: str) -> dict[str, str]:
        """Write a claim's rates for the claims file: COLUMNS, empty if it has none."""
        rates = self.claims.get(claim)
        if rates is None:
            return dict.fromkeys(COLUMNS, "")
        shares = (rates.perfect_reproduced, rates.perfect_partly, rates.null_reproduced, rates.null_partly)
        return dict(zip(COLUMNS, (f"{share:.3f}" for share in shares), strict=True))

    def summary(self, verdicts: Mapping[str, str]) -> list[str]:
        """Write how many of all claims a perfect replication would reproduce, and how many were reproduced here.

        `verdicts`: claim id -> verdict.
        """
        count = len(self.claims)
        if not count:
            reasons = dict.fromkeys(self.not_drawn.values())
            return [f"What a perfect replication would get is not drawn: {'; '.join(reasons)}."] if reasons else []
        perfect, partly, null, null_partly = (
            math.fsum(getattr(rates, name) for rates in self.claims.values())
            for name in ("perfect_reproduced", "perfect_partly", "null_reproduced", "null_partly")
        )
        counts = Counter(verdicts.get(name, "not tested") for name in self.claims)
        agrees = len(set(self.null_agrees) & set(self.claims))
        verdict_counts = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
        return [
            f"Of {count} claims of trained models whose runs can be drawn, a perfect replication (the printed numbers "
            f"are the truth, with noise) reproduces {perfect:.1f} on average and {partly:.1f} partly; a world in which "
            f"no model differs from its reference reproduces {null:.1f} and {null_partly:.1f} partly (claims that "
            f"agree with such a world: {agrees}); here: {verdict_counts}. ({self.draws:,} draws a world)",
            *(f"Drawn: {line}." for line in self.noise),
        ]


#: Of a study for which nothing was drawn.
NONE = StudyRates(draws=0, seed=0, noise=[], claims={}, not_drawn={}, null_agrees={})


def read(study_folder: Path) -> StudyRates:
    """Read a study's rates; no claim has one if the study has no such file.

    Raises:
        PlumblineError: the file has an unknown key or a value of the wrong type.
    """
    path = study_folder / RATES
    return read_struct(path, StudyRates) if path.exists() else NONE
