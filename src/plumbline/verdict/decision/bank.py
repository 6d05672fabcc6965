"""Keeps every run of every arm, one line a run, so that none is made twice and what they say of sigma is kept.

The file is a `plumbline.core.append_only_log`: a run is on the disk before it is examined, and a value that was edited
is noticed. One process at a time works on a bank (`hold`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from plumbline.core import locks, process_record
from plumbline.core.append_only_log import AppendOnlyLog, BrokenLogError, LogContent
from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder
from plumbline.verdict.decision.experiment import CRASHED, FINISHED, TIMEOUT, ArmRun
from plumbline.verdict.outcome import CannotBeJudgedError

#: The form of a record; a reader refuses any other one.
SCHEMA = 2
#: What is tried again when it is requested again: the cause may be gone.
TRIED_AGAIN = (CRASHED, TIMEOUT)
#: A run is for the bank and its candidates, or for a claim, whose seeds are fresh.
LOOP, CLAIM = "loop", "claim"


@dataclass(frozen=True, kw_only=True, slots=True)
class BankedRun:
    """A run with what makes it comparable to others.

    Attributes:
        group: trainer and budget, as text that no other trainer or budget has.
        method: what was trained, whichever arm of an experiment it is.
        role: `LOOP`, or `CLAIM` with the method whose claim it is for, whose seeds are for nothing else.
        beside: of a candidate's run the seeds of the bank that it was begun with, so that what is resumed goes on
            next to the same.
    """

    group: str
    method: str
    run: ArmRun
    role: str = LOOP
    beside: tuple[int, ...] = ()
    at: str = ""


class Bank:
    """The runs that are known, in the order in which they were made."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            CannotBeJudgedError: it is not as Plumbline left it.
        """
        self.path = path
        self._log = _open_log(path)
        _require_own_form(path)
        try:
            self.runs = [_parse_run(record) for record in self._log.read().records]
        except BrokenLogError as error:
            raise _describe_foreign(str(error)) from None
        self._before = len(self.runs)

    def find_run(self, run_id: str) -> ArmRun | None:
        """Find the run of this id; None if it is to be made, or made again."""
        runs = [
            banked.run for banked in self.runs if banked.run.run_id == run_id and banked.run.outcome not in TRIED_AGAIN
        ]
        return runs[-1] if runs else None

    def find_new_run(self, run_id: str) -> ArmRun | None:
        """Find the run of this id that was made since the bank was opened, however it ended."""
        runs = [banked.run for banked in self.runs[self._before :] if banked.run.run_id == run_id]
        return runs[-1] if runs else None

    def list_runs(self, group: str, method: str, role: str = LOOP, *, since: int = 0) -> list[ArmRun]:
        """List the runs of a method, each seed once, in the order in which they were made, except for the bank's first
        `since` runs: order is told by place, as clocks step back.
        """
        runs: dict[int, ArmRun] = {}
        for banked in self.runs[since:]:
            if (banked.group, banked.method, banked.role) == (group, method, role):
                runs[banked.run.seed] = banked.run
        return list(runs.values())

    def list_seeds(self, group: str, except_role: str = "") -> set[int]:
        """Collect the seeds that runs of a group have used, in any role but one."""
        return {banked.run.seed for banked in self.runs if banked.group == group and banked.role != except_role}

    def group_values(self, group: str) -> dict[str, list[list[float]]]:
        """Collect, for each fingerprint, the values of every method that has two runs or more there."""
        values: dict[tuple[str, str], dict[int, float]] = {}
        for banked in self.runs:
            if banked.group == group and banked.run.has_value and banked.run.fingerprint:
                of_method = values.setdefault((banked.run.fingerprint, banked.method), {})
                of_method[banked.run.seed] = float(banked.run.value or 0.0)
        spreads: dict[str, list[list[float]]] = {}
        for (fingerprint, _), each in values.items():
            if len(each) > 1:
                spreads.setdefault(fingerprint, []).append(list(each.values()))
        return spreads

    def append(
        self, group: str, method: str, run: ArmRun, role: str = LOOP, baseline_seeds: tuple[int, ...] = ()
    ) -> None:
        """Write a run down, and wait until it is on the disk.

        Raises:
            CannotBeJudgedError: the bank is not as this process left it.
            PlumblineError: the disk is full or fails.
        """
        banked = BankedRun(
            group=group, method=method, run=run, role=role, beside=baseline_seeds, at=process_record.now()
        )
        record = {"schema": SCHEMA, "group": group, "method": method, "role": role, "at": banked.at}
        record |= {"beside": list(baseline_seeds)} if baseline_seeds else {}

        def choose(log: LogContent) -> list[dict[str, Any]]:
            self._require_own(log)
            return [record | {"run": asdict(run) | {"others": dict(run.others)}}]

        try:
            with self._log.append(choose):
                self.runs.append(banked)
        except BrokenLogError as error:
            raise _describe_foreign(str(error)) from None

    def _require_own(self, log: LogContent) -> None:
        """Refuse a bank to which somebody else wrote: a run, as the folder is held by this process."""
        if len(log.records) != len(self.runs):
            raise _describe_foreign(
                f"{self.path} has {len(log.records):,} runs, and this process, which alone writes there, knows of "
                f"{len(self.runs):,}; restore it (head -n {len(self.runs)})"
            )


def read_runs(path: Path) -> list[BankedRun]:
    """Read the runs of a bank for who only looks: nothing is written, and a torn last line stays where it is.

    Raises:
        CannotBeJudgedError: it is not as Plumbline left it.
    """
    if not path.exists():
        return []
    _require_own_form(path)
    try:
        return [_parse_run(record) for record in _open_log(path).read_unchanged()[0].records]
    except BrokenLogError as error:
        raise _describe_foreign(str(error)) from None


def _open_log(path: Path) -> AppendOnlyLog:
    return AppendOnlyLog(path=path, noun="bank", remedy="free its place and repeat", require=_parse_run)


def _describe_foreign(problem: str) -> CannotBeJudgedError:
    return CannotBeJudgedError(
        f"nothing can be judged by the runs that are kept: {problem}. Where a trainer wrote to it, take that out "
        "of its code first: runs do not write below Plumbline's own folder"
    )


@contextmanager
def hold(folder: Path, command: str) -> Iterator[None]:
    """Hold a folder of experiments during a ``with`` block.

    Raises:
        PlumblineError: another process holds it; it is named.
    """
    make_folder(folder)
    path = folder / "lock"
    descriptor = locks.open_file(path)
    try:
        try:
            locks.lock(descriptor)
        except BlockingIOError:
            holder = process_record.read(path)
            who = process_record.describe(holder or {})
            raise PlumblineError(f"{folder} is held by {who}; wait for it or stop it, then repeat this") from None
        except OSError as error:
            raise PlumblineError(
                f"{path} cannot be locked ({error.strerror}); name a folder on another file system"
            ) from None
        record = process_record.identity() | {"command": command, "since": time.time()}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(record).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _parse_run(record: Mapping[str, Any]) -> BankedRun:
    if record["schema"] != SCHEMA:
        raise ValueError("a run of another Plumbline")
    names = {field.name for field in fields(ArmRun)}
    values = {key: value for key, value in record["run"].items() if key in names}
    run = ArmRun(**values | {"remarks": tuple(values.get("remarks", ()))})
    if not isinstance(run.seed, int) or (run.outcome == FINISHED and not run.has_value):
        raise ValueError("a run without its seed or value")
    values = {key: record[key] for key in ("group", "method", "role", "at")}
    return BankedRun(**values, run=run, beside=tuple(map(int, record.get("beside", ()))))


def _require_own_form(path: Path) -> None:
    """Refuse a bank of another Plumbline; before version 2 its lines were not bound to each other."""
    try:
        with open(path, "rb") as file:
            record = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return  # which the log tells
    schema = record.get("schema") if isinstance(record, dict) else None
    if isinstance(schema, int) and schema != SCHEMA:
        raise PlumblineError(
            f"{path} is of {'an earlier' if schema < SCHEMA else 'a later'} Plumbline (schema {schema}, not {SCHEMA}). "
            f"Use that one, or rename the file (mv {path.name} {path.name}.old) and repeat: the runs are made again"
        )
