"""The state directory of a run: whose state it is, how often it was started, and why it was given up.

`run.json` holds the identity (run id, spec, fingerprints of the data); `starts.json` one entry a start;
`fault.json` the reason why the run may not be started again; `progress.jsonl` what happened when.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.files import atomic_write_json
from plumbline.train import lease

IDENTITY = "run.json"
STARTS = "starts.json"
FAULT = "fault.json"
_OURS = {lease.NAME, lease.LOCK}


class GivenUp(PlumblineError):
    """The run may not be started again until somebody has looked at it."""


class StateDirectory:
    """Bookkeeping beside the checkpoints. Used by rank 0 only, under the lease."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, identity: dict[str, Any]) -> None:
        """Make this the state of the run `identity`; state of any other run is set aside, never overwritten."""
        held = read_json(self.path / IDENTITY)
        if held is None and (any(self.path.glob("step-*")) or any(self.path.glob("points/step-*"))):
            self.set_aside(f"it holds checkpoints, but no {IDENTITY} says whose they are")
        elif held is not None:
            changed = [key for key in ("run_id", "data_fingerprint", "validation_fingerprint")
                       if held.get(key) != identity[key]]  # fmt: skip
            if changed:
                self.set_aside(f"it belongs to another run ({', '.join(changed)} changed)")
                held = None
        if held is None:
            atomic_write_json(self.path / IDENTITY, identity)

    def set_aside(self, why: str) -> None:
        """Move everything but the lease to a sibling ``<name>.set-aside-N``."""
        aside = next(
            candidate
            for number in itertools.count(1)
            if not (candidate := self.path.with_name(f"{self.path.name}.set-aside-{number}")).exists()
        )
        aside.mkdir(parents=True)
        # The identity goes last: until then, whoever comes after a kill sees that the rest is not theirs.
        for entry in sorted(self.path.iterdir(), key=lambda entry: (entry.name == IDENTITY, entry.name)):
            if entry.name not in _OURS and not entry.name.startswith((".lease", ".clock")):
                os.rename(entry, aside / entry.name)
        print(f"{self.path}: {why}; set aside as {aside}, starting afresh", file=sys.stderr)

    def refuse_if_given_up(self, circumstances: dict[str, Any]) -> None:
        """Do not start a run that was given up under the same circumstances.

        Raises:
            GivenUp: ``fault.json`` says so.
        """
        path = self.path / FAULT
        fault = read_json(path)
        if fault is None:
            return
        if fault.get("circumstances") != circumstances:
            os.replace(path, self.path / f"fault-{int(time.time())}.json")
            print(f"{path}: recorded under other settings than today's; trying again", file=sys.stderr)
            return
        raise GivenUp(f"{fault['reason']} (recorded {fault['time']}). To try again nevertheless, delete {path}")

    def give_up(self, reason: str, circumstances: dict[str, Any]) -> None:
        """Record why the run may not be started again."""
        record = {"reason": reason, "circumstances": circumstances, "time": clock(), **lease.identity()}
        atomic_write_json(self.path / FAULT, record)

    @property
    def starts(self) -> list[dict[str, Any]]:
        """One entry a start, oldest first."""
        return read_json(self.path / STARTS) or []

    def start(self, step: int, limit: int, details: dict[str, Any], circumstances: dict[str, Any]) -> None:
        """Record a start at `step`.

        Raises:
            GivenUp: the last `limit` starts were all at this step: the run makes no progress.
        """
        starts = self.starts
        since_mended = [entry for entry in starts if not entry.get("forgiven")]
        if limit and len(since_mended) >= limit and all(entry["step"] == step for entry in since_mended[-limit:]):
            reason = f"{self.path}: started {limit} times at step {step} without any progress; given up"
            self.give_up(reason, circumstances)
            # Deleting fault.json is the order to try again: the starts so far are then not counted a second time.
            atomic_write_json(self.path / STARTS, [entry | {"forgiven": True} for entry in starts])
            raise GivenUp(f"{reason}. Look at the log of the last start; to try again, delete {self.path / FAULT}")
        entry = {"step": step, "time": clock(), **lease.identity(), **details}
        atomic_write_json(self.path / STARTS, [*starts, entry])


def read_json(path: Path) -> Any:
    """A JSON file's content; None if it is not there or not whole."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def clock() -> str:
    """Now, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
