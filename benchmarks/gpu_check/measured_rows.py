"""Keeps what has been measured: a JSON file and the page that shows it, both written anew, whole, after every row."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text

#: A row's status. The first two are final; one that was cut off is begun again after those that have not been begun.
MEASURED, FAILED, CUT_OFF = "measured", "failed", "cut off"
REHEARSAL = "rehearsal on a processor, not a measurement"


class Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row: how it ended, why, and what was measured."""

    status: str
    reason: str = ""
    took_seconds: float = 0.0
    values: dict[str, Any] = {}


class Section(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A section's rows by key; `planned`: all keys, None before it has begun; `ended`: how, for the reader."""

    planned: list[str] | None = None
    rows: dict[str, Row] = {}
    ended: str = "not reached yet"

    @property
    def missing(self) -> list[str] | None:
        """Planned rows without a final status, in the order in which they are begun; None before there is a plan."""
        if self.planned is None:
            return None
        cut_off = [key for key in self.planned if key in self.rows and self.rows[key].status == CUT_OFF]
        return [key for key in self.planned if key not in self.rows] + cut_off


class State(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The rows of all sections, and the machine that they were measured on."""

    rehearsal: bool
    machine: dict[str, Any]
    commits: list[str] = []
    sections: dict[str, Section] = {}

    @property
    def device(self) -> str:
        """The name that torch gives it."""
        return str(self.machine.get("device"))

    def section(self, name: str) -> Section:
        """A section's entry, made where there is none."""
        return self.sections.setdefault(name, Section())

    def measured(self, name: str) -> dict[str, dict[str, Any]]:
        """The values of a section's measured rows by key, in the order of the plan."""
        section = self.section(name)
        rows = {key: section.rows[key] for key in section.planned or () if key in section.rows}
        return {key: row.values for key, row in rows.items() if row.status == MEASURED}


def read(path: Path) -> State:
    """Read a file of the check.

    Raises:
        PlumblineError: it is not one, or not a whole one.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError) as error:
        raise PlumblineError(f"{path}: not a state of this check ({error}); move it away, or name another") from None


def write(path: Path, state: State) -> None:
    """Replace the file, and the page next to it."""
    atomic_write_text(path, json.dumps(msgspec.to_builtins(state), indent=1, allow_nan=True))
    atomic_write_text(path.with_suffix(".md"), page(state))


def record(path: Path, section: str, key: str, status: str, **fields: Any) -> None:
    """Write how a row ended."""
    state = read(path)
    state.section(section).rows[key] = Row(status=status, **fields)
    write(path, state)


def end(path: Path, name: str, reason: str) -> None:
    """Write how a section ended."""
    state = read(path)
    state.section(name).ended = f"{reason} ({time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())})"
    write(path, state)


def page(state: State) -> str:
    """A table for each section, whose columns are the values of its rows; rows without any are named with reasons."""
    mark = f" ({REHEARSAL})" if state.rehearsal else ""
    facts = "; ".join(f"{key} {value}" for key, value in state.machine.items() if value is not None)
    lines = [f"# GPU check, {state.device}{mark}", "", f"{facts}.", ""]
    lines += [f"`make gpu-check`, at {', '.join(state.commits) or 'no commit'}", ""]
    for name, section in state.sections.items():
        measured, planned = state.measured(name), section.planned or []
        columns = list(dict.fromkeys(column for values in measured.values() for column in values))
        rows = [[key, *(values.get(column) for column in columns)] for key, values in measured.items()]
        lines += [f"## {name}{mark}", "", *(table(["row", *columns], rows) if rows else ()), ""]
        took = sum(row.took_seconds for row in section.rows.values())
        lines += [f"{len(measured)} of {len(planned)} rows measured, in {took:.0f} s: {section.ended}."]
        unmeasured = {key: row for key, row in section.rows.items() if row.status != MEASURED}
        lines += [*(f"- {row.status}: {key}: {row.reason}" for key, row in unmeasured.items()), ""]
    return "\n".join(lines)


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
