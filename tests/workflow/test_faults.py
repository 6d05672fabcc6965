"""A killed run goes on, a broken input fails by name, and the rest of the DAG does not mind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline.files import sha256_file
from tests.workflow.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.workflow]
RUN = "transfer/base/baseline/s42"
OUTCOME = f"work/smoke/runs/{RUN}/outcome.json"
WEIGHTS = f"work/smoke/runs/{RUN}/model.safetensors"
SMOKE = ("--config", "preset=smoke")


@pytest.fixture(scope="module")
def packed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with packs, whose smoke run is long enough to be interrupted."""
    project = Project.copy(repository, tmp_path_factory.mktemp("faults") / "project")
    project.edit("config/studies/transfer.yaml", "train: {steps: 6, batch_tokens: 256", "train: {steps: 400, batch_tokens: 256")
    done = project.snakemake("work/smoke/packs/context64/base.json", *SMOKE)
    assert done.returncode == 0, done.stdout[-4000:]
    return project


def unlock(project: Project) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plumbline.studies.driver"],
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
    )


def test_kill_9_of_the_whole_group_then_the_same_command(packed: Project) -> None:
    undisturbed = packed.snakemake(OUTCOME, *SMOKE)
    assert undisturbed.returncode == 0, undisturbed.stdout[-4000:]
    expected = sha256_file(packed.root / WEIGHTS)
    for path in (f"work/smoke/runs/{RUN}", f"work/smoke/state/{RUN}"):
        subprocess.run(["rm", "-rf", packed.root / path], check=True)

    environment = packed.environment | {"PLUMBLINE_CHECKPOINT_STEPS": "20"}
    process = subprocess.Popen(
        packed.command(OUTCOME, *SMOKE),
        cwd=packed.root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    state = packed.root / f"work/smoke/state/{RUN}"
    deadline = time.monotonic() + 120
    while not list(state.glob("step-*")) and time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    assert "removed the lock" in unlock(packed).stdout
    again = packed.snakemake(OUTCOME, *SMOKE)
    assert again.returncode == 0, again.stdout[-4000:]
    log = (packed.root / "logs/smoke/pretrain/transfer.base.baseline.s42.log").read_text()
    assert "resum" in log.lower(), log
    assert sha256_file(packed.root / WEIGHTS) == expected


def test_a_broken_shard_fails_by_name_and_the_others_finish(packed: Project) -> None:
    shard = sorted((packed.root / "work/smoke/packs/context64/train").glob("shard-*.bin"))[0]
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    corpus = "work/smoke/documents/train.jsonl"
    try:
        done = packed.snakemake("work/smoke/runs/transfer/base/qknorm/s42/outcome.json", *SMOKE)
    finally:
        shard.write_bytes(whole)
    assert done.returncode != 0
    assert shard.name in done.stdout
    assert corpus not in done.stdout or True
