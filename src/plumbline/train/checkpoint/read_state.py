"""Reads what a state directory says of its run, for whoever does not train it: status, clean-up, checks before a start.

Nothing here needs torch. State is set aside, and a run that never got as far as its state given up, here as well.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core import process_record
from plumbline.core.files import read_json
from plumbline.train.checkpoint import run_lock, state_records
from plumbline.train.checkpoint.rolling_checkpoints import METADATA
from plumbline.train.checkpoint.state_records import is_aside as is_aside

_DAMAGED = re.compile(r".+\.(damaged|unreadable|replaced|set-aside)(-\d+)?")
_HALF = re.compile(r"\.step-\d{7,}(-diverged)?")


def claimed(work: Path) -> list[Path]:
    """List the state directories of all runs that were ever started, below ``work/<preset>/state``."""
    found = work.glob(f"*/state/*/*/*/*/{state_records.IDENTITY}")
    return sorted(path.parent for path in found if not is_aside(path.parent.name))


def is_state(directory: Path) -> bool:
    """Whether a folder is the state of a run: it has a record or a checkpoint of one. Others are nobody's to move."""
    records = (state_records.IDENTITY, state_records.STARTS, state_records.FAULT)
    checkpoints = (path.parent for path in directory.glob(f"step-*/{METADATA}"))
    return any((directory / name).is_file() for name in records) or any(checkpoints)


def identity(directory: Path) -> Any:
    """Read which run a state directory belongs to; None if nothing says so."""
    return read_json(directory / state_records.IDENTITY)


def starts(directory: Path) -> list[dict[str, Any]]:
    """Read the starts of a run, one entry each, oldest first."""
    return read_json(directory / state_records.STARTS) or []


def fault(directory: Path) -> dict[str, Any] | None:
    """Read why a run may not be started again; None if it may."""
    return read_json(directory / state_records.FAULT)


def saved_at(directory: Path) -> float | None:
    """Look up when a run's newest rolling checkpoint was written, in seconds since the epoch; None if there is none."""
    times = [path.stat().st_mtime for path in directory.glob(f"step-*[0-9d]/{METADATA}")]
    return max(times) if times else None


def holder(directory: Path) -> dict[str, Any] | None:
    """Read which process has the lock of a run, as `process_record.read` gives it.

    Empty where the record is broken, None if nobody has it.
    """
    return process_record.read(directory / run_lock.NAME)


def holder_in_words(directory: Path) -> str:
    """Say for people which process has the lock of a run."""
    return run_lock.who(directory / run_lock.NAME)


def alive(directory: Path, holder: dict[str, Any]) -> bool:
    """Whether the `holder` of the lock gave a sign of life within its limit; one that lies further in the future than
    that says nothing.
    """
    if process_record.gone(holder):
        return False
    try:
        silent = time.time() - (directory / run_lock.NAME).stat().st_mtime
    except FileNotFoundError:
        return False
    return abs(silent) <= holder.get("limit", 120.0)


def leftovers(directory: Path) -> Iterator[tuple[str, Path]]:
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
        return state_records.StateRecords(directory).set_aside()


def give_up(directory: Path, reason: str, circumstances: dict[str, Any]) -> None:
    """Record why a run may not be started again under the same circumstances."""
    state_records.StateRecords(directory).give_up(reason, circumstances)
