"""Writes the Markdown of what is measured: a table for each section, whose columns are the values of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.gpu_check.measured_rows import CONTINUES, FAILED, State
from benchmarks.gpu_check.sections import REHEARSAL, Section

#: A row's milliseconds, and the value by which rows are compared: with the first of the same group.
MS, GROUP, OVER_FIRST = "ms", "group", "over the first of its group"


def page(state: State, sections: Mapping[str, Section]) -> str:
    """All sections; rows that have no numbers are named with their reasons."""
    mark = f" ({REHEARSAL})" if state.rehearsal else ""
    facts = "; ".join(f"{key} {value}" for key, value in state.machine.items() if value is not None)
    lines = [f"# GPU check, {state.device}{mark}", "", f"{facts}.", ""]
    if len(state.commits) > 1:
        lines += [f"Rows were measured at the commits {', '.join(state.commits)}.", ""]
    lines += [f"`{'python -m benchmarks.gpu_check --rehearse' if state.rehearsal else 'make gpu-check'}`", ""]
    for name, section in sections.items():
        lines += [f"## {section.title}{mark}", "", *_rows(state.measured(name))]
        lines += [*_standing(state, name, section.seconds), ""]
    return "\n".join(lines)


def _rows(measured: dict[str, dict[str, Any]]) -> list[str]:
    firsts: dict[str, float] = {}
    rows = {}
    for key, values in measured.items():
        shown = {name: value for name, value in values.items() if name != GROUP and not isinstance(value, list | dict)}
        if GROUP in values:
            shown[OVER_FIRST] = values[MS] / firsts.setdefault(values[GROUP], values[MS])
        rows[key] = shown
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    body = [[key, *(row.get(column) for column in columns)] for key, row in rows.items()]
    return [*table(["row", *columns], body), ""] if body else []


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A table, columns of numbers to the right; None is a dash."""
    head, body = list(columns), [list(row) for row in rows]
    right = [{type(value) for value in column} <= {int, float, type(None)} for column in zip(*body, strict=True)]
    marks = ["---:" if numbers else "---" for numbers in right]
    lines = (head, marks, *([_cell(value) for value in row] for row in body))
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _standing(state: State, name: str, seconds: float) -> list[str]:
    """How far the section is, in how many of its seconds, and the rows that have no numbers."""
    section = state.section(name)
    if section.planned is None:
        return [f"Not measured: {section.ended}."]
    done = len(section.planned) - len(section.missing or ())
    took = sum(row.took_seconds for row in section.rows.values())
    lines = [f"{done} of {len(section.planned)} rows, {took:.0f} of {seconds:g} s: {section.ended}."]
    for status in (FAILED, CONTINUES):
        lines += [f"- {status}: {key}: {row.reason}" for key, row in section.having(status).items()]
    return lines
