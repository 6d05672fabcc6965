"""Decides when an intervention ends, by a rule over scores that were read on a grid of evaluations.

Imports no torch. The trainer follows the rule while it trains; a table replays other rules over the scores that a run
logged. Both call `apply_rule`. Sources: premature study, section 2 (the rule), appendix F (its variants).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from plumbline.core.errors import PlumblineError

#: The context length, in tokens, at which the paper states its threshold.
STATED_CONTEXT = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseEvaluation:
    """An evaluation of the release rule: a score after `step` updates with its null, and what the rule makes of it.

    `counter`: how many evaluations in a row, this one included, count as having reached `limit`.
    """

    step: int
    score: float
    null: float
    limit: float
    counter: int
    released: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseRule:
    """Options of a release; fractions are of the run's steps, and a fraction f is at step round(f x steps).

    ``online``: at the evaluation at which the score has reached its limit `patience` times in a row, counting
    evaluations inside the window only (or, by `patience_counts_before_window`, those before it as well); not before
    `window_start`, and at `window_end` in any case. ``fixed``: at `release_at`. ``never``: not at all.
    """

    release: Literal["online", "fixed", "never"]
    threshold: float = 0.005
    threshold_over_null: float = 1.4
    context: int = STATED_CONTEXT
    release_at: float = 0.03
    window_start: float = 0.03
    window_end: float = 0.12
    patience: int = 3
    patience_counts_before_window: bool = False
    ramp: float = 0.01
    every: float = 0.005

    def __post_init__(self) -> None:
        if not 0 <= self.window_start <= self.window_end <= 1:
            raise PlumblineError(
                f"interventions: window_start ({self.window_start:g}) and window_end ({self.window_end:g}) must be "
                "fractions of training, the first no larger than the second"
            )
        if not 0 <= self.release_at <= 1:
            raise PlumblineError(f"interventions: release_at ({self.release_at:g}) must be a fraction of training")
        if self.ramp < 0:
            raise PlumblineError(f"interventions: ramp ({self.ramp:g}) must be a fraction of training, 0 for none")
        if not 0 < self.every <= 1:
            raise PlumblineError(
                f"interventions: every ({self.every:g}) must be the distance of two evaluations as a fraction of "
                "training, above 0"
            )
        if self.patience < 1:
            raise PlumblineError(
                f"interventions: patience ({self.patience}) must be a number of evaluations, 1 or more"
            )

    @property
    def relative(self) -> bool:
        """Whether the limit is a multiple of the null: the stated threshold belongs to the stated context length
        alone.
        """
        return self.context != STATED_CONTEXT

    def limit(self, null: float) -> float:
        """Compute the score that must be reached where uniform attention scores `null`."""
        return self.threshold_over_null * null if self.relative else self.threshold

    def evaluations(self, total_steps: int) -> list[int]:
        """List the steps after which the score is read: the grid from 0 on, and the end of the window."""
        if self.release != "online":
            return []
        end = round(self.window_end * total_steps)
        grid = {round(number * self.every * total_steps) for number in range(int(1 / self.every) + 2)}
        return sorted({step for step in grid if step < end} | {end})

    def describe(self) -> str:
        """Say for the log until when the intervention works."""
        if self.release == "never":
            return "for the whole run"
        after = f"then a ramp over {self.ramp:.2%}" if self.ramp > 0 else "without a ramp"
        if self.release == "fixed":
            return f"until {self.release_at:.2%} of training, {after}"
        limit = (
            f"{self.threshold_over_null:g} times its null (context {self.context}; the absolute threshold is for "
            f"context {STATED_CONTEXT})"
            if self.relative
            else f"{self.threshold:g} (absolute, context {self.context})"
        )
        return (
            f"until the lower-copy score is at least {limit} at {self.patience} evaluations in a row, every "
            f"{self.every:.2%} of training, {self.window_start:.2%} at the earliest and {self.window_end:.2%} at the "
            f"latest, {after}"
        )


def apply_rule(
    scores: Iterable[tuple[int, float, float]], rule: ReleaseRule, total_steps: int
) -> Iterator[ReleaseEvaluation]:
    """Apply an online rule to each of the `scores`, which are (step, score, null) in the order of the steps.

    A score that is no number has not reached any limit.
    """
    start, end = round(rule.window_start * total_steps), round(rule.window_end * total_steps)
    counter, released = 0, False
    for step, score, null in scores:
        counts = step >= start or rule.patience_counts_before_window
        counter = counter + 1 if counts and score >= rule.limit(null) else 0
        released = released or (step >= start and counter >= rule.patience) or step >= end
        yield ReleaseEvaluation(
            step=step, score=score, null=null, limit=rule.limit(null), counter=counter, released=released
        )


def find_release_step(scores: Iterable[tuple[int, float, float]], rule: ReleaseRule, total_steps: int) -> int | None:
    """Find the step (number of updates made) after which the intervention ends; None where that has not come yet.

    Args:
        scores: (step, score, null) of the evaluations so far, in the order of the steps; a fixed rule needs none.
    """
    if rule.release == "never":
        return None
    if rule.release == "fixed":
        return round(rule.release_at * total_steps)
    end = round(rule.window_end * total_steps)
    return next(
        (min(evaluation.step, end) for evaluation in apply_rule(scores, rule, total_steps) if evaluation.released), None
    )


def ramp_share(step: int, released: int | None, rule: ReleaseRule, total_steps: int) -> float:
    """Compute how far back to normal step `step` (1-based) is: 0 until the release, then linear in steps up to 1.

    The first step after the release is already one part of the way, and the last step of the ramp is at 1.
    """
    if released is None or step <= released:
        return 0.0
    length = round(rule.ramp * total_steps)
    return 1.0 if step - released >= length else (step - released) / length
