"""Two machines take a run on a network's file system from each other. It mostly waits, as the cluster's tests do."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.train.conftest import packs
from tests.train.small_runs import products, read
from tests.train.test_network_folder import start, two

__all__ = ["packs", "two"]
pytestmark = pytest.mark.cluster


def recorded(starts: Path) -> int:
    """Number of starts that this machine sees; none while the folder changes hands under it."""
    try:
        return len(read(starts))
    except OSError:
        return 0


def test_a_run_that_two_machines_take_from_each_other(packs: Path, two: dict[str, Path], tmp_path: Path) -> None:
    """Each is killed, the other one takes over when it hears no heartbeat; the last one is left alone."""
    whole, chance, steps = tmp_path / "whole", random.Random(27), 150
    alone = start("one", packs, whole, steps)
    alone.join(300)
    starts = two["one"] / "state/starts.json"
    for turn in range(6):
        name = ("one", "other")[turn % 2]
        trainer = start(name, packs, two[name], steps)
        while turn < 5 and recorded(starts) != turn + 1:
            assert trainer.is_alive()
            time.sleep(0.05)
        if turn < 5:
            time.sleep(chance.uniform(0, 1))
            os.kill(trainer.pid, signal.SIGKILL)
        trainer.join(300)
    assert trainer.exitcode == 0 and products(two["one"]) == products(whole)
    assert [entry["machine"] for entry in read(starts)] == ["one", "other"] * 3
    at = [entry["step"] for entry in read(starts)]
    assert at == sorted(at) and at[-1] > 0, "nobody began anew"
