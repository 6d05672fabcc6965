"""Keeps the records of a state directory: whose state it is, how often it was started, and why it was given up.

`run.json` holds the identity (run id, spec, fingerprints of the data); `starts.json` one entry a start, with how it
ended; `fault.json` the reason why the run may not be started again; `progress.jsonl` what happened when, and
`scalars.jsonl` the values of every step.

State belongs to a run id and its data. Where another run comes (an edited learning rate), what is there moves beside
the directory, to ``<name>.of-<run id>-<data>``, and comes back with its run. Nothing is removed, and nobody starts
from step 0 that had got anywhere, unless that is asked for (``plumbline cleanup --restart DIR``).

The functions are for whoever does not train the run: status, clean-up, checks before a start. Nothing here needs torch.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic_write_json,
    canonical_json,
    free_name,
    fsync_directory,
    parse_json,
    read_json,
    sha256_text,
)
from plumbline.train.checkpoint import run_lock
from plumbline.train.checkpoint.checkpoint_folders import METADATA, RollingCheckpoints, how_to_restart

IDENTITY = "run.json"
STARTS = "starts.json"
FAULT = "fault.json"
#: What of an identity says whose state it is.
WHOSE = ("run_id", "data_fingerprint", "validation_fingerprint")
#: How a start ends that counts against its run: by a fault in the loop. Being stopped, preempted or killed, a full
#: disk and a damaged pack do not.
COUNTED = "fault"
_OURS = {run_lock.NAME, run_lock.LOCK}
_ASIDE = re.compile(r"(.+)\.(set-aside-\d+|of-[0-9a-f]+-[0-9a-f]+)")
_DAMAGED = re.compile(r".+\.(damaged|unreadable|replaced|set-aside)(-\d+)?")
_HALF = re.compile(r"\.step-\d{7,}(-diverged)?")


class RunBlocked(PlumblineError):
    """Raised where a run may not be started again until somebody has checked it."""


class StateRecords:
    """Keeps the records of one state directory. Used by rank 0 only, under the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, identity: dict[str, Any]) -> None:
        """Make the directory the state of the run `identity`: state of any other run moves to a sibling, this run's
        comes back.

        Each step can be interrupted anywhere: run.json goes last and comes first, so that the next start continues.

        Raises:
            PlumblineError: there is state, and nothing says whose.
        """
        owner = self._read_owner()
        if owner is not None and _folder_suffix(owner) != _folder_suffix(identity):
            self._put_away(owner, [key for key in WHOSE if owner.get(key) != identity[key]])
            owner = None
        if owner != identity:
            atomic_write_json(self.path / IDENTITY, identity)
        self._take_back(identity)

    def _read_owner(self) -> dict[str, Any] | None:
        """Read whose state this is, from run.json or, if that is lost or damaged, from its checkpoints."""
        identity = read_or_set_aside(self.path / IDENTITY)
        if isinstance(identity, dict) and all(key in identity for key in WHOSE):
            return identity
        folders = [RollingCheckpoints(folder, keep=None) for folder in (self.path, self.path / "points")]
        owner_found = next((owner for checkpoints in folders if (owner := checkpoints.owner(WHOSE))), None)
        if owner_found is None and any(checkpoints.has_any() for checkpoints in folders):
            raise PlumblineError(
                f"{self.path} holds checkpoints, and neither {IDENTITY} nor any of them names their run; restore "
                f"{IDENTITY}, or {how_to_restart(self.path)}"
            )
        return owner_found

    def _put_away(self, owner: dict[str, Any], changed: list[str]) -> None:
        """Move another run's state to a place of its own."""
        place = self.path.with_name(f"{self.path.name}.{_folder_suffix(owner)}")
        place.mkdir(exist_ok=True)
        self._move_all(self.path, place)
        print(f"{self.path}: it belongs to another run ({', '.join(changed)} changed); kept as {place}, where that "
              f"run will find it", file=sys.stderr)  # fmt: skip

    def _take_back(self, identity: dict[str, Any]) -> None:
        """Move this run's own state back from where another run put it."""
        place = self.path.with_name(f"{self.path.name}.{_folder_suffix(identity)}")
        if not place.is_dir():
            return
        (place / IDENTITY).unlink(missing_ok=True)  # ours is written already
        self._move_all(place, self.path)
        place.rmdir()
        print(f"{self.path}: this run's state is back from {place}", file=sys.stderr)

    def _move_all(self, source: Path, target: Path) -> None:
        """Move everything but the lock, the identity last; what is in the way gets another name."""
        for entry in sorted(source.iterdir(), key=lambda entry: (entry.name == IDENTITY, entry.name)):
            if entry.name in _OURS or entry.name.startswith((".lock", ".clock")):
                continue
            if os.path.lexists(target / entry.name):
                os.rename(target / entry.name, free_name(target / entry.name, "replaced"))
            os.rename(entry, target / entry.name)
        fsync_directory(source)
        fsync_directory(target)

    def set_aside(self) -> Path:
        """Move everything but the lock to a sibling ``<name>.set-aside-N`` for good, so that the run starts at step
        0.
        """
        place = next(
            candidate
            for number in itertools.count(1)
            if not (candidate := self.path.with_name(f"{self.path.name}.set-aside-{number}")).exists()
        )
        place.mkdir(parents=True)
        self._move_all(self.path, place)
        return place

    def refuse_if_given_up(self, circumstances: dict[str, Any]) -> None:
        """Refuse to start a run that was given up under the same circumstances.

        Raises:
            RunBlocked: ``fault.json`` says so.
        """
        path = self.path / FAULT
        fault = read_or_set_aside(path)
        if fault is None:
            return
        if fault.get("circumstances") != circumstances:
            os.replace(path, self.path / f"fault-{int(time.time())}.json")
            print(f"{path}: recorded under other settings than the present ones; trying again", file=sys.stderr)
            return
        raise RunBlocked(f"{fault['reason']} (recorded {fault['time']}). To try again anyway, delete {path}")

    def give_up(self, reason: str, circumstances: dict[str, Any]) -> None:
        """Record why the run may not be started again under these circumstances."""
        record = {
            "reason": reason,
            "circumstances": circumstances,
            "time": process_record.now(),
            **process_record.identity(),
        }
        atomic_write_json(self.path / FAULT, record)

    @property
    def starts(self) -> list[dict[str, Any]]:
        """The starts of the run so far, one entry each, oldest first."""
        return read_or_set_aside(self.path / STARTS) or []

    def start(self, step: int, limit: int, details: dict[str, Any], circumstances: dict[str, Any]) -> None:
        """Record that the run starts at `step`, with `details`; give it up if `limit` starts there have failed.

        Raises:
            RunBlocked: the last `limit` starts that ended by a fault were all at this step: the run makes no progress.
        """
        starts = self.starts
        faults = [entry for entry in starts if entry.get("ended") == COUNTED and not entry.get("forgiven")]
        if limit and len(faults) >= limit and all(entry["step"] == step for entry in faults[-limit:]):
            reason = (
                f"{self.path}: started {limit} times at step {step} without any progress, the last time until "
                f"{faults[-1].get('reason')}; given up"
            )
            self.give_up(reason, circumstances)
            # Deleting fault.json is the order to try again: the starts so far are then not counted a second time.
            atomic_write_json(self.path / STARTS, [entry | {"forgiven": True} for entry in starts])
            raise RunBlocked(f"{reason}. Look at the log of the last start; to try again, delete {self.path / FAULT}")
        silent = list(itertools.takewhile(lambda entry: "ended" not in entry and entry["step"] == step, starts[::-1]))
        if limit and len(silent) >= limit:
            print(
                f"{self.path}: the last {len(silent)} starts, all at step {step}, ended without a message: killed, "
                "for instance for lack of memory, by preemption or a time limit before the first checkpoint, or "
                "unable to write here",
                file=sys.stderr,
            )
        entry = {"step": step, "time": process_record.now(), **process_record.identity(), **details}
        atomic_write_json(self.path / STARTS, [*starts, entry])

    def restore_start(self, metadata: dict[str, Any]) -> None:
        """Write the record of starts of a finished run again, where it is lost, from its last checkpoint's metadata."""
        facts = {key: metadata[key] for key in ("code_sha256", "torch", "strategy") if key in metadata}
        entry = {"step": 0, "time": None, "resumed": False, "recovered": True, "world_size": metadata.get("ranks")}
        atomic_write_json(self.path / STARTS, [entry | facts])

    def amend(self, **facts: Any) -> None:
        """Add facts to the record of the last start."""
        *earlier, last = self.starts
        atomic_write_json(self.path / STARTS, [*earlier, last | facts])


