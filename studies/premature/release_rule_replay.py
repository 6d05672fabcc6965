"""Finds when the intervention lets go: what a run decided, and what other rules would have decided from the scores it
logged.

Source: premature study, section 2 and appendix F (Table 8). The rule is `plumbline.train.interventions._release_rule`,
which the trainer itself follows; nothing is trained here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from plumbline.train.interventions._release_rule import ReleaseRule, apply_rule, find_release_step

from .run_values import RunValues

#: The value under which a run's evaluations of the release rule stand among its probes.
LOGGED = "release_score"

#: The paper's threshold (section 2); at other contexts it counts as this many times the null.
THRESHOLD, OVER_NULL = 0.005, 1.4


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleReplay:
    """A rule over one run's scores: the release, and the first evaluation in the window that reaches the threshold,
    both as fractions of training (NaN: not within what was logged); whether the window's end forced the release."""

    release: float = math.nan
    crossing: float = math.nan
    forced: bool = False


def scores(run_values: RunValues, key: str | None) -> list[tuple[int, float, float]]:
    """Step, score and null of a run's evaluations, in order; none where it logged none."""
    probes = run_values.frames.probes
    mine = probes[(probes["key"] == key) & (probes["probe"] == LOGGED) & (probes["source"] == "online")]
    ordered = mine.sort_values("step")
    return list(zip(ordered["step"].astype(int), ordered["value"].astype(float), ordered["null"].astype(float)))


def rule(
    context: int, threshold: float = THRESHOLD, patience: int = 3, window: tuple[float, float] = (0.03, 0.12)
) -> ReleaseRule:
    """A rule of Table 8. At a context that is not the paper's its threshold is taken relative to the null: 0.005 is
    1.4 times it, and another threshold in proportion (interpretation `copy_threshold`)."""
    return ReleaseRule(
        release="online",
        threshold=threshold,
        threshold_over_null=OVER_NULL * threshold / THRESHOLD,
        context=context,
        window_start=window[0],
        window_end=window[1],
        patience=patience,
    )


def replay(logged: list[tuple[int, float, float]], by: ReleaseRule, steps: int) -> RuleReplay:
    """What `by` makes of the scores of a run of `steps` steps."""
    seen = list(apply_rule(logged, by, steps))
    start, end = round(by.window_start * steps), round(by.window_end * steps)
    at = next((found for found in seen if found.released), None)
    crossing = next((found.step for found in seen if start <= found.step <= end and found.score >= found.limit), None)
    released = find_release_step(logged, by, steps)
    return RuleReplay(
        release=math.nan if released is None else released / steps,
        crossing=math.nan if crossing is None else crossing / steps,
        forced=at is not None and at.counter < by.patience,
    )


def decided(run_values: RunValues, key: str | None) -> dict[str, Any]:
    """What the run itself says of its release: the step, its fraction of training, and why; empty where it has none."""
    reports = run_values.frames.outcomes.get(key or "", {}).get("interventions") or [{}]
    return next((report for report in reports if "released" in report), {})


def matured(run_values: RunValues, key: str | None, *, from_window: bool = True) -> float:
    """The first probe point, of those from the window's start on or of all, at which the lower half copies (Figure 3A;
    interpretation `maturity_event`)."""
    if key is None:
        return math.nan
    by = rule(run_values.study.runs[key].spec.model.context)
    score, null = (run_values.curve(key, "lower_copy", "model", column) for column in ("value", "null"))
    asked = [fraction for fraction in score.index if fraction >= by.window_start or not from_window]
    return next((float(fraction) for fraction in asked if score[fraction] >= by.limit(null[fraction])), math.nan)
