"""Writes the sentences of a screen: the one to quote, and what came out for each level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plumbline.core.formats import format_count
from plumbline.verdict.formatting import (
    describe_effect,
    format_p,
    format_percent,
    format_value,
    join_with_and,
    quote,
    strip_markup,
)
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen.screen_design import WITH, name_level
from plumbline.verdict.screen.screen_effects import INTERVAL, Effect
from plumbline.verdict.screen.screen_terms import ScreenTerms

if TYPE_CHECKING:
    from plumbline.verdict.screen.screen_course import ScreenDecision

#: Levels that a sentence names.
MOST_NAMED = 8


def write_sentence(decision: ScreenDecision) -> str:
    """Write the sentence to quote."""
    terms, effects = decision.terms, decision.effects
    assert effects is not None  # as `advance` has made sure
    judged = format_count(len(effects.effects), "idea" if _are_ideas(decision) else "level")
    rows = decision.stopped_at or len(decision.design.rows)
    size = strip_markup(terms.size)
    head = f"At {size}, of" if size else "Of"
    head = f"{head} {judged} in one design of {rows} runs"
    errors = [effect.error for effect in effects.effects if not math.isnan(effect.error)]
    error = format_value(max(errors), max(errors))
    if not decision.chosen:
        return (
            f"{head}, none gains beyond noise in {quote(terms.metric)} (an effect's standard error: {error} at most)."
        )
    names = [name_level(level) for level in decision.chosen]
    listed = join_with_and(
        names if len(names) <= MOST_NAMED else [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more"]
    )
    gains = "gains" if len(names) == 1 else "gain"
    head = f"{head}, {listed} {gains} in {quote(terms.metric)}"
    if decision.confirmation is None:
        return f"{head}; that is not decided: the fresh runs of them together have no values."
    difference = decision.confirmation
    together = describe_effect(difference.gain, terms.metric, difference.error, higher=terms.higher)
    unit = f" {strip_markup(terms.unit)}" if terms.unit else ""
    ends = " to ".join(format_value(end, difference.error) for end in difference.interval(INTERVAL))
    word = "confirmed" if decision.verdict == Outcome.KEEP else "not confirmed"
    subject = "it" if len(names) == 1 else "the set"
    return (
        f"{head}; against fresh runs of the baseline {subject} {together}{unit} "
        f"({format_percent(INTERVAL)} interval {ends}{unit}; one-sided p = {format_p(difference.p)}, "
        f"{terms.fresh_runs} runs each): {word}."
    )


def _are_ideas(decision: ScreenDecision) -> bool:
    return all(factor.levels[1:] == (WITH,) for factor in decision.design.factors)


def describe_level(
    terms: ScreenTerms, name: str, effect: Effect | None, verdict: Outcome, *, crashed: bool, chosen: bool
) -> str:
    """State what came out for one level, as the ledger has it."""
    if crashed:
        return f"{quote(name)} makes its runs crash, and left the design."
    if effect is None or math.isnan(effect.error):
        return f"{quote(name)} cannot be judged by the runs of this screen."
    unit = f" {strip_markup(terms.unit)}" if terms.unit else ""
    ends = f"{format_value(effect.low, effect.error)} to {format_value(effect.high, effect.error)}{unit}"
    does = describe_effect(effect.gain, terms.metric, effect.error, higher=terms.higher)
    known = f"{does}{unit} as an average over the others ({format_percent(INTERVAL)} interval of the gain {ends})"
    if not chosen:
        return f"{quote(name)} {known}: not chosen."
    end = {Outcome.KEEP: "confirmed", Outcome.DISCARD: "not confirmed"}.get(verdict, str(verdict))
    return f"{quote(name)} {known}: one of the set, which is {end} by fresh runs."
