"""Reports how a run is doing, for people, `operate.status` and readers of its scalars (MLflow, TensorBoard); nothing
else reads this."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_clock

#: The file in a state directory that has a line of JSON for every step and every held-out loss.
SCALARS = "scalars.jsonl"


class ScalarSink(Protocol):
    """The interface of a place to which a run's numbers go besides the progress file, such as TensorBoard."""

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Take the values of a step, by name."""

    def close(self) -> None:
        """Finish, since no more values will come."""


class ScalarsFile:
    """`SCALARS` of a state directory, a line as soon as there are values; steps made again stand there again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO | None = None

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Append them.

        Raises:
            OSError: they cannot be written.
        """
        if self.file is None:
            self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115
            if self.file.tell():
                self.file.write(b"\n")  # ends what a full disk has left of a line
        line = {"step": step, "time": int(time.time() * 1000), "values": values}
        self.file.write(json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Close it."""
        if self.file is not None:
            self.file.close()


class TensorBoardSink:
    """Writes event files for TensorBoard; steps after `step` of an earlier attempt are purged from view."""

    def __init__(self, directory: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PlumblineError(
                "--tensorboard: tensorboard is not installed; in a clone of Plumbline: pip install '.[tensorboard]'"
            ) from error
        self.writer = SummaryWriter(str(directory), purge_step=step + 1)

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Write the values of a step to the event file."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush and close the event file."""
        self.writer.close()


class TrainingProgress:
    """Writes a line on stderr and a JSON line in ``progress.jsonl``, at most every few seconds."""

    def __init__(
        self,
        *,
        title: str,
        steps: int,
        tokens_per_step: int,
        path: Path,
        every: float,
        silent: bool = False,
    ) -> None:
        """`title` names the run; `every` is the least time between two lines, in seconds; ranks but 0 are `silent`."""
        self.title, self.steps, self.tokens_per_step, self.path, self.every = title, steps, tokens_per_step, path, every
        self.silent = silent
        self.sinks: list[ScalarSink] = []
        self.began: tuple[int, float] | None = None
        self.reported = (0, 0.0)
        self.terminal = sys.stderr.isatty()

    def event(self, kind: str, step: int, **details: Any) -> None:
        """Append a line to ``progress.jsonl``.

        `kind` is start, step, validation, checkpoint, stopped, completed, diverged or fault.
        """
        if self.silent:
            return
        line = {"event": kind, "step": step, "steps": self.steps, "time": round(time.time(), 3),
                "host": socket.gethostname(), "pid": os.getpid(), "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
                **details}  # fmt: skip
        try:
            with open(self.path, "a", encoding="utf-8") as handle:
                handle.write(json.dumps(line) + "\n")
        except OSError as error:  # nothing downstream reads it: a run does not end for its sake
            self.say(f"cannot write {self.path}: {error}")

    def say(self, text: str) -> None:
        """Print a line for people on stderr."""
        if self.silent:
            return
        print(f"{chr(13) if self.terminal else ''}{self.title}: {text}", file=sys.stderr, flush=True)

    def start(self, step: int, **details: Any) -> None:
        """Record that training begins after `step`."""
        self.began = (step, time.monotonic())
        self.reported = self.began
        self.event("start", step, **details)

    def step(self, step: int, loss: float, grad_norm: float, learning_rate: float) -> None:
        """Report a step that was made: to the sinks always, on stderr and in the file when enough time has passed."""
        self._scalars(step, {"loss": loss, "grad_norm": grad_norm, "learning_rate": learning_rate})
        now = time.monotonic()
        if now - self.reported[1] < self.every:
            return
        assert self.began is not None
        rate = (step - self.reported[0]) * self.tokens_per_step / (now - self.reported[1])
        remaining = (now - self.began[1]) / (step - self.began[0]) * (self.steps - step)
        self.reported = (step, now)
        self.event("step", step, loss=_finite_or_none(loss), grad_norm=_finite_or_none(grad_norm),
                   learning_rate=learning_rate,
                   tokens_per_second=round(rate, 1), eta_seconds=round(remaining, 1))  # fmt: skip
        self._line(
            f"step {step}/{self.steps}  loss {loss:.4f}  grad {grad_norm:.3g}  lr {learning_rate:.2e}  "
            f"{rate:,.0f} tokens/s  ETA {format_clock(remaining + 0.5)}"
        )

    def validation(self, step: int, loss: float) -> None:
        """Report a validation loss."""
        self._scalars(step, {"validation_loss": loss})
        self.event("validation", step, loss=_finite_or_none(loss))

    def _scalars(self, step: int, values: dict[str, float]) -> None:
        for sink in list(self.sinks):
            try:
                sink.scalars(step, values)
            except OSError as error:  # a full disk, mostly: no number depends on it
                self.say(f"{type(sink).__name__} takes no more values ({error}); the run continues")
                self.sinks.remove(sink)

    def _line(self, text: str) -> None:
        if self.silent:
            return
        if self.terminal:
            print(f"\r{self.title}: {text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the terminal's line, and close the sinks."""
        if self.terminal:
            print(file=sys.stderr)
        for sink in self.sinks:
            try:
                sink.close()
            except OSError as error:
                self.say(f"{type(sink).__name__} may lack its last values ({error})")


def _finite_or_none(value: float) -> float | None:
    """JSON has no NaN and no infinities."""
    return round(value, 6) if abs(value) < float("inf") else None
