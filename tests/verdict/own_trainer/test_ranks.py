"""Ranks of a launcher are told apart: rank 0 gives the value of what all print, and a rank that failed is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plumbline.verdict.own_trainer import ranks
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.metric import LoggedMetric
from plumbline.verdict.own_trainer.requests import Result, read_result
from tests.verdict.own_trainer.trainers import make, trainer, write_toml

#: Starts two ranks, of which the second one ends last.
LAUNCHER = """\
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
    for rank in range(2)
]
sys.exit(max(rank.wait() for rank in ranks))
"""
#: Each writes its line in parts, while the other one writes its own.
WORKER = """\
import os, sys, time
rank = int(os.environ["RANK"])
time.sleep(0.3 * rank)
sys.stdout.write("val_"); sys.stdout.write("bpb: "); time.sleep(0.6); print(1.5 + rank / 10)
if "fail" in sys.argv and rank == 1:
    raise ValueError("a rank")
"""
#: The same with torch's own launcher and process group.
OF_TORCH = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
own = torch.tensor(float(dist.get_rank()))
total = own.clone(); dist.all_reduce(total)
dist.barrier()
print(f"val_bpb: {total.item() + own.item() / 10:.5f}", flush=True)
dist.destroy_process_group()
"""


def run(folder: Path, command: str, worker: str = WORKER) -> tuple[CommandTrainer, Result]:
    make(folder)
    (folder / "launch.py").write_text(LAUNCHER)
    (folder / "train.py").write_text(worker)
    write_toml(folder, 'seed = "env:SEED"', command=command)
    arms = trainer(folder)
    list(arms.run([("candidate", 7)]))
    result = read_result(arms.folder.runs / f"{arms.run_id('candidate', 7)}.result.json")
    assert result is not None
    return arms, result


def test_rank_0_gives_the_value_of_what_several_ranks_print(tmp_path: Path) -> None:
    _, result = run(tmp_path / "mine", "python launch.py train.py")
    assert (result.value, result.text, result.outcome) == (1.5, "1.5", "finished")
    assert result.remarks == ["ranks 0, 1 print val_bpb, each its own: that of rank 0 counts"]


def test_a_rank_that_failed_is_named(tmp_path: Path) -> None:
    _, result = run(tmp_path / "mine", "python launch.py train.py fail || true")
    assert "rank 1, train.py: exit code 1 (ValueError: a rank)" in (result.failed or ()), result
    assert not any(failure.startswith("rank 0") for failure in result.failed or ())


@pytest.mark.parametrize(
    ("texts", "value", "remark"),
    [
        ({0: {"": "2.5"}, 1: {"": "2.5"}}, 9.0, ""),
        ({0: {"": "2.5"}}, 9.0, ""),
        ({0: {"": "2.5"}, 1: {"": "2.6"}}, 2.5, "that of rank 0 counts"),
        ({1: {"": "2.5"}, 2: {"": "2.6"}}, 9.0, "of whichever rank"),
    ],
)
def test_which_rank_counts(texts: dict[int, dict[str, str]], value: float, remark: str) -> None:
    read, text = ranks.choose_first_rank(LoggedMetric(value=9.0, text="9.0"), texts, "loss")
    assert read.value == value and remark in text and bool(remark) == bool(text)


def test_ranks_of_torchrun(tmp_path: Path) -> None:
    command = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 train.py"
    _, result = run(tmp_path / "mine", command, OF_TORCH)
    assert (result.value, result.outcome) == (1.0, "finished"), result
    assert result.remarks == ["ranks 0, 1 print val_bpb, each its own: that of rank 0 counts"]
