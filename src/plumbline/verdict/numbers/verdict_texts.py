"""Writes what is the same in every verdict from numbers: its sentence, its page, and its numbers as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as quote_url

from plumbline.core.errors import visible
from plumbline.core.formats import format_count
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.formatting import quote, strip_markup
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.ledger import Ledger
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.summary_comparison import compute_rounded_p
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.page import join_sections, write_list, write_repeat
from plumbline.verdict.picture import DecisionPicture
from plumbline.verdict.runs_picture import ALT, describe_order


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictTexts:
    """A verdict as it is written: its first sentence, the whole page, and every number of it as JSON.

    `told`: sentences that stand next to the first one, by the checks of comparability and of how the source was read.
    `outcomes`: candidate -> what was said of it; of a search, the last kept change alone.
    `picture`: of the values of its runs, where the source has any.
    """

    sentence: str
    page: str
    numbers: dict[str, Any]
    outcomes: Mapping[str, Outcome]
    told: tuple[str, ...] = ()
    picture: DecisionPicture | None = None


#: Makes the verdict for a state of the ledger, in which its own entries are.
Draft = Callable[[Ledger], VerdictTexts]


def write_texts(
    request: NumbersRequest,
    ledger: Ledger,
    families: Sequence[tuple[str, str]],
    sections: Sequence[str],
    *,
    answers: Mapping[str, Answers],
    notes: Sequence[str] = (),
    limits: Sequence[str],
    numbers: Mapping[str, Any],
    outcomes: Mapping[str, Outcome],
    picture: DecisionPicture | None = None,
    arms: int = 0,
) -> VerdictTexts:
    """Write a verdict: its page with the ledger, the limits and how to repeat it at the end, and its numbers.

    Args:
        families: baseline and metric of every comparison; `tries` and `planned_tries` in the numbers are the most.
        sections: the page's title, the sentence to quote, and what stands on the page before the ledger.
        answers: method -> what the checks of comparability answered; empty where nothing was compared.
        notes: sentences of how the source was read that stand next to the first one.
        limits: what the verdict does not say.
        numbers: those of its shape.
        outcomes, picture: as of `VerdictTexts`.
        arms: how many there are, of which the picture may have some alone.
    """
    repeat_text = write_repeat("The same numbers again are not a new try.", request.repeat, request.page)
    last = "The second command checks this page against the ledger: whether lines were removed or added since."
    stands_on = every_check.write_answers_of_methods(answers)
    if picture is not None:
        image = f"![{ALT}]({quote_url(request.page.with_suffix('.svg').name)})"
        stands_on = join_sections([stands_on, describe_order(picture, arms), image]).strip()
    ends = ["## What it stands on", stands_on] if stands_on else []
    ends += ["## Ledger", _describe_tries(ledger, families), ledgers.write_statement(ledger, request.page.parent)]
    ends += ["## Limits", write_list(limits), "## How to repeat", repeat_text, last]
    shared = {
        "terms": to_json_value(request.terms),
        "sided": "one-sided",
        "families": [list(family) for family in families],
        "tries": max(ledger.count_tries(*family) for family in families),
        "planned_tries": max(ledger.count_planned_tries(*family) for family in families),
        "comparability": {method: every_check.answers_to_json(each) for method, each in answers.items()},
        "ledger": {"length": len(ledger), "head": ledger.head},
        "repeat": request.repeat,
    }
    title, sentence, *body = sections
    if size := strip_markup(request.size):
        shared["size"] = size
        sentence = f"At {size}, {sentence[:1].lower()}{sentence[1:]}"
    sentences = (*notes, *every_check.list_told_of_methods(answers))
    return VerdictTexts(
        sentence=visible(sentence),
        page=visible(join_sections([title, sentence, *sentences, *body, *ends])),
        numbers={**numbers, **shared},
        outcomes=outcomes,
        told=tuple(map(visible, sentences)),
        picture=picture,
    )


def _describe_tries(ledger: Ledger, families: Sequence[tuple[str, str]]) -> str:
    """The tries against each baseline, this page's among them."""
    sentences, counted_tries = [], 0
    for baseline, metric in families:
        tries_made, plan = ledger.count_tries_made(baseline, metric), ledger.count_planned_tries(baseline, metric)
        counted_tries += tries_made
        hint = f" {plan} were announced with --planned-tries, and are corrected for from the first on."
        if tries_made > plan > 0:
            hint = f" {plan} were announced with --planned-tries, fewer than were made."
        where = ledgers.describe_metrics(ledger, baseline, metric)
        sentences.append(
            f"{format_count(tries_made, 'try counts', 'tries count')} against {quote(baseline)} {where}, this page's "
            f"among them; every p is multiplied by {ledger.count_tries(baseline, metric)}.{hint if plan else ''}"
        )
    if count := len({entry.identity for entry in ledger.entries if entry.is_try}) - counted_tries:
        sentences.append(f"{count} more, against other baselines or beside a primary metric, are not counted here.")
    sentences.append("The page holds for this state of the ledger: after another try, rebuild it.")
    return " ".join(sentences)


def comparison_to_json(comparison: BaselineComparison) -> dict[str, Any]:
    """Convert a judgement to JSON values, with its power and the tests that decide nothing."""
    names = ("p_two_sided", "resolved", "seeds_to_decide", "runs_needed", "prediction", "welch", "pairs")
    derived = {"more" if name == "runs_needed" else name: getattr(comparison, name) for name in names}
    derived["rounded"] = compute_rounded_p(comparison)
    return {key: value for key, value in to_json_value(comparison).items() if key != "terms"} | to_json_value(derived)


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON: no infinity (a sigma that is known has no degrees of freedom, null) and no NaN
    (null).
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
