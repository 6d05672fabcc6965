"""Holds the terms of a screen, which are settled before its first run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from plumbline.verdict.comparison_terms import CLAIM, Terms

#: How the error over the changes of a screen is controlled: the share of false ones, or any false one.
Rule = Literal["bh", "bonferroni"]
#: The level of the rule, and runs of each arm that confirm what it chose, unless others are requested.
LEVEL, FRESH_RUNS = 0.10, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenTerms(Terms):
    """Everything that is settled before the first value of a screen is seen, beside its design.

    Attributes:
        name: of the screen's page and its files.
        baseline: what every factor's first level is of, as a reader knows it.
        metric: the one that decides; `unit` is what it is counted in.
        alpha: the level of the one test of what was chosen, one-sided.
        minimum_gain: what was chosen must gain more than this together; each of it alone need not.
        rule: what chooses, at `level`.
        runs: of the design.
        fresh_runs: of what was chosen and of the baseline each, with fresh seeds.
        halfway: whether the effects are looked at after the first half of the design too, which spends half of
            `level`, and stops the design where what is chosen is clear.
        leave_one_out: whether each level that was chosen is taken out of what was chosen.
        first_seed: the seed of the first run of the design; no two runs have one seed.
        changes: factor -> what its levels change, as a page says it (`--warmup 200`, `ideas/relu2.patch`).
        trainer, budget, size, varies: as of an experiment (`ExperimentTerms`).
        equal: the measures of a run in which the arms may not differ.
    """

    name: str
    baseline: str
    metric: str
    alpha: float = CLAIM
    rule: Rule = "bh"
    level: float = LEVEL
    runs: int
    fresh_runs: int = FRESH_RUNS
    halfway: bool = False
    leave_one_out: bool = False
    first_seed: int
    changes: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    trainer: str = ""
    budget: str = ""
    size: str = ""
    varies: str = ""
    equal: tuple[str, ...] = ()
