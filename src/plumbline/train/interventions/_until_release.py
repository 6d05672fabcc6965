"""Shares the code of interventions that work until a model's lower layers have matured, and then end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes.lower_copy import lower_copy_score
from plumbline.train.interventions._base import Intervention, InterventionInputs
from plumbline.train.interventions._release_rule import (
    ReleaseEvaluation,
    ReleaseRule,
    apply_rule,
    find_release_step,
    ramp_share,
)
from plumbline.train.randomness import preserve_random_state

#: The name of the score in the frame of probes.
SCORE = "release_score"


class UntilRelease(Intervention):
    """Follows a release rule; a subclass uses `share` and says what it does until then.

    The lower-copy score is read on the first `sequences` of the validation pack of which no validation loss is
    computed, by the function that the probe of that name calls, before the step that it governs; it changes nothing.
    Rank 0's value decides for all ranks. It is read up to the end of the window, after the release as well, so that
    other rules can be replayed over the scores.

    Options:
        sequences: how many validation sequences the score is read on.
        The others are those of `plumbline.train.interventions._release_rule.ReleaseRule`.
    """

    held_out = "apart"

    def __init__(
        self,
        *,
        release: Literal["online", "fixed", "never"] = "online",
        threshold: float = 0.005,
        threshold_over_null: float = 1.4,
        release_at: float = 0.03,
        window_start: float = 0.03,
        window_end: float = 0.12,
        patience: int = 3,
        patience_counts_before_window: bool = False,
        ramp: float = 0.01,
        every: float = 0.005,
        sequences: int = 8,
    ) -> None:
        if sequences < 1:
            raise PlumblineError(f"interventions: sequences ({sequences}) must be 1 or more")
        self.rule = ReleaseRule(
            release=release, threshold=threshold, threshold_over_null=threshold_over_null, release_at=release_at,
            window_start=window_start, window_end=window_end, patience=patience,
            patience_counts_before_window=patience_counts_before_window, ramp=ramp, every=every,
        )  # fmt: skip
        self.sequences = sequences
        self.scores: list[tuple[int, float, float]] = []
        self.released: int | None = None

    def attach(self, run: InterventionInputs) -> None:
        """Read the sequences that the score is read on.

        Raises:
            PlumblineError: there are too few of them.
        """
        self.run, self.steps = run, run.spec.train.steps
        self.rule = replace(self.rule, context=run.spec.model.context)
        self.due = set(self.rule.evaluations(self.steps))
        self.released = find_release_step([], self.rule, self.steps)
        if self.due:
            self._read_sequences()
        run.progress.say(f"{self.name}: {self.rule.describe()}")

    def _read_sequences(self) -> None:
        pack = self.run.validation
        self.separator = pack.separator
        self.tokens_BT = torch.from_numpy(pack.rows(np.arange(self.sequences)))

    def needs_loss(self, step: int) -> bool:
        """Return True in steps before which the rule is evaluated.

        Between them the share follows from the step's number.
        """
        return step - 1 in self.due

    def begin(self, step: int) -> None:
        """Evaluate the rule after `step` - 1 updates, if it is due then."""
        updates = step - 1
        if updates not in self.due or (self.scores and self.scores[-1][0] >= updates):
            return
        self.scores.append((updates, *self.run.ranks.broadcast(self._score())))
        evaluation = list(apply_rule(self.scores, self.rule, self.steps))[-1]
        before, self.released = self.released, find_release_step(self.scores, self.rule, self.steps)
        self._log(evaluation, just_released=before is None and self.released is not None)

    def _score(self) -> tuple[float, float]:
        """Score and null on this rank; random states and the model's mode are as they were.

        Raises:
            PlumblineError: no token comes twice, so there is no such score (it is seen before the first step).
        """
        device = self.run.ranks.device
        with preserve_random_state(device):
            score, null = lower_copy_score(
                self.run.model,
                self.tokens_BT.to(device),
                precision=self.run.spec.train.precision,
                separator=self.separator,
            )
        if math.isnan(null):
            raise PlumblineError(
                f"interventions: {self.name}.sequences ({self.sequences}): no token comes twice in any of so many "
                f"sequences of {self.run.validation.path}, so there is no lower-copy score; use more of them"
            )
        return score, null

    def _log(self, evaluation: ReleaseEvaluation, just_released: bool) -> None:
        details = {"score": _finite_or_none(evaluation.score), "null": evaluation.null, "limit": evaluation.limit}
        details |= {"counter": evaluation.counter, "released": evaluation.released}
        self.run.progress.event("release_score", evaluation.step, intervention=self.name, **details)
        if just_released:
            forced = "" if evaluation.counter >= self.rule.patience else ", forced"
            self.run.progress.say(
                f"{self.name}: released after step {evaluation.step} ({evaluation.step / self.steps:.2%} of "
                f"training{forced}): lower-copy score {evaluation.score:.5f}, null {evaluation.null:.5f}, limit "
                f"{evaluation.limit:.5f}"
            )

    def share(self, step: int) -> float:
        """Compute how far back to normal step `step` is: 0 until the release, 1 from the end of the ramp on."""
        return ramp_share(step, self.released, self.rule, self.steps)

    def towards_one(self, multiplier: float, step: int) -> float:
        """Give `multiplier` until the release, then in equal parts to exactly 1."""
        share = self.share(step)
        return 1.0 if share == 1.0 else multiplier + (1.0 - multiplier) * share

    def state(self) -> dict[str, Any]:
        """Give the scores so far, which decide everything, and for people where the rule stands."""
        evaluations = list(apply_rule(self.scores, self.rule, self.steps))
        return {
            "scores": [[step, _finite_or_none(score), null] for step, score, null in self.scores],
            "counter": evaluations[-1].counter if evaluations else 0,
            "released": self.released,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the scores so far, and follow the rule over them again."""
        self.scores = [(step, math.nan if score is None else score, null) for step, score, null in state["scores"]]
        self.released = find_release_step(self.scores, self.rule, self.steps)
        assert self.released == state["released"], "the same rule over the same scores"

    def measurements(self) -> list[tuple[int, str, float, float | None]]:
        """Give the scores so far, each with its null."""
        return [(step, SCORE, score, null) for step, score, null in self.scores]

    def report(self, step: int) -> dict[str, Any]:
        """Say when the intervention ended, and why: by the ``score``, ``forced`` at the end of the window, or
        ``fixed``.
        """
        if self.released is None or self.released > step:
            return {"released": None, "fraction": None, "why": None}
        why: str = self.rule.release
        if why == "online":
            evaluation = next(
                evaluation for evaluation in apply_rule(self.scores, self.rule, self.steps) if evaluation.released
            )
            why = "score" if evaluation.counter >= self.rule.patience else "forced"
        return {"released": self.released, "fraction": self.released / self.steps, "why": why}


def _finite_or_none(value: float) -> float | None:
    """JSON has no NaN and no infinities."""
    return value if math.isfinite(value) else None
