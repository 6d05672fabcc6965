"""Decides what a screen runs next, and what came out: the design, a look halfway, crashes, the chosen set, its proof.

It is a function of the terms, the design and the runs that are there, and keeps nothing: a screen that was killed goes
on from its runs. Run i of the design has the i-th seed from the first one on; fresh runs have the seeds after.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plumbline.stats.fresh_runs import MeanDifference, compare_means
from plumbline.verdict.comparability.check_answer import CheckAnswer
from plumbline.verdict.formatting import name_some
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen import screen_sentences
from plumbline.verdict.screen.design_runs import DesignRuns
from plumbline.verdict.screen.screen_design import (
    Level,
    ScreenDesign,
    name_level,
)
from plumbline.verdict.screen.screen_effects import ScreenEffects
from plumbline.verdict.screen.screen_runs import DESIGN, FRESH, LEFT_OUT, Request, ScreenRun, Step
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Runs after which crashes are looked at first; then after twice as many, and so on.
FIRST_LOOK_AT_CRASHES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """What a level gains inside the chosen set: the set's fresh runs against those of the set without it."""

    level: Level
    difference: MeanDifference


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenDecision:
    """What came out of a screen.

    Attributes:
        runs: all that were made; those of the design first, in the order of its rows.
        effects: by all runs of the design; None where nothing could be estimated.
        dropped: levels that made their runs crash, and pairs of levels that did so together.
        chosen: the levels of the set.
        confirmation: of the set against the baseline by fresh runs; None without a set or its runs.
        left_out: what each level gains inside the set, where that was asked for.
        stopped_at: the number of rows after which a look ended the design; 0 where all were made.
        to_keep: how the set is taken over, by whoever made the runs.
    """

    terms: ScreenTerms
    design: ScreenDesign
    verdict: Outcome
    runs: tuple[ScreenRun, ...]
    sentence: str = ""
    effects: ScreenEffects | None = None
    dropped: tuple[Level, ...] = ()
    clashing: tuple[tuple[Level, Level], ...] = ()
    chosen: tuple[Level, ...] = ()
    confirmation: MeanDifference | None = None
    left_out: tuple[LeftOut, ...] = ()
    stopped_at: int = 0
    comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)
    fresh_comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)
    changed_files: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    ledger: str = ""
    tries: int = 1
    to_keep: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return self.verdict.exit_code

    def verdict_of(self, level: Level) -> Outcome:
        """How the screen ended for one level: it is kept if it is in a set that fresh runs confirm."""
        if self.verdict == Outcome.CANNOT_BE_JUDGED:
            return self.verdict
        if level in self.dropped:
            return Outcome.CRASHED
        return self.verdict if level in self.chosen else Outcome.DISCARD

    def sentence_of(self, level: Level, name: str) -> str:
        """State what came out for one level."""
        effect = next((each for each in self.effects.effects if each.level == level), None) if self.effects else None
        return screen_sentences.describe_level(
            self.terms, name, effect, self.verdict_of(level), crashed=level in self.dropped, chosen=level in self.chosen
        )


def advance(
    terms: ScreenTerms, design: ScreenDesign, past: Sequence[float], runs: Sequence[ScreenRun]
) -> Step | ScreenDecision:
    """Say what is to be run next, or what came out.

    Args:
        terms: settled before the first run.
        design: as it was made.
        past: the baseline's other runs, for sigma alone.
        runs: all that were made for this screen so far, in any order.
    """
    course = DesignRuns(terms, design, past, {run.request.key: run for run in runs})
    level, stopped_at = terms.level, 0
    looks = [look for look in design.looks if look < len(design.rows)] if terms.halfway else []
    level /= 1 + len(looks)
    effects, rounds = None, 0
    while len(course.made) < len(course.design.rows) and len(course.dropped) < len(course.design.effects):
        until = _next_stop(len(course.made), len(course.design.rows), looks, list(course.probes))
        step_or_runs = course.take(course.request_rows(until))
        if isinstance(step_or_runs, Step):
            return step_or_runs
        course.made += step_or_runs
        course.drop_what_crashes()
        if len(course.made) in looks:
            effects = course.estimate(level)
            if effects is not None and is_clear(effects, course.dropped):
                stopped_at = len(course.made)
                break
        if len(course.made) == len(course.design.rows) and course.replace_lost(rounds):
            rounds += 1
    if not stopped_at:
        effects = course.estimate(level)
    decision = ScreenDecision(
        terms=terms,
        design=course.design,
        verdict=Outcome.CANNOT_BE_JUDGED,
        runs=tuple(course.made),
        effects=effects,
        dropped=tuple(course.dropped),
        clashing=tuple(course.clashing),
        stopped_at=stopped_at,
        notes=tuple(course.notes),
    )
    if effects is None or not effects.df or all(effect.gain != effect.gain for effect in effects.effects):
        return withhold(decision, course.explain_too_few_values())
    chosen_levels = tuple(effect.level for effect in effects.effects if effect.chosen)
    if not chosen_levels:
        return _finish(replace(decision, verdict=Outcome.DISCARD))
    return _prove(course, replace(decision, chosen=chosen_levels))


def _next_stop(made_rows: int, rows: int, looks: Sequence[int], probes: Sequence[int]) -> int:
    """The number of rows after which something is looked at next: crashes, or the effects halfway."""
    if ahead := [row for row in probes if row >= made_rows]:
        return max(ahead) + 1
    stop = FIRST_LOOK_AT_CRASHES
    while stop <= made_rows:
        stop *= 2
    return min([stop, rows, *(look for look in looks if look > made_rows)])


