"""Stands between srun and the trainer in fault tests: `python fault_launcher.py -m plumbline.train ...`.

Runs the module as Python would, with the options in TRAIN_OPTIONS added and TRAIN_PAUSE seconds of sleep a step: a
model of 80,000 parameters would be done before anything could happen to it. While the file TRAIN_HOLD is there, a step
waits until that is gone or the trainer is asked to stop; while SAVE_HOLD is there, no checkpoint gets beyond its first
file. What is computed stays the same.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

from plumbline.train.checkpoint import weight_files
from plumbline.train.monitoring.progress import TrainingProgress

pause, hold = float(os.environ.get("TRAIN_PAUSE", "0")), Path(os.environ.get("TRAIN_HOLD", "/nowhere"))
save_hold = Path(os.environ.get("SAVE_HOLD", "/nowhere"))
step, write = TrainingProgress.step, weight_files.write


def slow_step(self: TrainingProgress, *measured: Any) -> None:
    """The loop reports once a step."""
    time.sleep(pause)
    while hold.exists() and not asked_to_stop():
        time.sleep(0.1)
    step(self, *measured)


def write_in_parts(directory: Path, files: list[weight_files.TensorFile]) -> None:
    """In the writer's thread."""
    if save_hold.exists():
        write(directory, files[:1])
        while save_hold.exists():
            time.sleep(0.1)
    write(directory, files)


def asked_to_stop() -> bool:
    """The trainer's handler of SIGTERM is a method of its `StopRequest`."""
    return bool(getattr(getattr(signal.getsignal(signal.SIGTERM), "__self__", None), "requested", False))


if __name__ == "__main__":
    TrainingProgress.step = slow_step  # type: ignore[method-assign]
    weight_files.write = write_in_parts
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:], *os.environ.get("TRAIN_OPTIONS", "").split()]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
