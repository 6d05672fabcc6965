"""Several ranks train the same run as one: DDP, FSDP2, other numbers of ranks on resume, and stopping together."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

from plumbline.core import frames
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup, gradient_sync, parallel
from tests.model_specs import run_spec
from tests.operator_calls import Calls
from tests.train.intervention_cases import MUON
from tests.train.small_runs import PROBES, read, settings, start_ranks, train, train_ranks


def assert_alike(work: Path, reference: Path) -> None:
    """The same run up to rounding: every loss, every gradient norm, and the weights."""
    mine, other = (frames.read(path / "out/metrics.parquet", "metrics") for path in (work, reference))
    assert mine.step.tolist() == other.step.tolist() and mine.split.tolist() == other.split.tolist()
    for column in ("loss", "grad_norm"):
        torch.testing.assert_close(
            torch.tensor(mine[column].values), torch.tensor(other[column].values), rtol=2e-5, atol=1e-6, equal_nan=True
        )
    weights, expected = (load_file(path / "out/model.safetensors") for path in (work, reference))
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=1e-3, atol=2e-5)


def assert_probed_alike(work: Path, reference: Path) -> None:
    """The same probe points: what was read online, and the weights that were kept."""
    mine, other = (frames.read(path / "out/points/online.parquet", "probes") for path in (work, reference))
    assert mine.drop(columns=["value", "run_id"]).equals(other.drop(columns=["value", "run_id"]))
    torch.testing.assert_close(torch.tensor(mine.value), torch.tensor(other.value), rtol=1e-3, atol=2e-5)
    names = sorted(path.name for path in (reference / "out/points").glob("*.safetensors"))
    assert names == sorted(path.name for path in (work / "out/points").glob("*.safetensors")) and len(names) == 3
    for name in names:
        weights, expected = (load_file(path / "out/points" / name) for path in (work, reference))
        for key, value in expected.items():
            torch.testing.assert_close(weights[key], value, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_ranks_train_as_one(packs: Path, tmp_path: Path, probed: Path, strategy: str) -> None:
    """With accumulation, and a validation set that the ranks cannot share evenly (10 sequences, 2 at a time); losses
    are read late, which is the same run."""
    chosen = settings(packs, tmp_path, micro_batch=2, strategy=strategy, metric_lag_steps=3)
    assert train_ranks(2, run_spec(probes=PROBES), chosen) == [0, 0]
    assert_alike(tmp_path, probed)
    assert_probed_alike(tmp_path, probed)
    manifest = read(tmp_path / "out/manifest.json")
    assert (manifest["world_size"], manifest["micro_batch"], manifest["accumulation"]) == (2, 2, 2)


def test_sharded_layers_are_gathered_once_a_step() -> None:
    """For the first micro-batch's forward pass; what no gradient follows leaves them sharded."""
    if distributed.is_initialized():
        pytest.skip("a process group is already there")
    spec = run_spec().model
    distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        model = parallel(create(spec, 0), RankGroup(rank=0, world=2, device=torch.device("cpu")), "fsdp")
        tokens_BT = torch.zeros(1, spec.context, dtype=torch.long)
        for _ in range(2):  # steps
            with Calls() as calls:
                for last in (False, False, True):
                    with gradient_sync(model, last):
                        model(tokens_BT, loss=True).backward()
            names = [name for name, _ in calls.made]
            assert names.count("_allgather_base_") == names.count("_reduce_scatter_base_") == spec.layers + 1
        for _ in range(2):  # of validation
            with Calls() as calls, torch.no_grad():
                model(tokens_BT, loss=True)
            assert [name for name, _ in calls.made].count("_allgather_base_") == spec.layers + 1
    finally:
        distributed.destroy_process_group()


def test_sharded_state_resumes_on_any_number_of_ranks(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    """One rank, stopped inside step 4; two sharded ranks, which agree after step 8; four after step 10; one to the end.
    (The 97 rows of the embedding go into neither evenly.)"""
    stages = [(1, "ddp", 4), (2, "fsdp", 8), (4, "fsdp", 10), (1, "ddp", None)]
    for world, strategy, last in stages:
        chosen = settings(packs, tmp_path, strategy=strategy, checkpoint_steps=4)
        environment = {} if last is None else {"STOP_AFTER_STEP": str(last)}
        codes = train_ranks(world, run_spec(), chosen, **environment)
        assert codes == [0 if last is None else EXIT_RUN_AGAIN] * world
        newest = max((tmp_path / "state").glob("step-*"))
        assert len(list((newest / "shards").glob("rank-*.safetensors"))) == (world if strategy == "fsdp" else 0)
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [3, 8, 10]
    assert_alike(tmp_path, undisturbed)


def test_a_signal_to_one_rank_stops_them_all(packs: Path, tmp_path: Path) -> None:
    """At the step at which all of them read the wish, two steps later."""
    processes = start_ranks(2, run_spec(train__steps=100000), settings(packs, tmp_path, metric_lag_steps=2))
    progress = tmp_path / "state" / "progress.jsonl"
    while not (progress.exists() and '"step": 3,' in progress.read_text()) and processes[0].is_alive():
        time.sleep(0.02)
    os.kill(processes[1].pid, signal.SIGTERM)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [EXIT_RUN_AGAIN] * 2
    assert '"event": "stopped"' in progress.read_text()


def test_ranks_that_read_late_agree_about_a_divergence(packs: Path, tmp_path: Path) -> None:
    """Nothing of the steps that follow it is in the weights, which each of them holds in parts."""
    spec = run_spec(optimizer=MUON | {"learning_rate": 1e9})
    assert train_ranks(2, spec, settings(packs, tmp_path, strategy="fsdp", metric_lag_steps=3)) == [0, 0]
    outcome = read(tmp_path / "out/outcome.json")
    assert (outcome["outcome"], outcome["step"], outcome["weights_step"]) == ("diverged", 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_four_ranks_train_as_one(packs: Path, tmp_path: Path, undisturbed: Path, strategy: str) -> None:
    assert train_ranks(4, run_spec(), settings(packs, tmp_path, strategy=strategy)) == [0] * 4
    assert_alike(tmp_path, undisturbed)


def test_one_rank_needs_no_process_group(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    assert train(run_spec(), settings(packs, tmp_path, strategy="fsdp")) == 0
    assert_alike(tmp_path, undisturbed)