def is_clear(effects: ScreenEffects, dropped: Collection[Level] = ()) -> bool:
    """Whether what was chosen is clear of the rest: no other level may still gain as much as the least of them.

    One that was dropped is never chosen; one whose effect the runs do not tell may gain as much.
    """
    least = min((effect.gain for effect in effects.effects if effect.chosen), default=None)
    other_effects = [effect for effect in effects.effects if not effect.selected and effect.level not in dropped]
    return least is not None and all(effect.high < least for effect in other_effects)


def _prove(course: DesignRuns, decision: ScreenDecision) -> Step | ScreenDecision:
    """Run the set and the baseline with fresh seeds, and each level's set without it where that is asked for."""
    terms = course.terms
    step_or_runs = course.take(_request_fresh_runs(course, decision.chosen))
    if isinstance(step_or_runs, Step):
        return step_or_runs
    fresh, left_out_runs = ([run for run in step_or_runs if run.request.part == part] for part in (FRESH, LEFT_OUT))
    baseline, values = _list_values(fresh[::2]), _list_values(fresh[1::2])
    decision = replace(decision, runs=(*decision.runs, *fresh, *left_out_runs))
    if len(baseline) < 2:
        return withhold(decision, "fewer than two fresh runs of the baseline have a value")
    # What the set lost may have been its worst: as many of the baseline's worst are left out, for a stricter test.
    gap = terms.fresh_runs - len(values)
    best_values = sorted(baseline, reverse=terms.higher)[: len(baseline) - gap]
    if min(len(values), len(best_values)) < 2:
        return _finish(replace(decision, verdict=Outcome.UNDECIDED))
    difference = compare_means(best_values, values, higher=terms.higher, least=terms.minimum_gain)
    is_kept = difference.p <= terms.alpha / (1 + gap) and difference.gain > terms.minimum_gain
    decision = replace(decision, verdict=Outcome.KEEP if is_kept else Outcome.DISCARD, confirmation=difference)
    if gap:
        note = (
            f"{gap} of {terms.fresh_runs} fresh runs of the set have no value and may have been its worst: as many of "
            f"the baseline's worst are left out, and p must be {terms.alpha / (1 + gap):.3g} at most"
        )
        decision = replace(decision, notes=(*decision.notes, note))
    return _finish(_leave_out(decision, left_out_runs, values))


def _request_fresh_runs(course: DesignRuns, levels: Sequence[Level]) -> list[Request]:
    """Request the fresh runs of all arms in turn, so that what drifts meanwhile moves all of them alike."""
    terms, baseline = course.terms, {factor.name: factor.levels[0] for factor in course.design.factors}
    full_set = baseline | dict(levels)
    partial_sets = (
        [full_set | {name: baseline[name]} for name, _ in levels] if terms.leave_one_out and len(levels) > 1 else []
    )
    first = terms.first_seed + len(course.design.rows)
    first_left = first + 2 * terms.fresh_runs
    return [
        Request(settings=arm, seed=start + turn * len(arms) + place, part=part)
        for turn in range(terms.fresh_runs)
        for part, start, arms in ((FRESH, first, [baseline, full_set]), (LEFT_OUT, first_left, partial_sets))
        for place, arm in enumerate(arms)
    ]


def _list_values(runs: Sequence[ScreenRun]) -> list[float]:
    return [run.run.value for run in runs if run.run.has_value and run.run.value is not None]


def _leave_out(decision: ScreenDecision, runs: Sequence[ScreenRun], set_values: Sequence[float]) -> ScreenDecision:
    """Compare the set's values (`set_values`) with those of it without each level, and note where these are missing."""
    left_out, notes = list[LeftOut](), list[str]()
    for place, level in enumerate(decision.chosen if runs else ()):
        values = _list_values(runs[place :: len(decision.chosen)])
        if len(values) > 1:
            difference = compare_means(values, set_values, higher=decision.terms.higher)
            left_out.append(LeftOut(level=level, difference=difference))
        else:
            notes.append(f"what {name_level(level)} gains in the set is not known: without it runs have no value")
    return replace(decision, left_out=tuple(left_out), notes=(*decision.notes, *notes))


def _finish(decision: ScreenDecision) -> ScreenDecision:
    assert decision.effects is not None  # as `advance` has made sure
    sentence = screen_sentences.write_sentence(
        decision.terms,
        decision.effects,
        decision.chosen,
        decision.confirmation,
        decision.verdict,
        rows=sum(run.request.part == DESIGN for run in decision.runs),
        counted=decision.design.counted,
    )
    return replace(decision, sentence=sentence)


def withhold(decision: ScreenDecision, reason: str) -> ScreenDecision:
    """Withhold a verdict for a reason; what was estimated stays on the page."""
    names = name_some([name_level(level) for level in decision.chosen]) if decision.chosen else "any of them"
    sentence = f"Whether {names} gains cannot be judged: {reason.rstrip('.')}."
    return replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, sentence=sentence)


def withhold_implausible(decision: ScreenDecision, level: Level, reason: str, *, looked_at: bool) -> ScreenDecision:
    """Withhold what is confirmed where a level gains more than any modification had, unless that was looked at."""
    if looked_at:
        note = f"{name_level(level)}: {reason}. So large a gain was said to have been looked at (--accept-implausible)."
        return replace(decision, notes=(*decision.notes, note))
    sentence = f"{name_level(level)} is not taken for a gain before somebody has looked at it: {reason}."
    return replace(decision, verdict=Outcome.IMPLAUSIBLE, sentence=sentence)


def end_without_verdict(
    terms: ScreenTerms, design: ScreenDesign, runs: Sequence[ScreenRun], reason: str
) -> ScreenDecision:
    """End a screen of which nothing can be judged."""
    decision = ScreenDecision(terms=terms, design=design, verdict=Outcome.CANNOT_BE_JUDGED, runs=tuple(runs))
    return withhold(decision, reason)
