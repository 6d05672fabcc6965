"""Prints a decision in a terminal: a table of its runs, a line for each look, and the sentence at the end."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TextIO

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from plumbline.core.errors import visible
from plumbline.verdict.checks_words import implausible
from plumbline.verdict.decision.decision_sentences import look_line
from plumbline.verdict.decision.outcome import BASELINE, ArmRun, Decision
from plumbline.verdict.formatting import fixed

#: Columns of a terminal that does not say how many it has.
WIDTH = 80


def console(decision: Decision, closing: Sequence[str] = ()) -> Group:
    """Compose what a terminal shows of a decision; `closing`: lines after the sentence."""
    lines = [Text(look_line(look, decision.boundary)) for look in decision.looks]
    notes = [Text(visible(note), style="dim") for note in (*decision.notes, *implausible(decision.checks))]
    said = Text(visible(decision.sentence), style="bold")
    last = [Text(visible(line)) for line in closing]
    return Group(_runs(decision), Text(""), *lines, *([Text("")] if lines else []), *notes, said, *last)


def print_decision(decision: Decision, closing: Sequence[str] = (), *, file: TextIO | None = None) -> None:
    """Print what a terminal shows of a decision; into a file or pipe in 80 columns and without colours."""
    file = file or sys.stdout
    if file.isatty():
        Console(file=file, markup=False, emoji=False, highlight=False).print(console(decision, closing))
        return
    text = io.StringIO()
    Console(file=text, width=WIDTH, color_system=None, markup=False, emoji=False, highlight=False).print(
        console(decision, closing)
    )
    file.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n")


def _runs(decision: Decision) -> Table:
    terms, looks = decision.terms, decision.looks
    unit = f" ({visible(terms.unit)})" if terms.unit else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("run of", overflow="fold")
    table.add_column("seed", justify="right")
    table.add_column(f"{visible(terms.metric)}{unit}", justify="right", overflow="fold")
    if looks:
        table.add_column("sigmas better than the baseline's mean", justify="right", overflow="fold", max_width=24)
    values = decision.baseline_values
    mean = sum(value / len(values) for value in values) if values else 0.0
    roles = [*((run, "") for run in decision.runs), *((run, " (fresh)") for run in decision.fresh)]
    for run, role in roles:
        cells = [f"{_arm(run, decision)}{role}", str(run.seed), _value(run, decision)]
        if looks:
            cells.append(_sigmas(run, mean, decision))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _arm(run: ArmRun, decision: Decision) -> str:
    label = decision.terms.baseline if run.arm == BASELINE else decision.terms.candidate
    return visible(label) + (" (drift check)" if run.sentinel else "")


def _value(run: ArmRun, decision: Decision) -> str:
    if not run.has_value or run.value is None:
        return visible(run.outcome)
    return fixed(run.value, decision.looks[-1].sigma) if decision.looks else f"{run.value:.6g}"


def _sigmas(run: ArmRun, mean: float, decision: Decision) -> str:
    if not run.has_value or run.value is None:
        return ""
    gain = run.value - mean if decision.terms.higher else mean - run.value
    return f"{gain / decision.looks[-1].sigma:+.1f}"
