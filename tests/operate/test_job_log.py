"""Why a job failed, from its logs, its state and its executor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.operate.console.job_log import StartedJob

TRACEBACK = """\
step 3/6  loss 7.1
Traceback (most recent call last):
  File "loop.py", line 1, in <module>
RuntimeError: CUDA error: an illegal memory access was encountered
"""
TORCHRUN = """\
[rank1]: Traceback (most recent call last):
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
plumbline.train FAILED
"""
SLURM = "SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'."


@pytest.mark.parametrize(
    ("log", "reason", "message"),
    [
        ("loading\nerror: x.jsonl:1: not a line of JSON\n", None, "error: x.jsonl:1: not a line of JSON"),
        (TRACEBACK, SLURM, "RuntimeError: CUDA error: an illegal memory access was encountered"),
        (TORCHRUN, SLURM, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("step 3/6  loss 7.1\n", SLURM, SLURM),
        ("step 3/6  loss 7.1\nKilled\n\n", None, "its log ends with: Killed"),
        (None, None, "there is no message"),
    ],
)
def test_the_message_of_a_failed_job(tmp_path: Path, log: str | None, reason: str | None, message: str) -> None:
    if log is not None:
        (tmp_path / "log").write_text(log)
    logs = (str(tmp_path / "log"),)
    job = StartedJob(number=1, rule="pretrain", name="", logs=logs, state=None, out=None, local=True)
    assert job.fault(reason) == message


def test_a_stop_of_an_earlier_attempt_is_no_reason(tmp_path: Path) -> None:
    job = StartedJob(number=1, rule="pretrain", name="", logs=(), state=tmp_path, out=None, local=False)
    line = {"event": "stopped", "step": 30, "time": job.since - 5}
    (tmp_path / "progress.jsonl").write_text(json.dumps(line))
    assert job.fault(SLURM) == SLURM
    (tmp_path / "progress.jsonl").write_text(json.dumps(line | {"time": job.since + 5}))
    reason = job.fault(SLURM) or ""
    assert reason.startswith("asked to stop; ") and reason.endswith(" step 30")
