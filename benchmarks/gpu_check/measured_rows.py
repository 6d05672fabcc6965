"""Keeps what has been measured: one JSON file, written anew, whole, after every row."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text

#: A row's status. The first two are final: such a row is not measured again unless it is requested.
MEASURED, FAILED = "measured", "failed"
#: Begun by a process that has not said how it ended; and begun, to be continued by the next call.
BEGUN, CONTINUES = "begun", "continues"


class Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row: how it stands, why, and what was measured."""

    status: str
    tries: int = 1
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
        """Planned rows without a final status."""
        if self.planned is None:
            return None
        return [key for key in self.planned if key not in self.rows or self.rows[key].status in (BEGUN, CONTINUES)]

    def having(self, status: str) -> dict[str, Row]:
        """Rows of one status by key, in the order of the plan."""
        order = [*(self.planned or ()), *self.rows]
        return {
            key: self.rows[key] for key in dict.fromkeys(order) if key in self.rows if self.rows[key].status == status
        }


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
        """The values of a section's measured rows by key."""
        return {key: row.values for key, row in self.section(name).having(MEASURED).items()}


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
    """Replace the file."""
    atomic_write_text(path, json.dumps(msgspec.to_builtins(state), indent=1, allow_nan=True))


def record(path: Path, section: str, key: str, status: str, **fields: Any) -> None:
    """Write how a row stands; its beginning is a try, and says which row a process died in."""
    state = read(path)
    rows = state.section(section).rows
    tries = rows[key].tries if key in rows else 0
    fields.setdefault("tries", tries + 1 if status == BEGUN else tries)
    rows[key] = Row(status=status, **fields)
    write(path, state)


def release(path: Path, *, retry_failed: bool = False) -> None:
    """Let rows be begun again in which another call was killed, which says nothing of them and is not a try; and, if
    requested, those that failed."""
    state = read(path)
    for section in state.sections.values():
        for key, row in [*section.rows.items()]:
            if row.status == BEGUN:
                section.rows[key] = Row(status=CONTINUES, tries=row.tries - 1, reason="its call was killed")
            elif retry_failed and row.status == FAILED:
                del section.rows[key]
    write(path, state)


def end(path: Path, name: str, reason: str) -> None:
    """Write how a section ended."""
    state = read(path)
    state.section(name).ended = f"{reason} ({time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())})"
    write(path, state)
