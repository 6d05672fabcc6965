"""Counts the jobs that a Snakemake has run and is running, from the records of its log, and reads how
far a run has come. Knows no terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.core.files import parse_json, read_json
from plumbline.core.formats import format_rough_duration
from plumbline.operate.console.forecast import Forecast
from plumbline.operate.console.rule_names import HIDDEN, RUN_STAGES, order, stage

#: The line of a traceback that states what was raised, of any rank; torchrun's own has no reason.
_RAISED = re.compile(r"(?:\[rank\d+\]: ?)?((?!\S*ChildFailedError)(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*)")
#: Seconds between two checks of one state directory, which may lie far away.
LOOK_EVERY = 1.0
#: How a fault that is none is reported.
ASKED_TO_STOP = "asked to stop"
#: After this share of the forecast's work, time left goes by the pace alone.
TRUSTED = 0.25


@dataclass(kw_only=True, slots=True)
class StartedJob:
    """A job that was started: what it is called, where it writes, and since when it is running.

    `state`, `out`: a training's directories of state and outputs, None for other jobs. `weight`: the forecast's seconds
    for it, or 1.
    """

    number: int
    rule: str
    name: str
    logs: tuple[str, ...]
    state: Path | None
    out: Path | None
    local: bool
    attempt: int = 1
    weight: float = 1.0
    since: float = field(default_factory=time.time)
    looked: float = 0.0
    last: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Any) -> StartedJob:
        """Make a job from a record of Snakemake's log of the kind JOB_INFO."""
        values = dict(record.wildcards)
        if stage(record.rule_name) in RUN_STAGES and "seed" in values:
            name = "{study}/{scale}/{method}/s{seed}".format_map(values)
        else:
            name = "/".join(str(value) for value in values.values())
        command = _split_command(record.shellcmd)
        return cls(
            number=record.jobid,
            rule=record.rule_name,
            name=name,
            logs=tuple(record.log),
            state=_find_option(command, "--state"),
            out=_find_option(command, "--out"),
            local=record.local,
        )

    @property
    def title(self) -> str:
        """The job's name for people.

        It has stage and run, as in ``train transfer/base/softpick/s42``; of other jobs it is the rule's name.
        """
        chosen = stage(self.rule) if stage(self.rule) in RUN_STAGES else self.rule.replace("_", " ")
        return f"{chosen} {self.name}".strip()

    def now(self) -> dict[str, Any]:
        """Read step, steps and loss that a training in progress last wrote down.

        Empty before its first step of this attempt.
        """
        if self.state is not None and time.monotonic() - self.looked >= LOOK_EVERY:
            self.looked = time.monotonic()
            progress = [event for event in read_events(self.state) if event["time"] >= self.since]
            if progress and progress[-1]["step"]:
                self.last = {"step": progress[-1]["step"], "steps": progress[-1]["steps"]}
                if losses := [event["loss"] for event in progress if event["event"] == "step" and event["loss"]]:
                    self.last["loss"] = losses[-1]
        return self.last

    def outcome(self) -> str:
        """State how a finished job ended; of a training whether it completed or diverged."""
        outcome = read_json(self.out / "outcome.json") if self.state and self.out else None
        if outcome is None:
            return "done"
        if outcome["outcome"] == "diverged":
            return f"diverged at step {outcome['step']} of {outcome['steps']}: {outcome['reason']}"
        loss = outcome["validation_loss"]
        return "completed" if loss is None else f"completed, validation loss {loss:.4f}"

    def fault(self, executor_message: str | None) -> str:
        """Explain why a job failed: the error in its logs, or its executor's message, or the last line of its logs."""
        lines = [line.strip() for log in self.logs for line in read_tail(Path(log)).splitlines() if line.strip()]
        if errors := [line for line in lines if line.startswith("error: ")]:
            return errors[-1]
        last = read_events(self.state)[-1:] if self.state else []
        if last and last[0]["event"] == "stopped" and last[0]["time"] >= self.since:
            return f"{ASKED_TO_STOP}; its state is saved at step {last[0]['step']}"
        if raised := [match[1] for line in lines if (match := _RAISED.match(line))]:
            return raised[-1]
        if message := (executor_message or "").strip():
            return message
        return f"its log ends with: {lines[-1]}" if lines else "there is no message"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCounts:
    """The counts of jobs at one moment, to be drawn: a row a stage (name, jobs, done, failed, in progress) and more.

    Weights are the forecast's seconds, or 1 for each job where there is no forecast. `wall`: the forecast for the
    whole, in seconds; `began`: when the first job did, by the clock that nobody sets.
    """

    stages: tuple[tuple[str, int, int, int, int], ...]
    running: tuple[StartedJob, ...]
    weight: float
    done_weight: float
    wall: float | None
    began: float

    def describe_time_left(self) -> str:
        """Write the time left, as in ``about 9 min left``.

        Empty if nothing gives it, and when nearly nothing is left.
        """
        seconds = self.seconds_left()
        return "" if seconds is None or seconds < 1 else f"about {format_rough_duration(seconds)} left"

    def seconds_left(self) -> float | None:
        """Estimate the seconds left, by the forecast at first and more and more by the pace so far.

        None if neither gives it.
        """
        done_weight = self.done_weight
        for job in self.running:
            if event := job.now():
                done_weight += job.weight * event["step"] / event["steps"]
        share = min(1.0, done_weight / self.weight) if self.weight else 0.0
        passed = time.monotonic() - self.began
        if share <= 0:
            return None if self.wall is None else max(0.0, self.wall - passed)
        trust = 1.0 if self.wall is None else min(1.0, share / TRUSTED)
        return (1 - share) * ((1 - trust) * (self.wall or 0.0) + trust * passed / share)


