"""Checks that both arms were asked the same: by prompts, shots and versions of items, or by what runs print."""

from __future__ import annotations

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.item_questions import compare_questions
from plumbline.verdict.comparability.settings_comparison import SHOWN, compare_with_earlier
from plumbline.verdict.formatting import quote


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse models that were not asked the same and runs that were evaluated on another number of something.

    Differences that change no question are told, and so are settings that differ: they are what a change is.
    """
    both = (arms.candidate, arms.baseline)
    if arms.models:
        return compare_questions([arms.label(arm) for arm in both], *(arms.models[arm] for arm in both))
    ours, theirs = map(arms.runs_of, both)
    if not any(all(side and getattr(side[0], name) for side in (ours, theirs)) for name in ("settings", "evaluation")):
        return not_known("printed settings and the size of the evaluation")
    comparison = compare_with_earlier(ours, theirs, arms.may_differ)
    if comparison.other_size:
        return refuse(
            f"{quote(arms.label(arms.candidate))} was evaluated on {comparison.other_size}; evaluate both on the same"
        )
    changes = [f"{quote(arms.label(arms.candidate))} was evaluated on {size}" for size in comparison.sizes]
    if comparison.settings:
        number = format_count(len(comparison.settings), "printed setting")
        changes.append(
            f"{number} of {quote(arms.label(arms.candidate))} changed, {'; '.join(comparison.settings[:SHOWN])}"
        )
    if changes:
        return tell("; ".join(changes))
    return holds(f"{format_count(comparison.same, 'printed setting')} and every size of an evaluation are the same")