def is_aside(name: str) -> bool:
    """Whether a directory of this name beside the state of a run was set aside, or is another run's."""
    return _ASIDE.fullmatch(name) is not None


def _folder_suffix(identity: dict[str, Any]) -> str:
    data = sha256_text(canonical_json([identity[key] for key in WHOSE[1:]]))[:8]
    return f"of-{identity['run_id']}-{data}"


def read_or_set_aside(path: Path) -> Any:
    """Read a JSON file; None if it is not there. One that is not whole is named and renamed ``….damaged``."""
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        aside = free_name(path, "damaged")
        os.rename(path, aside)
        print(f"{path} is damaged ({error}); set aside as {aside.name}, continuing without it", file=sys.stderr)
        return None


def list_claimed(work: Path) -> list[Path]:
    """List the state directories of all runs that were ever started, below ``work/<preset>/state``."""
    records = work.glob(f"*/state/*/*/*/*/{IDENTITY}")
    return sorted(path.parent for path in records if not is_aside(path.parent.name))


def is_state(directory: Path) -> bool:
    """Whether a folder is the state of a run: it has a record or a checkpoint of one. Others are nobody's to move."""
    records = (IDENTITY, STARTS, FAULT)
    checkpoints = (path.parent for path in directory.glob(f"step-*/{METADATA}"))
    return any((directory / name).is_file() for name in records) or any(checkpoints)


