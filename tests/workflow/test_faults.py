"""A killed run goes on, a broken input fails by name, and the rest of the DAG does not mind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from subprocess import Popen

import psutil
import pytest

from plumbline.core.files import sha256_file
from plumbline.operate.locks.workflow_lock import RECORD
from tests.workflow.project_copy import Project, jobs_by_rule

RUN = "transfer/base/baseline/s42"
OUTCOME = f"work/smoke/runs/{RUN}/outcome.json"
WEIGHTS = f"work/smoke/runs/{RUN}/model.safetensors"
STATE = f"work/smoke/state/{RUN}"
LOG = "logs/smoke/pretrain/transfer.base.baseline.s42.log"
COMMAND = (OUTCOME, "--config", "preset=smoke", "--set-resources", "pretrain:trainer_flags='--checkpoint-steps 10'")
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def packed(finished_copy: Project) -> Project:
    """Packs, and an undisturbed run of the smaller scale, long enough to be interrupted."""
    train = "train: {{steps: {}, batch_tokens: 256, precision: float32, validate_every: {}"
    finished_copy.edit("studies/transfer/study.yaml", train.format(6, 3), train.format(60, 30))
    process = finished_copy.snakemake(*COMMAND)
    assert process.returncode == 0 and jobs_by_rule(process.stdout) == {"pretrain": 1}, process.stdout[-4000:]
    return finished_copy


@pytest.fixture(scope="module")
def frozen(packed: Project) -> Iterator[tuple[Project, Popen[bytes], str]]:
    """Snakemake and its trainer, all stopped in the middle of pretraining; and the weights' checksum to come to."""
    expected = sha256_file(packed.root / WEIGHTS)
    for folder in (f"work/smoke/runs/{RUN}", STATE):
        os.rename(packed.root / folder, packed.root / f"{folder}.undisturbed")
    process = packed.start_snakemake(*COMMAND)
    try:
        while not list((packed.root / STATE).glob("step-*")):
            assert process.poll() is None, "Snakemake ended before its trainer had saved anything"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGSTOP)
        assert not (packed.root / OUTCOME).exists(), "the run ended before it could be stopped"
        yield packed, process, expected
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_second_snakemake_is_refused_and_a_held_lock_stays(frozen: tuple[Project, Popen[bytes], str]) -> None:
    project, first, _ = frozen
    assert project.read(f".snakemake/{RECORD}")["pid"] == first.pid
    unlock = project.python("-m", "plumbline.operate.locks.workflow_lock")
    assert unlock.returncode == 1
    assert unlock.stdout.startswith(f"error: {project.root} is held by process {first.pid} on ")
    assert f"{project.root} is held by process {first.pid}" in project.snakemake(*COMMAND).stdout


def test_kill_9_of_the_whole_group_then_the_same_command(frozen: tuple[Project, Popen[bytes], str]) -> None:
    project, process, expected = frozen
    trainers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert trainers
    while any(trainer.is_running() and trainer.status() != psutil.STATUS_ZOMBIE for trainer in trainers):
        time.sleep(0.02)

    unlock = project.python("-m", "plumbline.operate.locks.workflow_lock")
    assert unlock.stdout.startswith("removed the lock ") and f"(process {process.pid} on " in unlock.stdout
    again = project.snakemake(*COMMAND)
    assert again.returncode == 0, again.stdout[-4000:]
    assert not (project.root / ".snakemake" / RECORD).exists()

    resumed = re.search(r"resumed at step (\d+)", (project.root / LOG).read_text())
    assert resumed and int(resumed[1]) >= 10 and int(resumed[1]) % 10 == 0
    manifest = project.read(f"work/smoke/runs/{RUN}/manifest.json")
    assert manifest["resumed_from"] == [int(resumed[1])]
    assert manifest["attempts"] == 2
    assert sha256_file(project.root / WEIGHTS) == expected


@pytest.mark.slow
def test_a_truncated_shard_fails_by_name_and_the_others_finish(packed: Project) -> None:
    """The second shard belongs to the large pack alone, of which the base pack is a prefix."""
    shard = next((packed.root / "work/smoke/corpora/climbmix/packs/context64").rglob("shard-00001.bin"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    large, base = (f"work/smoke/runs/transfer/{scale}/qknorm/s42/outcome.json" for scale in ("large", "base"))
    try:
        process = packed.snakemake(large, base, *COMMAND[1:])
    finally:
        shard.write_bytes(whole)
    assert process.returncode == 1
    assert (
        "shard-00001.bin of work/smoke/corpora/climbmix/packs/context64/train/large.json is truncated" in process.stdout
    )
    assert packed.read(base)["step"] == 60 and not (packed.root / large).exists()


@pytest.mark.slow
def test_ctrl_c_saves_before_it_ends(packed: Project) -> None:
    """A terminal's Ctrl-C goes to Snakemake and to its trainer alike."""
    expected = sha256_file(packed.root / WEIGHTS)
    for folder in (f"work/smoke/runs/{RUN}", STATE):
        shutil.rmtree(packed.root / folder)
    process = packed.start_snakemake(*COMMAND[:-1], "pretrain:trainer_flags='--checkpoint-every 10min'")
    progress = packed.root / STATE / "progress.jsonl"
    while not (progress.exists() and '"event": "start"' in progress.read_text()):
        assert process.poll() is None, "Snakemake ended before its trainer had begun"
        time.sleep(0.02)
    time.sleep(0.2)  # a few steps
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) != 0
    assert not (packed.root / OUTCOME).exists(), "the run ended before it could be interrupted"
    saved = re.search(r"asked to stop; saved at step (\d+), run me again", (packed.root / LOG).read_text())
    assert saved
    done = packed.snakemake(*COMMAND)
    assert done.returncode == 0, done.stdout[-4000:]
    assert packed.read(f"work/smoke/runs/{RUN}/manifest.json")["resumed_from"] == [int(saved[1])]
    assert sha256_file(packed.root / WEIGHTS) == expected


def test_a_broken_corpus_file_fails_by_name(packed: Project) -> None:
    """Last, since what is made of the user's own texts replaces what all of the above read."""
    packed.local_corpus()
    (packed.root / "texts/more.jsonl").write_text('{"id": "x", "source": "made-up", "te')
    other, outcome = packed.root / "results/smoke/transfer/table1.csv", packed.root / OUTCOME
    other.unlink()
    before = outcome.stat().st_mtime_ns
    process = packed.snakemake(str(other.relative_to(packed.root)), *COMMAND[:3], "data={source: local}")
    assert process.returncode == 1
    assert "texts/more.jsonl:1: not a line" in process.stdout
    assert outcome.stat().st_mtime_ns == before and other.exists()
