"""Attacks on sharded training: kill -9 of one rank or of all, at random instants. Whatever was killed, the run that is
started again ends with the weights of one that nobody disturbed.

``PLUMBLINE_KILLS=100`` asks for so many; a failure names the seed, and ``PLUMBLINE_KILLS_SEED`` draws other instants.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.model_specs import run_spec
from tests.train.small_runs import products, read, settings, start_ranks, train_ranks

SPEC = run_spec(train__steps=30)
KILLS = int(os.environ.get("PLUMBLINE_KILLS", "3"))
SEED = int(os.environ.get("PLUMBLINE_KILLS_SEED", "27"))


def ends(work: Path) -> list[str | None]:
    return [entry.get("ended") for entry in read(work / "state/starts.json")]


def test_a_killed_rank_is_no_fault_of_the_run(packs: Path, tmp_path: Path) -> None:
    """However often it is killed before the first checkpoint; the other one states that it lost a rank."""
    chosen = settings(packs, tmp_path, strategy="fsdp", max_starts_without_progress=2)
    for _ in range(2):
        assert train_ranks(2, run_spec(), chosen, FALL="killed") == [1, -signal.SIGKILL]
    reasons = [start["reason"] for start in read(tmp_path / "state/starts.json")]
    assert all("word (killed," in reason for reason in reasons)
    assert train_ranks(2, run_spec(), chosen) == [0, 0]
    assert ends(tmp_path) == ["rank lost", "rank lost", "completed"]


def test_a_rank_that_falls_to_an_error_leaves_word(packs: Path, tmp_path: Path) -> None:
    """That is a fault, which counts, and the record states which rank it was."""
    chosen = settings(packs, tmp_path, strategy="fsdp", max_starts_without_progress=1)
    assert train_ranks(2, run_spec(), chosen, FALL="error") == [1, 1]
    (start,) = read(tmp_path / "state/starts.json")
    assert (start["ended"], start["reason"]) == (
        "fault",
        "RuntimeError: rank 1: ZeroDivisionError: nothing to divide by",
    )


def test_a_rank_whose_disk_fails_is_no_fault_of_the_run(packs: Path, tmp_path: Path) -> None:
    """However often it cannot read its sequences; the record states which rank it was."""
    chosen = settings(packs, tmp_path, strategy="fsdp", max_starts_without_progress=1)
    for _ in range(2):
        assert train_ranks(2, run_spec(), chosen, FALL="disk") == [1, 1]
    starts = read(tmp_path / "state/starts.json")
    assert [start["ended"] for start in starts] == ["disk error"] * 2 and "rank 1: " in starts[0]["reason"]


def join_ranks(ranks: list[Any], seconds: float) -> list[int | None]:
    """The exit codes of ranks once all have ended; those that have not by then are killed, as torchrun does it."""
    deadline = time.monotonic() + seconds
    for rank in ranks:
        rank.join(max(0.0, deadline - time.monotonic()))
        if rank.exitcode is None:
            rank.kill()
            rank.join()
    return [rank.exitcode for rank in ranks]


def kill_ranks(ranks: list[Any], victims: list[Any], delay: float) -> bool:
    """Kill some of the ranks after `delay` seconds; False if they had ended before."""
    time.sleep(delay)
    hit = [rank for rank in victims if rank.is_alive()]
    for rank in hit:
        os.kill(rank.pid, signal.SIGKILL)
    if not hit:
        return False
    for rank in ranks:  # as torchrun does for those that are left
        rank.terminate()
    join_ranks(ranks, 20)
    return True


@pytest.mark.slow
def test_kills_at_random_instants(packs: Path, tmp_path: Path) -> None:
    """With a checkpoint after every step, so that one is being written most of the time."""
    chance, expected, seconds = random.Random(SEED), None, 0.0
    total = run = 0
    while total < KILLS:
        work, of_this = tmp_path / f"run-{run}", 0
        while True:
            began = time.monotonic()
            ranks = start_ranks(2, SPEC, settings(packs, work, strategy="fsdp", checkpoint_steps=1))
            left_alone = run < 2 or of_this == 4 or total == KILLS  # the first start of all is slower
            victims = ranks if chance.random() < 0.3 else [chance.choice(ranks)]
            if left_alone or not kill_ranks(ranks, victims, chance.uniform(0.0, seconds)):
                assert join_ranks(ranks, 120) == [0, 0]
                break
            total, of_this = total + 1, of_this + 1
        if run < 2:
            expected, seconds = products(work), time.monotonic() - began
        assert products(work) == expected, f"seed {SEED}, {work}, after {of_this} kills"
        assert "fault" not in ends(work)
        print(f"{work.name}: {of_this} kills, starts {ends(work)}, {total} kills in all", flush=True)
        run += 1
