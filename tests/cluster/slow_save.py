"""Stands between torchrun and the trainer where a save has to be slow: `slow_save.py -m plumbline.train ...`.

The first checkpoint that a rank writes takes it SAVE_SECONDS, as on a slow disk; the steps meanwhile wait until the
trainer was asked to stop. What is computed stays the same. The exit code goes into the file ENDED.<rank>.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time
from pathlib import Path

from plumbline.train.checkpoint import weight_files
from plumbline.train.loop import TrainingLoop

write, train_step = weight_files.write, TrainingLoop.train_step
writing = threading.Event()


def slow_write(directory: Path, files: list[weight_files.TensorFile]) -> None:
    """In the writer's thread."""
    first = not writing.is_set()
    writing.set()
    if first:
        time.sleep(float(os.environ["SAVE_SECONDS"]))
    write(directory, files)


def step_slowly(self: TrainingLoop) -> tuple[bool, bool]:
    """No run of twelve steps is over before the signal comes."""
    while writing.is_set() and not self.parts.stop.requested:
        time.sleep(0.05)
    return train_step(self)


if __name__ == "__main__":
    weight_files.write = slow_write
    TrainingLoop.train_step = step_slowly  # type: ignore[method-assign]
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        Path(f"{os.environ['ENDED']}.{os.environ['RANK']}").write_text(str(ended.code))
        raise
