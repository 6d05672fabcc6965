"""Judges one model against another on the same items of the same tasks, item by item.

What is tested is these two models on other items of the kind: not whether training again would give the same, for which
there are seeds. The statistic is the mean over tasks of the mean difference of an item; its error is that of the
differences, so that how hard an item is drops out. Of one task whose values are right or wrong, and without a minimum
gain, McNemar's exact test of the items on which the models differ decides: it needs no large sample.

Whether both were asked the same is a check of comparability (`plumbline.verdict.comparability.same_questions`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from plumbline.core.errors import PlumblineError
from plumbline.stats.sample_spread import sample_deviation
from plumbline.verdict.comparison_terms import POWER, ComparisonTerms
from plumbline.verdict.evidence import ItemEvidence
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.power import ComparisonDesign, count_seeds, upper_tail

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
    excess = gain - terms.minimum_gain
    p = mcnemar(tasks[0].better, tasks[0].worse) if exact else upper_tail(excess / error, freedom)
    design = ComparisonDesign(error, freedom, terms.alpha / tries)
    reach, corrected = design.critical * error, min(1.0, tries * p)
    next_design = ComparisonDesign(1.0, math.inf, terms.alpha / (tries + 1))
    multiple = count_seeds(excess, error, next_design, POWER, plan="goal") if excess > 0 else None
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
        items_more=multiple,
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
