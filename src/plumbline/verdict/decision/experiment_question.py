"""Holds what is asked of a candidate. Imports no numpy or scipy: a dry run needs no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.core.errors import UsageError
from plumbline.verdict.decision.outcome import Session

if TYPE_CHECKING:
    from plumbline.stats.sequential import Plan

#: Runs of the baseline before the first look, and of a candidate at most, unless others are asked for.
BANK, MOST = 5, 8
#: The same of a quick look, which promises a minute.
QUICK_BANK, QUICK_MOST = 3, 3
#: The first seed of the bank. Seeds of candidates, and those of pairs and claims, begin so much later.
FIRST_SEED, APART = 42, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentQuestion:
    """What is asked of a candidate. The fields are those of `ExperimentTerms` and `SequentialDesign`.

    `alpha` is what is asked of the session until `session_level` says what this candidate gets of it; `planned` are
    its candidates, where they were planned. The bank's first `bank_since` runs are not used again.
    """

    name: str
    baseline: str
    candidate: str
    metric: str
    higher: bool
    bank: int = BANK
    most: int = MOST
    alpha: float = 0.05
    min_gain: float = 0.0
    worth: float | None = 2.0
    plan: Plan = "bank"
    session: Session = "each"
    planned: int | None = None
    first_seed: int = FIRST_SEED
    bank_since: int = 0
    fresh_runs: int = 0
    unit: str = ""
    trainer: str = ""
    budget: str = ""
    size: str = ""
    varies: str = "initialisation"
    scope: str = ""
    differs: tuple[str, ...] = ()
    together: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.session == "fwer") != bool(self.planned):
            raise UsageError(
                "--session fwer needs --planned-candidates N, the candidates of the session; each takes none"
            )
