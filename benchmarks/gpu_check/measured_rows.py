"""What has been measured so far: one JSON file, written anew, whole, after every row."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json

FORMAT = 1
#: A row's status. The first three are final: such a row is not measured again unless `again` asks for it.
MEASURED, FAILED, NO_MEMORY = "measured", "failed", "out of memory"
#: Begun by a process that has not said how it ended; and begun, saved, to be gone on with by the next call.
BEGUN, GOES_ON = "begun", "goes on"
#: How the end of a section begins that cannot be carried out on this machine.
NOT_HERE = "not to be had here"
_FINAL = (MEASURED, FAILED, NO_MEMORY)


class MissingOnThisMachine(PlumblineError):
    """Something is not on this machine that a section needs: the same command would not go on with it."""


class MeasuredRows:
    """The rows of all sections, by section and key, and the machine that they were made on."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path, self.content = path, content

    @classmethod
    def read(cls, path: Path) -> MeasuredRows:
        """What stands in the file; nothing where there is none.

        Raises:
            PlumblineError: it is not a file of this check, or not a whole one.
        """
        if not path.exists():
            return cls(path, {"format": FORMAT, "machine": {}, "sections": {}})
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            is_valid = content["format"] == FORMAT and isinstance(content["machine"], dict) and _sections(content)
        except (ValueError, TypeError, KeyError, AttributeError, IsADirectoryError):
            is_valid = False
        if not is_valid:
            raise PlumblineError(f"{path}: not a state of this check; move it away, or name another")
        return cls(path, content)

    def told(self) -> dict[str, Any]:
        """What the calls were for that wrote it: `device`, `kind`, `sizes`, `rehearsal`.

        Raises:
            PlumblineError: it does not say.
        """
        call = self.content.get("told")
        if not isinstance(call, dict) or not {"device", "kind", "sizes", "rehearsal"} <= call.keys():
            raise PlumblineError(f"{self.path}: does not say what it was measured on (told); move it away")
        return call

    def write(self) -> None:
        """Replace the file."""
        atomic_write_json(self.path, self.content)

    def section(self, name: str) -> dict[str, Any]:
        """A section's entry: `planned` keys, `rows` by key, `ended` in words."""
        return self.content["sections"].setdefault(name, {"planned": None, "rows": {}, "ended": None})

    def rows(self, name: str, status: str = MEASURED) -> dict[str, dict[str, Any]]:
        """A section's rows of one status by key, in the order of the plan."""
        entry = self.section(name)
        order = entry["planned"] or list(entry["rows"])
        rows = {key: entry["rows"][key] for key in order if key in entry["rows"]}
        return {key: row for key, row in rows.items() if row["status"] == status}

    def lacking(self, name: str) -> bool:
        """Whether the section's last call found that it cannot be carried out on this machine."""
        return (self.section(name)["ended"] or "").startswith(NOT_HERE)

    def release(self) -> None:
        """Let rows be begun again in which another call was ended, which says nothing about them: no try is counted."""
        for entry in self.content["sections"].values():
            for row in entry["rows"].values():
                if row["status"] == BEGUN:
                    row |= {"status": GOES_ON, "tries": row["tries"] - 1, "reason": "its call was ended"}
        self.write()

    def begun(self, name: str) -> str | None:
        """The row that a process was at when it ended."""
        return next(iter(self.rows(name, BEGUN)), None)

    def missing(self, name: str) -> list[str] | None:
        """Planned rows without a final status; None if nothing is planned yet."""
        entry = self.section(name)
        if entry["planned"] is None:
            return None
        return [key for key in entry["planned"] if entry["rows"].get(key, {}).get("status") not in _FINAL]

    def plan(self, name: str, keys: list[str]) -> None:
        """What rows there are to be."""
        self.section(name).update(planned=keys, ended=None)
        self.write()

    def begin(self, name: str, key: str) -> None:
        """Say which row is next, before it is: should the process die, its row is known."""
        before = self.section(name)["rows"].get(key, {})
        self.section(name)["rows"][key] = before | {"status": BEGUN, "tries": before.get("tries", 0) + 1}
        self.write()

    def record(self, name: str, key: str, status: str, **values: Any) -> None:
        """A row's end."""
        tries = self.section(name)["rows"].get(key, {}).get("tries", 1)
        measured_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.section(name)["rows"][key] = {"status": status, "tries": tries, "at": measured_at} | values
        self.write()

    def end(self, name: str, reason: str | None) -> None:
        """How the section's last call ended; None while it has not."""
        self.section(name)["ended"] = reason
        self.write()

    def again(self) -> None:
        """Forget rows that failed or found no memory, so that they are tried again."""
        for entry in self.content["sections"].values():
            entry["rows"] = {key: row for key, row in entry["rows"].items() if row["status"] not in (FAILED, NO_MEMORY)}
        self.write()


def _sections(content: dict[str, Any]) -> bool:
    """Whether every section has what is read of it."""
    return all(
        (entry["planned"] is None or isinstance(entry["planned"], list))
        and (entry["ended"] is None or isinstance(entry["ended"], str))
        and all(isinstance(row["status"], str) and isinstance(row["tries"], int) for row in entry["rows"].values())
        for entry in content["sections"].values()
    )
