"""What runs in the processes that tests start and kill. Importing this imports all that a trainer needs."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import sys
import threading
from pathlib import Path

import pandas  # noqa: F401
import torch
import torch._dynamo
import torch.distributed.fsdp

from plumbline.core import command_line
from plumbline.core.stop_request import StopRequest
from plumbline.specs.spec import RunSpec
from plumbline.train import __main__ as trainer
from plumbline.train.checkpoint import weight_files
from plumbline.train.interventions import _until_release
from plumbline.train.loop import TrainingLoop
from plumbline.train.pretrain import pretrain
from plumbline.train.trainer_settings import TrainerSettings


def child(spec: str, chosen: TrainerSettings, environment: dict[str, str], operations: int | None) -> None:
    """Train, and exit as the command line does; die by SIGKILL before the file operation number `operations`."""
    stop = StopRequest().install()
    if operations is not None:
        _die_before(operations)
    os.environ.update(environment)
    if "STOP_AFTER_STEP" in environment:
        _stop_after(int(environment["STOP_AFTER_STEP"]), stop)
    if "CLAMP_SCORES" in environment:
        _clamp_scores([float(score) for score in environment["CLAMP_SCORES"].split(",")], chosen)
    if "DIE_WRITING" in environment:
        _die_writing(int(environment["DIE_WRITING"]), int(environment["DIE_IN_STEP"]))
    if "FALL" in environment and environment["RANK"] == "1":
        _fall(environment["FALL"])
    if "COMPILE_BACKENDS" in environment:
        _compile_by(environment["COMPILE_BACKENDS"].split()[int(environment["RANK"])])
    torch.set_num_threads(1)
    command_line.run(lambda: pretrain(RunSpec.from_json(spec), chosen, stop))


def of_user(
    user: int,
    group: int,
    mask: int,
    warm: TrainerSettings,
    spec: str,
    chosen: TrainerSettings,
    operations: int | None,
    stderr: str,
) -> None:
    """`child` as another user with a umask, once all is imported that a run imports: `warm` is carried out first.

    The interpreter may lie where that user cannot read. What it says goes into the file `stderr`: the standard error of
    the server that forks it may be that of a test long gone.
    """
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    torch.set_num_threads(1)
    pretrain(RunSpec.from_json(spec), warm, StopRequest())
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    os.umask(mask)
    child(spec, chosen, {}, operations)


def _compile_by(name: str) -> None:
    """Have torch.compile use this back end, or, `broken`, one that fails."""

    def broken(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> None:
        raise RuntimeError("no compiler")

    torch.compile = functools.partial(torch.compile, backend=broken if name == "broken" else name)


def _die_before(operations: int) -> None:
    budget = operations

    def deadly(original):
        def call(*arguments, **options):
            nonlocal budget
            budget -= 1
            if budget <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return call

    for name in ("fsync", "rename", "replace", "open", "mkdir", "rmdir", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))


def _stop_after(step: int, stop: StopRequest) -> None:
    original = TrainingLoop.train_step

    def train_step(self: TrainingLoop) -> tuple[bool, bool]:
        stop.requested = self.step + 1 == step
        return original(self)

    TrainingLoop.train_step = train_step  # type: ignore[method-assign]


def _die_writing(step: int, last_step: int) -> None:
    """Die in the step number `last_step`, while the checkpoint after `step` is still being written."""
    writing, write, train_step = threading.Event(), weight_files.write, TrainingLoop.train_step

    def half(directory: Path, files: list[weight_files.TensorFile]) -> None:
        if directory.name != f".step-{step:07d}":
            write(directory, files)
            return
        write(directory, files[:1])
        writing.set()
        threading.Event().wait()

    def deadly(self: TrainingLoop) -> tuple[bool, bool]:
        if self.step + 1 == last_step and writing.wait(60):
            os.kill(os.getpid(), signal.SIGKILL)
        return train_step(self)

    weight_files.write = half
    TrainingLoop.train_step = deadly  # type: ignore[method-assign]


def _fall(way: str) -> None:
    """In the third step be `killed`, or fall to an error, of the disk or of its own."""
    train_step = TrainingLoop.train_step

    def fall(self: TrainingLoop) -> tuple[bool, bool]:
        if self.step + 1 == 3:
            if way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if way == "disk":
                raise OSError(errno.EIO, os.strerror(errno.EIO), "shard-00000.bin")
            raise ZeroDivisionError("nothing to divide by")
        return train_step(self)

    TrainingLoop.train_step = fall  # type: ignore[method-assign]


def _clamp_scores(by_rank: list[float], chosen: TrainerSettings) -> None:
    """Each rank reads a lower-copy score of its own, and leaves in the state when it released."""
    rank = int(os.environ["RANK"])
    _until_release.lower_copy_score = lambda *arguments, **options: (by_rank[rank], 0.05)  # type: ignore[assignment]
    original = _until_release.UntilRelease.begin

    def begin(self: _until_release.UntilRelease, step: int) -> None:
        original(self, step)
        (chosen.state / f"released-{rank}.json").write_text(json.dumps(self.released))

    _until_release.UntilRelease.begin = begin  # type: ignore[method-assign]


def of_a_terminal(args: list[str], stderr_file: str) -> None:
    """Carry out `python -m plumbline.train` with these words, its standard error in a file; no checkpoint of it is
    ever written to its end."""
    os.dup2(os.open(stderr_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)

    def never(directory: Path, files: list[weight_files.TensorFile]) -> None:
        print("writing", file=sys.stderr, flush=True)
        threading.Event().wait()

    weight_files.write = never
    sys.argv = ["plumbline.train", *args]
    torch.set_num_threads(1)
    command_line.run(trainer.main)
