"""Judges one model against another on the same items of the same tasks, item by item.

What is tested is these two models on other items of the kind: not whether training again would give the same, for which
there are seeds. The statistic is the mean over tasks of the mean difference of an item; its error is that of the
differences, so that how hard an item is drops out. Of one task whose values are right or wrong, and without a minimum
gain, McNemar's exact test of the items on which the models differ decides: it needs no large sample.

Where what was asked differs, a difference of scores says nothing of the models, and there is no verdict. What differs
without changing a question is told; what the files of lm-eval do not say is named as not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.stats.sample_spread import sample_deviation
from plumbline.verdict.comparison_terms import POWER, ComparisonTerms
from plumbline.verdict.evidence import Evidence, ItemEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.power import ComparisonDesign, count_seeds, upper_tail
from plumbline.verdict.seed_values import CannotBeJudgedError
from plumbline.verdict.sources.lm_eval_items import RUN_SETTINGS, TASK_SETTINGS

#: task -> item -> value, of one model.
Items = Mapping[str, Mapping[str, ItemEvidence]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDifference:
    """A task: its items, both means, the gain and its standard error, and on how many items either is better."""

    task: str
    items: int
    mean: float
    mean_baseline: float
    gain: float
    error: float
    better: int
    worse: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemComparison:
    """The judgement of a model against another, by item. Gains count upwards when better.

    Attributes:
        gain, error: the mean over tasks, and its standard error.
        exact: whether McNemar's exact test decided.
        p: one-sided; p_corrected is it times the tries.
        low, high: bounds of the gain, each one-sided at 1 - alpha / tries.
        items_more: how many times the items would find a gain as large as the seen one; None if there is none.
    """

    name: str
    baseline: str
    tasks: tuple[TaskDifference, ...]
    gain: float
    error: float
    freedom: float
    exact: bool
    p: float
    tries: int
    p_corrected: float
    low: float
    high: float
    items_more: float | None
    outcome: Outcome
    terms: ComparisonTerms


def judge_items(
    name: str, method: Items, baseline_name: str, baseline: Items, terms: ComparisonTerms, *, tries: int = 1
) -> ItemComparison:
    """Judge a model against another by item.

    Raises:
        CannotBeJudgedError: the two never differ.
        PlumblineError: they were not scored on the same tasks and items.
    """
    if terms.sigma is not None or terms.paired:
        raise PlumblineError("items are paired as they are, and tell their own noise; leave out --paired and --sigma")
    if different := sorted(method.keys() ^ baseline.keys()):
        raise PlumblineError(f"not both models were scored on {', '.join(different)}; score both, or remove its files")
    tasks, spread = [], []
    for task in sorted(method):
        ours, theirs = _pair_items(task, method[task], baseline[task])
        difference = terms.sign * (ours - theirs)
        largest = max(float(np.abs(side).max()) for side in (ours, theirs))
        if len(difference) < 2:
            raise CannotBeJudgedError(f"{task} has one item: there is no spread between items")
        tasks.append(
            TaskDifference(
                task=task,
                items=len(difference),
                mean=float(ours.mean()),
                mean_baseline=float(theirs.mean()),
                gain=float(difference.mean()),
                error=sample_deviation(difference, largest) / math.sqrt(len(difference)),
                better=int((difference > 0).sum()),
                worse=int((difference < 0).sum()),
            )
        )
        spread.append(set(np.unique(np.concatenate([ours, theirs])).tolist()) <= {0.0, 1.0})
    error = math.sqrt(sum(each.error**2 for each in tasks)) / len(tasks)
    if not error > 0:
        raise CannotBeJudgedError(
            f"{name!r} and {baseline_name!r} differ equally on every item: are these the same model?"
        )
    gain = sum(each.gain for each in tasks) / len(tasks)
    freedom = float(sum(each.items - 1 for each in tasks))
    exact = len(tasks) == 1 and all(spread) and terms.minimum_gain == 0
    beyond = gain - terms.minimum_gain
    p = mcnemar(tasks[0].better, tasks[0].worse) if exact else upper_tail(beyond / error, freedom)
    design = ComparisonDesign(error, freedom, terms.alpha / tries)
    reach, corrected = design.critical * error, min(1.0, tries * p)
    again = ComparisonDesign(1.0, math.inf, terms.alpha / (tries + 1))
    more = count_seeds(beyond, error, again, POWER, plan="goal") if beyond > 0 else None
    target_gain = terms.asked_gain
    outcome = Outcome.UNDECIDED
    if corrected <= terms.alpha:
        outcome = Outcome.KEEP
    elif gain + reach <= terms.minimum_gain or (target_gain is not None and gain + reach < target_gain):
        outcome = Outcome.DISCARD
    return ItemComparison(
        name=name,
        baseline=baseline_name,
        tasks=tuple(tasks),
        gain=gain,
        error=error,
        freedom=freedom,
        exact=exact,
        p=p,
        tries=tries,
        p_corrected=corrected,
        low=gain - reach,
        high=gain + reach,
        items_more=more,
        outcome=outcome,
        terms=terms,
    )


def mcnemar(better: int, worse: int) -> float:
    """Compute McNemar's exact one-sided p: the chance of so many items or more for one model, of those that differ."""
    return 1.0 if better == 0 else float(bdtr(worse, better + worse, 0.5))


