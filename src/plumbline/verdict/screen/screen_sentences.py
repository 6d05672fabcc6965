"""Writes the sentences of a screen: the one to quote, and what came out for each level."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plumbline.core.formats import format_percent
from plumbline.stats.fresh_runs import MeanDifference
from plumbline.verdict.formatting import describe_effect, format_p, format_value, join_with_and, quote, strip_markup
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen.screen_design import Level, name_level
from plumbline.verdict.screen.screen_effects import INTERVAL, Effect, ScreenEffects
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Levels that a sentence names.
MOST_NAMED = 8


def write_sentence(
    terms: ScreenTerms,
    effects: ScreenEffects,
    chosen: Sequence[Level],
    confirmation: MeanDifference | None,
    verdict: Outcome,
    *,
    rows: int,
    counted: str,
) -> str:
    """Write the sentence to quote; `rows`: of the design that were made; `counted`: what was judged ("13 ideas")."""
    size = strip_markup(terms.size)
    head = f"At {size}, of" if size else "Of"
    head = f"{head} {counted} in one design of {rows} runs"
    errors = [effect.error for effect in effects.effects if not math.isnan(effect.error)]
    error = format_value(max(errors), max(errors))
    if not chosen:
        return (
            f"{head}, none gains beyond noise in {quote(terms.metric)} (an effect's standard error: {error} at most)."
        )
    names = [name_level(level) for level in chosen]
    listed = join_with_and(
        names if len(names) <= MOST_NAMED else [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more"]
    )
    gains = "gains" if len(names) == 1 else "gain"
    head = f"{head}, {listed} {gains} in {quote(terms.metric)}"
    if confirmation is None:
        return f"{head}; that is not decided: the fresh runs of them together have no values."
    together = describe_effect(confirmation.gain, terms.metric, confirmation.error, higher=terms.higher)
    unit = f" {strip_markup(terms.unit)}" if terms.unit else ""
    ends = " to ".join(format_value(end, confirmation.error) for end in confirmation.interval(INTERVAL))
    runs = confirmation.df + 2  # of both arms
    each = terms.fresh_runs
    counted = f"{each} runs each" if runs == 2 * each else f"{runs} of {2 * each} runs"
    word = "confirmed" if verdict == Outcome.KEEP else "not confirmed"
    subject = "it" if len(names) == 1 else "the set"
    threshold = f" of no more than {terms.minimum_gain:g}" if terms.minimum_gain else ""
    return (
        f"{head}; against fresh runs of the baseline {subject} {together}{unit} "
        f"({format_percent(INTERVAL)} interval {ends}{unit}; one-sided p = {format_p(confirmation.p)}{threshold}, "
        f"{counted}): {word}."
    )


def describe_level(
    terms: ScreenTerms, name: str, effect: Effect | None, verdict: Outcome, *, crashed: bool, chosen: bool
) -> str:
    """State what came out for one level, as the ledger has it."""
    if crashed:
        return f"{quote(name)} makes its runs crash or diverge, and left the design."
    if effect is None or math.isnan(effect.error):
        return f"{quote(name)} cannot be judged by the runs of this screen."
    unit = f" {strip_markup(terms.unit)}" if terms.unit else ""
    ends = f"{format_value(effect.low, effect.error)} to {format_value(effect.high, effect.error)}{unit}"
    change = describe_effect(effect.gain, terms.metric, effect.error, higher=terms.higher)
    effect_text = (
        f"{change}{unit} as an average over the others ({format_percent(INTERVAL)} interval of the gain {ends})"
    )
    if not chosen:
        return f"{quote(name)} {effect_text}: not chosen."
    end = {Outcome.KEEP: "confirmed", Outcome.DISCARD: "not confirmed"}.get(verdict, str(verdict))
    return f"{quote(name)} {effect_text}: one of the set, which is {end} by fresh runs."
