"""The Markdown of what is recorded."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import FAILED, GOES_ON, NO_MEMORY, MeasuredRows


def page(state: MeasuredRows, setting: SectionCall, modules: Mapping[str, str]) -> str:
    """All sections (name -> module), rows that have no numbers named with their reasons."""
    machine = state.content["machine"]
    rehearsal = setting.rehearsal
    lines = [f"# GPU check, {machine.get('device', 'unknown device')}", ""]
    if rehearsal:
        lines += [f"**This is a {rehearsal}.**", ""]
    lines += ["; ".join(f"{key} {value}" for key, value in machine.items() if value is not None) + ".", ""]
    commits = state.content.get("commits", [])
    if len(commits) > 1:
        lines += [f"Rows were measured at the commits {', '.join(str(commit) for commit in commits)}.", ""]
    lines += [f"`{command(setting)}`", ""]
    for name, module in modules.items():
        section = importlib.import_module(module)
        lines += [f"## {section.TITLE}" + (f" ({rehearsal})" if rehearsal else ""), ""]
        body = section.page(state)
        lines += [*body, ""] if body else []
        lines += [*_standing(state, name), ""]
    return "\n".join(lines)


def command(setting: SectionCall) -> str:
    """How such a page is made."""
    if setting.rehearsal is None:
        return "make gpu-check"
    return f"python -m benchmarks.gpu_check --device {setting.device} --sizes {setting.sizes}"


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A table, columns of numbers to the right; None is a dash. Without rows: nothing."""
    head, body = list(columns), [list(row) for row in rows]
    if not body:
        return []
    right = [all(value is None or _number(value) for value in column) for column in zip(*body, strict=True)]
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


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _standing(state: MeasuredRows, name: str) -> list[str]:
    """How far the section is, and the rows that have no numbers."""
    entry = state.section(name)
    planned, missing = entry["planned"], state.missing(name)
    if planned is None:
        return [f"Not measured: {entry['ended'] or 'not reached yet'}."]
    lines = [
        f"Finished, {len(planned)} rows."
        if not missing
        else f"{len(planned) - len(missing)} of {len(planned)} rows; {entry['ended']}."
    ]
    if ahead := entry.get("ahead"):
        lines.append(
            f"{ahead['rows']} rows were compiled ahead by {ahead['processes']} processes side by side, in "
            f"{ahead['seconds']:.0f} s" + (f"; {ahead['unfinished']} did not finish." if ahead["unfinished"] else ".")
        )
    for status in (NO_MEMORY, FAILED, GOES_ON):
        lines += [f"- {status}: {key}: {row.get('reason', '')}" for key, row in state.rows(name, status).items()]
    return lines