def _pair_items(
    task: str, ours: Mapping[str, ItemEvidence], theirs: Mapping[str, ItemEvidence]
) -> tuple[np.ndarray, np.ndarray]:
    if ours.keys() != theirs.keys():
        odd = sorted(ours.keys() ^ theirs.keys())
        raise PlumblineError(
            f"{task}: {len(odd)} items are of one model only (doc_id {odd[0]}); score both with the same --limit"
        )
    for key, item in ours.items():
        if item.document and theirs[key].document and item.document != theirs[key].document:
            raise PlumblineError(f"{task}, doc_id {key}: the two models read different documents (doc_hash)")
    order = sorted(ours)
    return np.array([ours[key].value for key in order]), np.array([theirs[key].value for key in order])


#: Which items a run took, and with what program, changes no question: the items themselves are compared.
TOLD = ("limit", "version of lm-eval")
#: What every prompt shows: where all prompts are known to be the same, it need not be known.
IN_PROMPTS = ("shots", "chat template", "system instruction", "few-shot examples as turns", "hash of the task")


@dataclass(frozen=True, kw_only=True, slots=True)
class SameQuestions:
    """What stands next to a verdict: `notes` on what differs or was chosen, and what is not known."""

    notes: tuple[str, ...]
    not_known: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Both in a line; empty if there is nothing to say."""
        unknown = f"Not known, as the files do not say it: {join_with_and(self.not_known)}." if self.not_known else ""
        return " ".join([*self.notes, unknown]).strip()


def compare_questions(names: Sequence[str], ours: Evidence, theirs: Evidence) -> SameQuestions:
    """Compare the tasks that both models were scored on.

    Raises:
        CannotBeJudgedError: a task was not asked in the same way.
    """
    notes, not_known = [*ours.notes, *theirs.notes], dict[str, None]()
    if ours.model and ours.model == theirs.model:
        notes.append(f"Both folders name one model, {quote(ours.model[:200])}.")
    for side, model in zip(names, (ours, theirs)):
        if not model.model and (model.dates or 0) > 1:
            not_known[f"whether the files of {model.dates} dates in {quote(side)} are of one model"] = None
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
        others = [f"the {setting}s of {format_count(number, 'item')}" for setting, number in items.items() if number]
        refused = [
            f"the {setting}: {_quote_both(values)}" for setting, values in differ.items() if setting not in TOLD
        ] + others
        if refused:
            raise CannotBeJudgedError(
                f"{quote(names[0])} and {quote(names[1])} were not asked the same in {quote(task)}, they differ in "
                f"{join_with_and(refused)}; score both with the same version of lm-eval, tasks, shots and templates"
            )
        for setting in TOLD:
            if setting in differ:
                both = f"{quote(names[0])} and {quote(names[1])} differ in the {setting} of {quote(task)}"
                notes.append(f"{both}: {_quote_both(differ[setting])}.")
        not_known |= {f"{setting}s": None for setting, number in items.items() if number is None}
        same_prompts = items["prompt"] == 0
        lacking = [
            setting
            for setting, values in values_by_setting.items()
            if len(values) < 2 and setting not in (*TOLD, "hash of the task")
        ]
        not_known |= dict.fromkeys(setting for setting in lacking if not (same_prompts and setting in IN_PROMPTS))
    return SameQuestions(notes=tuple(notes), not_known=tuple(not_known))


def _count_differing_items(
    attribute: str, ours: Mapping[str, ItemEvidence], theirs: Mapping[str, ItemEvidence]
) -> int | None:
    """On how many items of a task the prompts, or the targets, differ; None if it is not known of every item."""
    differ, all_known = 0, True
    for key in ours.keys() & theirs.keys():
        ours_value, theirs_value = getattr(ours[key], attribute), getattr(theirs[key], attribute)
        if (
            not ours_value
            or not theirs_value
            or (ours_value.partition(":")[0] != theirs_value.partition(":")[0] and attribute == "prompt")
        ):
            all_known = False
        else:
            differ += ours_value != theirs_value
    return differ if all_known or differ else None


def _quote_both(values: Sequence[str]) -> str:
    return " and ".join(quote(value[:60]) for value in values)
