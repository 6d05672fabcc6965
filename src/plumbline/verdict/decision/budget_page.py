"""Writes the page of how a gain goes on with the budget: the sentence, the picture, gains, runs, what it stands on.

Next to the page (`x.md`) stand its picture (`x.svg`) and every number of it (`x.json`), from which it is made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import read_json
from plumbline.core.formats import format_count, format_percent, format_seconds
from plumbline.stats.gain_by_budget import GainByBudget, WelchEstimate
from plumbline.verdict.budget_picture import BudgetPicture
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.decision.budget_course import BudgetDecision, BudgetTerms, format_change, format_ends
from plumbline.verdict.decision.decision_page import write_changes
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.decision.run_table import write_run_table
from plumbline.verdict.formatting import format_p, format_value, quote, write_grid
from plumbline.verdict.page import VerdictPage, escape_tags, print_in_terminal, write_list
from plumbline.verdict.picture import PicturedGain

RULE = (
    "The gain at a budget is the difference of the means of both arms' runs there. *Turns*: a gain at the smallest "
    "budget is shown, and a loss at the largest. *Holds*: a gain{beyond} is shown at the largest budget, and also at "
    "twice that, if the gain went on by its slope. *Shrinks*: a gain at the smallest budget is shown, and a slope "
    "below 0, and it does not hold. Each part is a one-sided t test at {alpha:g} (Welch's, with the spread of each arm "
    "at each budget by itself), and a word needs both of its parts: where it is not true, it is told in at most that "
    "share of cases. The slope is that of least squares over log2 of the budget."
)
LIMITS = (
    "What is told is about these budgets. That the gain goes on by its slope beyond the largest one is an assumption, "
    "which no run shows.",
    "It is for one look after runs of a number that was fixed beforehand, all with fresh seeds. It moves no baseline.",
    "The error is as promised if runs are independent and normal; neither arms nor budgets need to spread alike "
    "(simulated: benchmarks/gain_by_budget.md).",
)


def write(decision: BudgetDecision, page: Path) -> None:
    """Write the page, its picture and its numbers."""
    make_page(decision).write(page, decision_to_json(decision))


def read(path: Path) -> BudgetDecision:
    """Read a decision from the numbers next to its page.

    Raises:
        PlumblineError: there is none.
    """
    try:
        return msgspec.convert(read_json(path), BudgetDecision)
    except msgspec.ValidationError as error:
        raise PlumblineError(
            f"{path} is no decision of an experiment at several budgets ({error}); repeat plumbline try"
        ) from None


def decision_to_json(decision: BudgetDecision) -> dict[str, Any]:
    """Every number of a decision as JSON has them, with intervals and p-values in `course`."""
    values: dict[str, Any] = json.loads(msgspec.json.encode(decision))
    values |= {"exit_code": decision.verdict.exit_code, "course": None}
    if (gain := decision.gain) is None:
        return values
    terms = decision.terms
    gains = [
        {"at": label, "budget": budget} | _to_json(each, terms)
        for label, budget, each in zip(terms.labels, terms.budgets, gain.gains)
    ]
    slope, beyond = _to_json(gain.slope, terms), _to_json(gain.beyond, terms)
    return values | {"course": {"level": terms.level, "gains": gains, "slope": slope, "beyond": beyond}}


def _to_json(estimate: WelchEstimate, terms: BudgetTerms) -> dict[str, float]:
    low, high = estimate.interval(terms.level)
    tails = {"p_above": estimate.p_above(), "p_below": estimate.p_below()}
    return {"value": estimate.value, "low": low, "high": high} | tails


def make_page(decision: BudgetDecision) -> VerdictPage:
    """Make the page of a decision: its sentence, its picture, and its sections as Markdown."""
    terms = decision.terms
    minimum = f" beyond the {terms.minimum_gain:g} that are required" if terms.minimum_gain else ""
    answers = collect_answers(decision)
    sections = {
        "What decides": RULE.format(beyond=minimum, alpha=terms.alpha),
        "At each budget": _write_gains(decision),
        "Runs": _write_runs(decision),
        "What it stands on": "\n\n".join(
            filter(None, (every_check.write_answers_of_methods(answers), write_changes(decision)))
        ),
        "What it cost": describe_cost(decision),
        "Ledger": escape_tags(decision.ledger),
        "Limits": write_list([*LIMITS, *map(escape_tags, decision.notes)]),
    }
    return VerdictPage(
        title=f"{quote(terms.candidate)} against {quote(terms.baseline)} at {', '.join(terms.labels)}",
        sentence=decision.sentence,
        told=list_told(decision),
        picture=make_picture(decision),
        alt="the gain at each budget and its interval, and the slope",
        sections=sections,
    )


def make_picture(decision: BudgetDecision) -> BudgetPicture:
    """State what is drawn of a decision."""
    terms, gain = decision.terms, decision.gain
    gains = [] if gain is None else list(zip(terms.labels, gain.gains))
    return BudgetPicture(
        title=f"{terms.candidate} against {terms.baseline} at {', '.join(terms.labels)}: {decision.verdict}",
        metric=terms.metric,
        interval=format_percent(terms.level),
        doublings=terms.doublings,
        gains=[
            PicturedGain(
                name=label, middle=each.value, low=each.interval(terms.level)[0], high=each.interval(terms.level)[1]
            )
            for label, each in gains
        ],
        line=None if gain is None else _find_line(gain),
    )


def _find_line(gain: GainByBudget) -> tuple[float, float]:
    """The heights of the line of least squares at the first and the last budget."""
    number = len(gain.gains)
    mean = sum(each.value for each in gain.gains) / number
    middle = sum(gain.doublings) / number
    first, last = (mean + gain.slope.value * (end - middle) for end in (gain.doublings[0], gain.doublings[-1]))
    return first, last


def _write_gains(decision: BudgetDecision) -> str:
    p = "p: one-sided, of no gain at that budget." if decision.gain is not None else ""
    return "\n\n".join(filter(None, (write_grid(*list_gains(decision)), f"{p} {describe_slope(decision)}".strip())))


def list_gains(decision: BudgetDecision) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """List the headings and the rows of the small table: a line for each budget."""
    terms, gain = decision.terms, decision.gain
    heads = ("at", "budget", "baseline", "candidate", "gain", f"{format_percent(terms.level)} interval", "p")
    rows = []
    for place, (label, budget) in enumerate(zip(terms.labels, terms.budgets)):
        each = decision.at_budgets[place] if place < len(decision.at_budgets) else None
        estimate = None if gain is None else gain.gains[place]
        digits = estimate.error if estimate is not None else 0.0
        means = [
            "none" if each is None else _format_mean(each.list_values(baseline=side), digits) for side in (True, False)
        ]
        cells = ["none"] * 3
        if estimate is not None:
            cells = [format_change(estimate, terms), format_ends(estimate, terms), format_p(estimate.p_above())]
        rows.append((label, quote(budget), *means, *cells))
    return heads, rows


def _format_mean(values: Sequence[float], error: float) -> str:
    if not values:
        return "none"
    mean = sum(values) / len(values)
    return format_value(mean, error) if error else f"{mean:.6g}"


def describe_slope(decision: BudgetDecision) -> str:
    """State the slope, the gain at twice the largest budget, and how often all intervals hold; empty without a gain."""
    terms, gain = decision.terms, decision.gain
    if gain is None:
        return ""
    joint = terms.level ** len(gain.gains)
    return (
        f"The gain changes by {format_change(gain.slope, terms)} with each doubling of the budget "
        f"({format_percent(terms.level)} interval {format_ends(gain.slope, terms)}; p = "
        f"{format_p(gain.slope.p_below())} of not falling). By that slope it is {format_change(gain.beyond, terms)} at "
        f"twice the largest budget ({format_ends(gain.beyond, terms)}; p = "
        f"{format_p(gain.beyond.p_above(terms.minimum_gain))} of no gain"
        f"{' beyond what is required' if terms.minimum_gain else ''}). No run is in two of the gains: their "
        f"{len(gain.gains)} intervals hold all together in {format_percent(joint)}."
    )


def describe_cost(decision: BudgetDecision) -> str:
    """State how many runs there are and what they took."""
    runs = [run for each in decision.at_budgets for run in each.runs]
    took = format_seconds(decision.seconds, "second")
    each = [
        f"{label} {format_seconds(sum(run.seconds or 0.0 for run in budget.runs))}"
        for label, budget in zip(decision.terms.labels, decision.at_budgets)
    ]
    return f"{format_count(len(runs), 'run')} of both arms, {took} of training ({', '.join(each)})."


def _write_runs(decision: BudgetDecision) -> str:
    terms = decision.terms
    rows = [
        ([label, quote(terms.baseline if run.arm == BASELINE else terms.candidate)], run)
        for label, each in zip(terms.labels, decision.at_budgets)
        for run in each.runs
    ]
    return write_run_table(["at", "run of"], rows, terms.metric, terms.unit)


def collect_answers(decision: BudgetDecision) -> dict[str, dict[str, CheckAnswer]]:
    """Collect the answers of the checks by budget, in the order of pages; only of budgets that were examined."""
    return {
        label: every_check.answers_from_json(every_check.answers_to_json(each.comparability))
        for label, each in zip(decision.terms.labels, decision.at_budgets)
        if each.comparability
    }


def list_told(decision: BudgetDecision) -> list[str]:
    """List the sentences next to the verdict, by the checks: once where they are the same at every budget."""
    answers = collect_answers(decision)
    by_text: dict[str, list[str]] = {}
    for label, of_budget in answers.items():
        for sentence in every_check.list_told(of_budget):
            by_text.setdefault(sentence, []).append(label)
    return [
        text if len(labels) == len(answers) else f"At {', '.join(labels)}: {text[:1].lower()}{text[1:]}"
        for text, labels in by_text.items()
    ]


def describe_refusal(answers: Mapping[str, Mapping[str, CheckAnswer]]) -> str:
    """State by which checks there is no verdict, and at which budgets; empty if none refuses."""
    by_text: dict[str, list[str]] = {}
    for label, of_budget in answers.items():
        for each in of_budget.values():
            if each.answer == Answer.REFUSES:
                by_text.setdefault(each.text, []).append(label)
    return "; ".join(f"at {', '.join(labels)}: {text}" for text, labels in by_text.items())


def print_decision(decision: BudgetDecision, page: str, *, file: TextIO | None = None) -> None:
    """Print what a terminal shows: the gain at each budget, what is told next to the verdict, and the sentence."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heads, rows = list_gains(decision)
    table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        table.add_row(*(Text(visible(cell.strip("`"))) for cell in row))
    notes = filter(None, [describe_slope(decision), *decision.notes, *list_told(decision)])
    print_in_terminal([table, Text()], notes, decision.sentence, [describe_cost(decision)], file=file)
    print(page, file=file, flush=True)
