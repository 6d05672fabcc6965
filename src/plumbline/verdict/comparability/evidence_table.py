"""Writes the small table of what a verdict stands on: what runs took, their spread, their order, their nearest curves.

Every number is one that a check states; what no check knows is listed below the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.comparability.equal_budget import format_amount
from plumbline.verdict.evidence import MEASURES
from plumbline.verdict.formatting import format_p, join_with_and, quote, write_grid

NOT_KNOWN = "not known"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceRow:
    """A line of the table: of each arm where it has a number of its own, and of both together."""

    label: str
    baseline: str = ""
    candidate: str = ""
    both: str = ""


def write_evidence_table(answers: Mapping[str, CheckAnswer]) -> str:
    """Write the table of a comparison, and what is not known of its runs; empty where no check was asked."""
    rows, lacking = list_rows(answers)
    cells = [(row.label, row.baseline, row.candidate, row.both) for row in rows]
    table = write_grid(("of the runs", "baseline", "candidate", "both"), cells) if cells else ""
    return "\n\n".join(filter(None, (table, _describe_lacking(lacking))))


def write_budgets_of_methods(answers: Mapping[str, Mapping[str, CheckAnswer]]) -> str:
    """Write what the runs of many methods took, a line each, and its ratio to their baseline; `answers`: by method.

    Empty where that is known of none.
    """
    by_method = {
        method: {row.label: _join_sides(row) for row in _list_measures(each)[0]} for method, each in answers.items()
    }
    labels = list(dict.fromkeys(label for cells in by_method.values() for label in cells))
    rows = [(quote(method), *(cells.get(label, NOT_KNOWN) for label in labels)) for method, cells in by_method.items()]
    return write_grid(("method, and its runs against the baseline's", *labels), rows) if labels else ""


def list_rows(answers: Mapping[str, CheckAnswer]) -> tuple[list[EvidenceRow], list[str]]:
    """List the lines of the table, and what is not known of either arm."""
    rows, lacking = _list_measures(answers)
    for check, name, make_row in (
        ("one sigma", "standard deviation", _make_spread_row),
        ("runs are independent", "trend with their order", _make_trend_row),
        ("runs are independent", "distance of the nearest curves", _make_curve_row),
    ):
        answer = answers.get(check)
        row = None if answer is None else make_row(name, answer.numbers)
        rows += [row] if row is not None else []
        # Of a paired test no spread of an arm counts, and curves that are one run end the check before any trend.
        is_lacking = answer is not None and (make_row is _make_curve_row or answer.answer == Answer.NOT_KNOWN)
        lacking += [name] if row is None and is_lacking else []
    return rows, lacking


_Numbers = Mapping[str, float | str | None]


def _list_measures(answers: Mapping[str, CheckAnswer]) -> tuple[list[EvidenceRow], list[str]]:
    """A line for each measure of what runs took, and the names of those that no run states."""
    budget = answers.get("equal budget")
    if budget is None:
        return [], []
    rows = {name: _make_measure_row(measure, f"{name}, median", budget.numbers) for measure, name in MEASURES.items()}
    return [row for row in rows.values() if row is not None], [name for name, row in rows.items() if row is None]


def _join_sides(row: EvidenceRow) -> str:
    return row.candidate if row.both == NOT_KNOWN else f"{row.candidate} ({row.both})"


def _make_measure_row(measure: str, label: str, numbers: _Numbers) -> EvidenceRow | None:
    amounts = [_read_number(numbers, f"{arm}_{measure}") for arm in ("baseline", "candidate")]
    if amounts == [None, None]:
        return None
    baseline, candidate = (NOT_KNOWN if amount is None else format_amount(measure, amount) for amount in amounts)
    ratio = _read_number(numbers, measure)
    return EvidenceRow(label=label, baseline=baseline, candidate=candidate, both=_format_ratio(ratio))


def _make_spread_row(label: str, numbers: _Numbers) -> EvidenceRow | None:
    baseline, candidate, p = (_read_number(numbers, name) for name in ("baseline", "candidate", "p"))
    if baseline is None or candidate is None:
        return None
    parts = [_format_ratio(candidate / baseline)] if baseline else []
    parts += [f"p = {format_p(p)}"] if p is not None else []
    return EvidenceRow(
        label=label, baseline=f"{baseline:.3g}", candidate=f"{candidate:.3g}", both=", ".join(parts) or NOT_KNOWN
    )


def _make_trend_row(label: str, numbers: _Numbers) -> EvidenceRow | None:
    correlation, p = (_read_number(numbers, name) for name in ("correlation", "p"))
    if correlation is None or p is None:
        return None
    return EvidenceRow(label=label, both=f"rank correlation {correlation:+.2f}, p = {format_p(p)}")


def _make_curve_row(label: str, numbers: _Numbers) -> EvidenceRow | None:
    share = _read_number(numbers, "nearest_curves")
    return None if share is None else EvidenceRow(label=label, both=f"{share:.2g} of the median distance")


def _read_number(numbers: _Numbers, name: str) -> float | None:
    number = numbers.get(name)
    return None if number is None or isinstance(number, str) else float(number)


def _format_ratio(ratio: float | None) -> str:
    if ratio is None:
        return NOT_KNOWN
    if math.isclose(ratio, 1):
        return "equal"
    return f"{100 * (ratio - 1):+.2g} %" if abs(ratio - 1) < 0.005 else f"{ratio:.3g} times"


def _describe_lacking(lacking: list[str]) -> str:
    return f"Not known of these runs: {join_with_and(lacking)}." if lacking else ""
