"""Checks that both arms were asked the same: by prompts, shots and versions of items, or by what runs print.

Where what models were asked differs, item by item as lm-eval's files state it, a difference of scores says nothing of
the models, and there is no verdict. What differs without changing a question is told; what the files do not say is
named as not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, ItemEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.sources.lm_eval_items import RUN_SETTINGS, TASK_SETTINGS

#: Which items a run took, and with what program, changes no question: the items themselves are compared.
TOLD = ("limit", "version of lm-eval")
#: What every prompt shows: where all prompts are known to be the same, it need not be known.
IN_PROMPTS = ("shots", "chat template", "system instruction", "few-shot examples as turns", "hash of the task")


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse models that were not asked the same and runs that were evaluated on another number of something.

    Differences that change no question are told, and so are settings that differ: they are what a change is.
    """
    arm_names = (arms.candidate, arms.baseline)
    if arms.models:
        return _compare_questions([arms.label(arm) for arm in arm_names], *(arms.models[arm] for arm in arm_names))
    ours, theirs = map(arms.runs_of, arm_names)
    if not any(all(side and getattr(side[0], name) for side in (ours, theirs)) for name in ("settings", "evaluation")):
        return not_known("printed settings and the size of the evaluation")
    from plumbline.verdict.comparability.settings_comparison import SHOWN, compare_with_earlier  # a dozen patterns

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


def _compare_questions(names: Sequence[str], ours: Evidence, theirs: Evidence) -> CheckAnswer:
    """Compare the tasks that both models were scored on; `names`: of the two, for a reader."""
    notes, unknown, refusals = list[str](), dict[str, None](), list[str]()
    if ours.model and ours.model == theirs.model:
        notes.append(f"both folders name one model, {quote(ours.model[:200])}")
    for side, model in zip(names, (ours, theirs)):
        if not model.model and (model.dates or 0) > 1:
            unknown[f"whether the files of {model.dates} dates in {quote(side)} are of one model"] = None
    for task in sorted(ours.items.keys() & theirs.items.keys()):
        settings = [(model.asked or {}).get(task, {}) for model in (ours, theirs)]
        values_by_setting = {
            setting: [each[setting] for each in settings if setting in each]
            for setting in (*TASK_SETTINGS, *RUN_SETTINGS)
        }
        differ = {setting: values for setting, values in values_by_setting.items() if len(set(values)) > 1}
        items = {
            setting: _count_differing_items(setting, ours.items[task], theirs.items[task])
            for setting in ("prompt", "target")
        }
        if differing := [*_list_differing_questions(differ, items)]:
            refusals.append(
                f"{quote(names[0])} and {quote(names[1])} were not asked the same in {quote(task)}, they differ in "
                f"{join_with_and(differing)}"
            )
        for setting in TOLD:
            if setting in differ:
                difference = f"{quote(names[0])} and {quote(names[1])} differ in the {setting} of {quote(task)}"
                notes.append(f"{difference}: {_quote_both(differ[setting])}")
        unknown |= {f"{setting}s": None for setting, number in items.items() if number is None}
        same_prompts = items["prompt"] == 0
        lacking = [
            setting
            for setting, values in values_by_setting.items()
            if len(values) < 2 and setting not in (*TOLD, "hash of the task")
        ]
        unknown |= dict.fromkeys(setting for setting in lacking if not (same_prompts and setting in IN_PROMPTS))
    if refusals:
        return refuse(f"{'; '.join(refusals)}; score both with the same version of lm-eval, tasks, shots and templates")
    if unknown:
        notes.append(f"not known, as the files do not say it: {join_with_and([*unknown])}")
    return tell("; ".join(notes)) if notes else holds("prompts, targets, shots and versions are the same")


def _list_differing_questions(settings: Mapping[str, Sequence[str]], items: Mapping[str, int | None]) -> Iterator[str]:
    """What makes two questions different: settings, and the prompts and targets of items."""
    for setting, values in settings.items():
        if setting not in TOLD:
            yield f"the {setting}: {_quote_both(values)}"
    for setting, number in items.items():
        if number:
            yield f"the {setting}s of {format_count(number, 'item')}"


def _count_differing_items(
    attribute: str, ours: Mapping[str, ItemEvidence], theirs: Mapping[str, ItemEvidence]
) -> int | None:
    """On how many items of a task the prompts, or the targets, differ; None if it is not known of every item."""
    count, all_known = 0, True
    for key in ours.keys() & theirs.keys():
        ours_value, theirs_value = getattr(ours[key], attribute), getattr(theirs[key], attribute)
        if (
            not ours_value
            or not theirs_value
            or (ours_value.partition(":")[0] != theirs_value.partition(":")[0] and attribute == "prompt")
        ):
            all_known = False
        else:
            count += ours_value != theirs_value
    return count if all_known or count else None


def _quote_both(values: Sequence[str]) -> str:
    return " and ".join(quote(value[:60]) for value in values)