class JobLog:
    """Counts the jobs of one Snakemake by stage. It gets each record of the log in order."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.jobs: dict[int, StartedJob] = {}
        self.running: dict[int, StartedJob] = {}
        self.failed: dict[int, StartedJob] = {}
        self.forecast = Forecast(seconds={}, wall=None)
        self.done_weight = 0.0
        self.began = time.monotonic()

    def plan(self, counts: Mapping[str, int]) -> None:
        """Record how many jobs of each rule there will be."""
        self.began = time.monotonic()
        self.total = Counter()
        for rule, number in counts.items():
            if rule != "total" and rule not in HIDDEN:
                self.total[stage(rule)] += number

    def start(self, record: Any) -> StartedJob:
        """Record that a job begins, or begins again."""
        job = StartedJob.of(record)
        previous_job = self.jobs.get(job.number)
        job.attempt = previous_job.attempt + 1 if previous_job else 1
        self.failed.pop(job.number, None)
        if self.forecast.seconds:
            job.weight = self.forecast.seconds.get(job.number, 0.0)
        self.jobs[job.number] = self.running[job.number] = job
        return job

    def finish(self, number: int) -> StartedJob:
        """Record that a job ended well."""
        job = self.running.pop(number, None) or self.jobs[number]
        if job.rule not in HIDDEN:
            self.done[stage(job.rule)] += 1
        self.done_weight += job.weight
        return job

    def fail(self, number: int) -> StartedJob | None:
        """Record that a job failed; None if it never began."""
        self.running.pop(number, None)
        job = self.jobs.get(number)
        if job is not None:
            self.failed[number] = job
        return job

    @property
    def stages(self) -> list[str]:
        """The stages that have any jobs, in the order of the workflow."""
        return sorted(self.total, key=lambda name: (order(name), name))

    def snapshot(self) -> JobCounts:
        """Copy the present counts for a thread that draws them."""
        failed = Counter(stage(job.rule) for job in self.failed.values())
        at_work = Counter(stage(job.rule) for job in self.running.values())
        rows = ((name, self.total[name], self.done[name], failed[name], at_work[name]) for name in self.stages)
        return JobCounts(
            stages=tuple(rows),
            running=tuple(self.running.values()),
            weight=sum(self.forecast.seconds.values()) or float(sum(self.total.values())),
            done_weight=self.done_weight,
            wall=self.forecast.wall,
            began=self.began,
        )


def _split_command(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError:
        return []


def _find_option(arguments: list[str], name: str) -> Path | None:
    """The value of an option of the job's command; where a training keeps state and outputs is no field of a record."""
    return Path(arguments[arguments.index(name) + 1]) if name in arguments[:-1] else None


#: The file in a run's state directory; `plumbline.train.monitoring.progress` writes it.
PROGRESS_FILE = "progress.jsonl"
#: Bytes of its end that are read.
_TAIL = 65536


def read_events(state: Path) -> list[dict[str, Any]]:
    """Read the last events of a run's progress file in its state directory; lines that are not whole are left out."""
    rows = []
    for line in read_tail(state / PROGRESS_FILE).splitlines():
        try:
            rows.append(parse_json(line))
        except json.JSONDecodeError:
            continue
    return [event for event in rows if isinstance(event, dict)]


def read_tail(path: Path) -> str:
    """Read the end of a text file, from within a line if it is long; empty if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _TAIL))
            return handle.read().decode(errors="replace")
    except OSError:
        return ""
