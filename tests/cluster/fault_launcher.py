"""Stands between srun and the trainer in fault tests: `python fault_launcher.py -m plumbline.train ...`.

Runs the module as Python would, with the options in TRAIN_OPTIONS added and TRAIN_PAUSE seconds of sleep a step: a
model of 80,000 parameters would be done before anything could happen to it. What is computed stays the same.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from typing import Any

from plumbline.train.monitoring.progress import TrainingProgress

pause = float(os.environ.get("TRAIN_PAUSE", "0"))
step = TrainingProgress.step


def slow_step(self: TrainingProgress, *measured: Any) -> None:
    """The loop reports once a step."""
    time.sleep(pause)
    step(self, *measured)


if __name__ == "__main__":
    TrainingProgress.step = slow_step  # type: ignore[method-assign]
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:], *os.environ.get("TRAIN_OPTIONS", "").split()]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