def read_identity(directory: Path) -> Any:
    """Read which run a state directory belongs to; None if nothing says so."""
    return read_json(directory / IDENTITY)


def read_starts(directory: Path) -> list[dict[str, Any]]:
    """Read the starts of a run, one entry each, oldest first."""
    return read_json(directory / STARTS) or []


def read_fault(directory: Path) -> dict[str, Any] | None:
    """Read why a run may not be started again; None if it may."""
    return read_json(directory / FAULT)


def read_save_time(directory: Path) -> float | None:
    """Look up when a run's newest rolling checkpoint was written, in seconds since the epoch; None if there is none."""
    times = [path.stat().st_mtime for path in directory.glob(f"step-*[0-9d]/{METADATA}")]
    return max(times) if times else None


def read_holder(directory: Path) -> dict[str, Any] | None:
    """Read which process has the lock of a run, as `process_record.read` gives it.

    Empty if the record is broken, None if nobody has it.
    """
    return process_record.read(directory / run_lock.NAME)


def describe_holder(directory: Path) -> str:
    """Say for people which process has the lock of a run."""
    return run_lock.describe_owner(directory / run_lock.NAME)


def is_alive(directory: Path, holder: dict[str, Any]) -> bool:
    """Whether the `holder` of the lock gave a sign of life within its limit; one that lies further in the future than
    that says nothing.
    """
    if process_record.has_ended(holder):
        return False
    try:
        silent = time.time() - (directory / run_lock.NAME).stat().st_mtime
    except FileNotFoundError:
        return False
    return abs(silent) <= holder.get("limit", 120.0)


def list_leftovers(directory: Path) -> Iterator[tuple[str, Path]]:
    """Find what a run does not need of its state: each thing's kind, ``damaged`` or ``half`` written, and its path."""
    for path in [*directory.iterdir(), *directory.glob("points/*")]:
        if _DAMAGED.fullmatch(path.name):
            yield "damaged", path
        elif _HALF.fullmatch(path.name):
            yield "half", path


def set_aside(directory: Path) -> Path:
    """Move a run's state to a sibling directory for good, so that the run starts at step 0; returns where it is.

    Raises:
        RunLockError: a trainer is at work in it.
    """
    with run_lock.RunLock(directory, limit=120.0, wait=0.0):
        return StateRecords(directory).set_aside()


def give_up(directory: Path, reason: str, circumstances: dict[str, Any]) -> None:
    """Record why a run may not be started again under the same circumstances."""
    StateRecords(directory).give_up(reason, circumstances)
