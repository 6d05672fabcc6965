"""Shows a person what Snakemake does: one live bar a stage in a terminal, one line a finished run elsewhere.

Snakemake's complete log is in a file of its own, below .snakemake/log; this is not a second one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, TextIO

from plumbline.core.errors import visible
from plumbline.core.formats import format_clock, format_count, format_rough_duration
from plumbline.core.terminal_lines import fold_lines
from plumbline.operate.console.forecast import ATTRIBUTE
from plumbline.operate.console.job_log import ASKED_TO_STOP, JobCounts, JobLog, StartedJob
from plumbline.operate.console.rule_names import HIDDEN, RUN_STAGES, stage

#: How many runs in progress are shown; the others are counted.
SHOWN = 4
_COUNTED = {"train": "run"}
#: A space at which no line is broken.
TOGETHER = "\xa0"


class JobDisplay:
    """Shows a person what the records of Snakemake's log mean. Its methods are called from one thread."""

    def __init__(self, stream: TextIO, *, color: bool = True) -> None:
        self.stream = stream
        self.job_log = JobLog()
        self.opened = False
        self.logfile = ""
        self.live: Any = None
        self.color = color
        self.snapshot: JobCounts | None = None

    @property
    def terminal(self) -> bool:
        """Whether the output is a terminal in which bars can be drawn."""
        return self.stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown", "")

    # What happened

    def note_plan(self, counts: dict[str, int]) -> None:
        """Record how many jobs of each rule Snakemake will run."""
        self.job_log.plan(counts)

    def note_forecast(self, record: Any) -> None:
        """Record the forecast of how long the jobs will take, which travels with a record of the log, and begin to
        draw.
        """
        self.job_log.forecast = getattr(record, ATTRIBUTE)
        self.open()

    def open(self) -> None:
        """Print what will be done, once, and begin to draw."""
        if self.opened:
            return
        self.opened = True
        counts = self.job_log.total
        amounts = [self._amount(name, counts[name]).replace(" ", TOGETHER) for name in self.job_log.stages]
        wall, load = self.job_log.forecast.wall, self.job_log.forecast.load
        self.say(f"To do: {', '.join(amounts) or 'copies of what is there'}.")
        if wall is not None:
            self.say(" ".join([f"That takes about {format_rough_duration(wall)}.", load]).strip())
        if self.terminal:
            from rich.console import Console as Terminal
            from rich.live import Live

            terminal = Terminal(file=self.stream, no_color=not self.color, highlight=False)
            self.snapshot = self.job_log.snapshot()
            self.live = Live(
                get_renderable=self.picture,
                console=terminal,
                refresh_per_second=2,
                transient=True,
                redirect_stdout=False,
            )
            self.live.start()

    def show_start(self, record: Any) -> None:
        """Record that a job began; print it if it is not its first attempt."""
        self.open()
        job = self.job_log.start(record)
        if job.attempt > 1:
            self.say(f"{job.title}: {'continues' if job.state else 'is tried again'} (attempt {job.attempt})")
        self.draw()

    def show_finish(self, number: int) -> None:
        """Record that a job ended well; print it where bars do not show it."""
        job = self.job_log.finish(number)
        self.draw()
        if job.rule in HIDDEN:
            return
        name = stage(job.rule)
        done_count, total = self.job_log.done[name], self.job_log.total[name]
        outcome = job.outcome()
        if self.live is None and name in RUN_STAGES:
            count = "; ".join(
                [f"{done_count} of {total}", *filter(None, [self.job_log.snapshot().describe_time_left()])]
            )
            self.say(f"{job.title} {outcome} ({count})")
        elif self.live is None and done_count == total:
            self.say(f"{self._amount(name, total)} done")
        elif outcome.startswith("diverged"):  # a result, not a failure; but one to hear of now
            self.say(f"{job.title} {outcome}")

    def show_failure(self, record: Any) -> None:
        """Record that a job, or a group of jobs, failed, and print why."""
        errors = getattr(record, "job_error_info", None) or [vars(record)]
        extra_logs = list(getattr(record, "aux_logs", []))
        faults = []
        for error in errors:
            job = self.job_log.fail(error["jobid"])
            if job is not None:
                job.logs = tuple(dict.fromkeys([*error["log"], *extra_logs]))
                faults.append((job, job.fault(error.get("rule_msg"))))
        self.draw()
        # Of a group only those whose logs hold an error: the others had no chance.
        for job, fault in [entry for entry in faults if entry[1].startswith("error: ")] or faults[:1]:
            if fault.startswith(ASKED_TO_STOP):
                self.say(f"{job.title}: {fault}")
                continue
            self._say_failed(job, fault)

    def show_missing_output(self, number: int, text: str) -> bool:
        """Record that Snakemake gave a job up after it had ended, since what it should have made is not there.

        Returns:
            False if the job is not known.
        """
        job = self.job_log.fail(number)
        if job is None:
            return False
        self.draw()
        missing = [line.split(" (missing locally")[0] for line in text.splitlines() if "(missing locally" in line]
        fault = f"it succeeded, but did not make {', '.join(missing)}" if missing else text
        self._say_failed(job, fault)
        return True

    def show_end(self) -> None:
        """Remove the bars, and print how many jobs were done and how many failed.

        Called when no more records will come.
        """
        if not self.opened:
            return
        self.abandon()
        total, done_count = sum(self.job_log.total.values()), sum(self.job_log.done.values())
        failed = len(self.job_log.failed)
        passed = format_clock(time.monotonic() - self.job_log.began)
        if failed or done_count < total:
            first = f"{format_count(failed, 'job')} failed (see above), " if failed else "Stopped: "
            self.say(
                f"{first}{done_count} of {total} are done; {passed} passed.\nThe same command continues from here."
            )
        else:
            self.say(f"All done: {format_count(total, 'job')} in {passed}.")
        if self.logfile:
            self.say(f"Snakemake's own log: {self.logfile}")

    def abandon(self) -> None:
        """Remove the bars, and print nothing any more."""
        self.opened = False
        if self.live is not None:
            live, self.live = self.live, None
            live.stop()

    # How it is printed

    def say(self, text: str, style: str = "") -> None:
        """Print a line that stays above the bars; in a terminal it is broken between words where it is too long."""
        text = visible(fold_lines(text, self.stream).replace(TOGETHER, " "))
        if self.live is None:
            print(text, file=self.stream, flush=True)
            return
        from rich.text import Text

        self.live.console.print(Text(text, style=style), soft_wrap=True)

    def _say_failed(self, job: StartedJob, fault: str) -> None:
        logs = [f"  log: {log}" for log in job.logs if Path(log).exists()]
        lines = [f"  {line}" for line in fault.splitlines()]
        self.say("\n".join([f"failed: {job.title}", *lines, *logs]), style="red")

    def draw(self) -> None:
        """Update what the bars show from the counts of jobs."""
        self.snapshot = self.job_log.snapshot()

    def picture(self) -> Any:
        """Compose the bars, the runs in progress, and the time for rich to draw. Called from the thread that draws."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        assert self.snapshot is not None
        now = self.snapshot
        bars = Table.grid(padding=(0, 2))
        for side in ("left", "left", "right", "left"):
            bars.add_column(justify=side)  # type: ignore[arg-type]
        for name, total, done_count, failed, at_work in now.stages:
            notes = [f"{at_work} running"] * bool(at_work) + [f"{failed} failed"] * bool(failed)
            bar = ProgressBar(total=total, completed=done_count, width=32)
            bars.add_row(name, bar, f"{done_count}/{total}", ", ".join(notes))
        runs = [job for job in now.running if stage(job.rule) in RUN_STAGES]
        steps = {job.number: job.now() for job in runs}
        runs.sort(key=lambda job: (not steps[job.number], job.number))
        live = self.live  # the end may come meanwhile
        width = live.console.width if live is not None else 80
        lines = [format_running_line(job, steps[job.number], width) for job in runs[:SHOWN]]
        if len(runs) > SHOWN:
            lines.append(f"  and {len(runs) - SHOWN} more")
        times = ", ".join(
            [f"{format_clock(time.monotonic() - now.began)} passed", *filter(None, [now.describe_time_left()])]
        )
        return Group(bars, *(Text(line, no_wrap=True, overflow="ellipsis") for line in [*lines, times]))

    def _amount(self, name: str, number: int) -> str:
        unit = f" {_COUNTED[name]}{'s' * (number != 1)}" if name in _COUNTED else ""
        return f"{name} {number}{unit}"


def format_running_line(job: StartedJob, event: dict[str, Any], width: int) -> str:
    """Write a line for a run in progress, with its step and loss.

    The start of its name is left out where it does not fit.
    """
    if event:
        loss = f"  loss {event['loss']:.4f}" if "loss" in event else ""
        state = f"step {event['step']}/{event['steps']}{loss}"
    elif job.state:
        state = "starting" if job.local else "queued or starting"
    else:
        state = "at work"
    stage_name, _, name = job.title.partition(" ")
    room = width - len(stage_name) - len(state) - 5
    return f"  {stage_name} {shorten_name(name, room)}  {state}"


def shorten_name(name: str, room: int) -> str:
    """Shorten a name of parts between slashes to `room` characters by leaving out its first parts, but never the last
    two.
    """
    parts = name.split("/")
    while len("/".join(parts)) > room and len(parts) > (3 if parts[0] == "…" else 2):
        parts = ["…", *parts[2 if parts[0] == "…" else 1 :]]
    return "/".join(parts)
