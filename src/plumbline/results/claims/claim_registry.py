"""Registers how each claim is checked: small functions, one for each claim id of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims.claim_checkers import Compare, ComputedValues
from plumbline.results.claims.claim_tolerances import Near
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

#: `training`: trained models speak, so that a small one cannot. `arithmetic`: sizes and definitions, at any preset.
Scope = Literal["training", "arithmetic"]

Values = dict[str, Any] | ComputedValues


class ClaimEvidence:
    """The evidence that claims are judged by: a study's runs and what its paper prints.

    `used` notes the runs, and the keys of the measurements, that gave a value. A study's `claims` names the class
    `Evidence`: this one, or its own class with further accessors.
    """

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        self.frames, self.study, self.published = frames, study, published
        self.used: set[str] = set()


class MissingRun(Exception):
    """Raised if a run that a claim needs gave no value.

    `word`: missing or diverged, or another one with its reason, `why`.
    """

    def __init__(self, word: str, key: str, why: str = "") -> None:
        super().__init__(why or f"{key} is {word}")
        self.word, self.key = word, key


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimCheck:
    """The way in which a claim is measured and compared; `untested` is the reason if it cannot be.

    `effect`: what must hold before anything else of the claim counts.
    """

    scope: Scope = "training"
    function: Callable[..., Any] | None = None
    untested: str = ""
    near: dict[str, Near] | Near | None = None
    compare: Compare | None = None
    effect: Compare | None = None

    def __call__(self, evidence: Any, claim: PaperClaim) -> ComputedValues:
        """Compute a claim's values by the registered function; the registered nearness applies if they have none."""
        assert self.function is not None
        got = self.function(evidence, claim)
        if not isinstance(got, ComputedValues):
            return ComputedValues(values=got, near=self.near)
        return got if got.near is not None else replace(got, near=self.near)


class ClaimChecks(dict[str, ClaimCheck]):
    """The register of a study's checks of claims: claim id -> check."""

    def of(
        self,
        *ids: str,
        scope: Scope = "training",
        near: dict[str, Near] | Near | None = None,
        compare: Compare | None = None,
        effect: Compare | None = None,
    ) -> Callable:
        """Register a function (evidence, claim) -> values for the claims `ids`, or for the claim of its name.

        `near`: how near each value must be. `compare`: the rule of `plumbline.results.claims.claim_checkers` by which
        values are compared with the printed ones, if it is not that of the claim's kind. `effect`: a rule (of
        `signs` or `statements`) without which the claim is not reproduced, whatever else agrees.
        """

        assert all(isinstance(name, str) for name in ids), "a check of its function's name is registered by of()"

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for name in ids or (function.__name__,):
                assert name not in self, f"{name} is checked twice"
                self[name] = ClaimCheck(scope=scope, function=function, near=near, compare=compare, effect=effect)
            return function

        return register

    def mark_untested(self, reasons: dict[str, str]) -> None:
        """Register claims that nothing here can check, with the reason."""
        for name, reason in reasons.items():
            assert name not in self, f"{name} is checked twice"
            self[name] = ClaimCheck(untested=reason)

    def merge(self, registers: Iterable[ClaimChecks]) -> ClaimChecks:
        """Add the checks of other registers to this one, and return it."""
        for register in registers:
            assert not set(self) & set(register), sorted(set(self) & set(register))
            self.update(register)
        return self
