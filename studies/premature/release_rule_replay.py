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


def replay(logged: list[tuple[int, float, float]], release_rule: ReleaseRule, steps: int) -> RuleReplay:
    """What `release_rule` makes of the scores of a run of `steps` steps."""
    points = list(apply_rule(logged, release_rule, steps))
    start, end = round(release_rule.window_start * steps), round(release_rule.window_end * steps)
    release = next((point for point in points if point.released), None)
    crossing = next((point.step for point in points if start <= point.step <= end and point.score >= point.limit), None)
    released = find_release_step(logged, release_rule, steps)
    return RuleReplay(
        release=math.nan if released is None else released / steps,
        crossing=math.nan if crossing is None else crossing / steps,
        forced=release is not None and release.counter < release_rule.patience,
    )


def read_release(run_values: RunValues, key: str | None) -> dict[str, Any]:
    """What the run itself says of its release: the step, its fraction of training, and why; empty if it has none."""
    reports = run_values.frames.outcomes.get(key or "", {}).get("interventions") or [{}]
    return next((report for report in reports if "released" in report), {})


def find_maturity(run_values: RunValues, key: str | None, *, from_window: bool = True) -> float:
    """The first probe point, of those from the window's start on or of all, at which the lower half copies (Figure 3A;
    interpretation `maturity_event`)."""
    if key is None:
        return math.nan
    release_rule = rule(run_values.study.runs[key].spec.model.context)
    score, null = (run_values.curve(key, "lower_copy", "model", column) for column in ("value", "null"))
    limit = release_rule.limit
    fractions = [fraction for fraction in score.index if fraction >= release_rule.window_start or not from_window]
    return next((float(fraction) for fraction in fractions if score[fraction] >= limit(null[fraction])), math.nan)
