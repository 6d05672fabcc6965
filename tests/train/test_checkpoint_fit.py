"""Checkpoints whose checksums fit and whose tensors do not: an earlier one is taken, and the run ends the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from plumbline.core.files import atomic_write_json, canonical_json, sha256_file, sha256_text
from plumbline.train.checkpoint.checkpoint_folders import METADATA
from plumbline.train.checkpoint.weight_files import HEADER, shard_name
from tests.model_specs import run_spec
from tests.train.small_runs import products, settings, train

Tensors = dict[str, torch.Tensor]
MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
KEY = "blocks.0.attention.projections.key.weight"


@pytest.fixture(scope="module")
def stopped(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a run whose newest checkpoints are those after steps 4 and 8."""
    work = tmp_path_factory.mktemp("stopped")
    assert train(run_spec(), settings(packs, work, checkpoint_steps=4)) == 0
    shutil.rmtree(work / "state/step-0000012")
    return work / "state"


def sign(checkpoint: Path) -> None:
    """Let the metadata say that a checkpoint is what lies there."""
    content = json.loads((checkpoint / METADATA).read_text())
    del content["sha256"]
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != METADATA)
    content["files"] = {
        str(path.relative_to(checkpoint)): {"bytes": path.stat().st_size, "sha256": sha256_file(path)} for path in files
    }
    atomic_write_json(checkpoint / METADATA, content | {"sha256": sha256_text(canonical_json(content))})


def tensors(name: str, change: Callable[[Tensors], Tensors]) -> Callable[[Path], object]:
    def apply(checkpoint: Path) -> None:
        changed = change(load_file(checkpoint / name))
        save_file({key: value.contiguous() for key, value in changed.items()}, checkpoint / name)

    return apply


def one(name: str, change: Callable[[torch.Tensor], torch.Tensor], key: str = KEY) -> Callable[[Path], object]:
    return tensors(name, lambda state: state | {key: change(state[key])})


def loop(**changed: object) -> Callable[[Path], object]:
    return lambda checkpoint: atomic_write_json(
        checkpoint / "loop.json", json.loads((checkpoint / "loop.json").read_text()) | changed
    )


def random(**changes: Callable[[object], object]) -> Callable[[Path], object]:
    """The random states of the only rank, each changed as `changes` has it."""

    def apply(checkpoint: Path) -> None:
        (states,) = json.loads((checkpoint / "loop.json").read_text())["random"]
        loop(random=[states | {kind: change(states[kind]) for kind, change in changes.items()}])(checkpoint)

    return apply


def shard(checkpoint: Path) -> None:
    """As one rank of sharded training writes it, one weight as one row of it."""
    state = {
        f"{kind}.{key}": value
        for kind, name in (("model", MODEL), ("optimizer", OPTIMIZER))
        for key, value in load_file(checkpoint / name).items()
    }
    state[f"model.{KEY}"] = state[f"model.{KEY}"][:1].clone()
    places = {key: {"shape": list(value.shape), "first": 0} for key, value in state.items()}
    (checkpoint / "shards").mkdir()
    header = {HEADER: json.dumps({"ranks": 1, "tensors": places})}
    save_file(state, checkpoint / "shards" / shard_name(0), metadata=header)
    for name in (MODEL, OPTIMIZER):
        (checkpoint / name).unlink()


ATTACKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a row, which would be spread over the matrix": (one(MODEL, lambda v: v[:1]), "is F32 of shape [1, 32], and the"),
    "a row, sharded": (shard, "is F32 of shape [1, 32], and the run's is F32 of [16, 32]"),
    "turned over": (one(MODEL, lambda v: v.T), "is F32 of shape [32, 16]"),
    "half the digits": (one(MODEL, lambda v: v.half()), "is F16 of shape [16, 32]"),
    "not finite": (one(MODEL, lambda v: v * torch.nan), "has values that are not finite, and was saved as finite"),
    "missing": (tensors(MODEL, lambda held: {k: v for k, v in held.items() if k != KEY}), f"model.{KEY} is missing"),
    "one more": (tensors(MODEL, lambda held: held | {"x": torch.ones(1)}), "model.x is of no parameter"),
    # Before, the fused optimizer read beyond it and ended the process.
    "a moment cut short": (one(OPTIMIZER, lambda v: v[:1], f"{KEY}.exp_avg"), "exp_avg is F32 of shape [1, 32]"),
    "a moment that is no number": (one(OPTIMIZER, lambda v: v * torch.nan, f"{KEY}.exp_avg"), "not finite"),
    "a moment missing": (
        tensors(OPTIMIZER, lambda held: {k: v for k, v in held.items() if k != f"{KEY}.exp_avg"}),
        "has exp_avg_sq, step, which no optimizer of ours keeps",
    ),
    "more updates than steps": (one(OPTIMIZER, lambda v: v + 1, f"{KEY}.step"), "step counts 9 updates in 8 steps"),
    "another step": (loop(step=7), "loop.json is of another checkpoint: step 7, not 8"),
    "no random states": (loop(random=[]), "loop.json is of another checkpoint: ranks 0, not 1"),
    "a random state cut short": (random(torch=lambda text: text[:400]), "loop.json: the random state of rank 0 cannot"),
    "a random state of another kind": (random(python=lambda state: [3, [1, 2], None]), "of rank 0 cannot be set"),
    "other rows": (lambda at: np.save(at / "metrics.npy", np.zeros(3)), "metrics.npy holds float64 of shape (3,)"),
    "no weights": (lambda at: (at / MODEL).unlink(), "it lacks a file: No such file or directory: "),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_state_of_the_run_is_set_aside(
    packs: Path, tmp_path: Path, stopped: Path, undisturbed: Path, capfd: pytest.CaptureFixture[str], attack: str
) -> None:
    change, message = ATTACKS[attack]
    newest = shutil.copytree(stopped, tmp_path / "state") / "step-0000008"
    change(newest)
    sign(newest)
    assert train(run_spec(), settings(packs, tmp_path, checkpoint_steps=4)) == 0
    stderr = capfd.readouterr().err
    assert f"checkpoint {newest} is damaged (" in stderr and message in stderr and "resumed at step 4" in stderr
    assert products(tmp_path) == products(undisturbed) and newest.with_name("step-0000008.damaged").is_dir()
