"""Small runs, in this process and in processes that can be killed."""

from __future__ import annotations

import json
import multiprocessing
import socket
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.core.files import sha256_file
from plumbline.core.stop_request import StopRequest
from plumbline.specs.spec import RunSpec
from plumbline.train.trainer_settings import TrainerSettings

#: Children are forked from a server that has imported torch and done nothing else: they start at once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.train.child_processes"])


#: Probe points of every kind: at fractions (one of them the end) and online, on different numbers of sequences.
PROBES = [
    {"name": "query_key_norms", "at": [0.0, 0.3, 0.9, 1.0], "sequences": 4},
    {"name": "query_key_norms", "every": 5, "sequences": 3},
]


def make_packs(directory: Path) -> Path:
    """A training and a validation pack of sequences that a model can learn from."""
    generator = np.random.default_rng(7)
    walk = generator.integers(0, 5, (220, 32)).cumsum(axis=1) % 97
    write_pack(directory / "train.json", walk[:180])
    write_pack(directory / "validation.json", walk[180:])
    return directory


def write_pack(manifest: Path, tokens_ST: np.ndarray) -> None:
    """A pack of one shard that holds `tokens_ST` (sequences, tokens)."""
    shard = manifest.with_suffix(".bin")
    shard.write_bytes(tokens_ST.astype("<u2").tobytes())
    sequences, context = tokens_ST.shape
    content = {
        "context": context,
        "dtype": "<u2",
        "sequences": sequences,
        "sequences_per_shard": sequences,
        "shards": [{"file": shard.name, "sequences": sequences, "sha256": sha256_file(shard)}],
        "tokenizer_sha256": "0" * 64,
        "vocabulary": 97,
    }
    manifest.write_text(json.dumps(content))


def settings(packs: Path, work: Path, **overrides: Any) -> TrainerSettings:
    """Settings of a run whose state and outputs lie under `work`."""
    defaults = {
        "training_pack": packs / "train.json",
        "validation_pack": packs / "validation.json",
        "state": work / "state",
        "out": work / "out",
        "device": "cpu",
        "report_seconds": 0.0,
    }
    return TrainerSettings(**(defaults | overrides))


def train(spec: RunSpec, chosen: TrainerSettings, stop: StopRequest | None = None) -> int:
    """Train in this process."""
    from plumbline.train.pretrain import pretrain

    return pretrain(spec, chosen, stop or StopRequest())


def products(work: Path) -> dict[str, str]:
    """SHA-256 of the outputs that must not depend on how a run was interrupted, by their paths."""
    files = [path for path in (work / "out").rglob("*") if path.is_file()]
    names = {str(path.relative_to(work / "out")) for path in files} - {"manifest.json", "outcome.json"}
    return {name: sha256_file(work / "out" / name) for name in sorted(names)}


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text())


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_child(
    spec: RunSpec, chosen: TrainerSettings, environment: dict[str, str] | None = None, operations: int | None = None
) -> Any:
    """Train in another process; its exit code is the trainer's (1 for a PlumblineError).

    With `operations`, the process kills itself before that many file operations.
    """
    from tests.train.child_processes import child

    process = PROCESSES.Process(target=child, args=(spec.to_json(), chosen, environment or {}, operations))
    process.start()
    return process


def train_ranks(world: int, spec: RunSpec, chosen: TrainerSettings, **environment: str) -> list[int]:
    """Train on several ranks, as torchrun would start them."""
    processes = start_ranks(world, spec, chosen, **environment)
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def start_ranks(world: int, spec: RunSpec, chosen: TrainerSettings, **environment: str) -> list[Any]:
    """Start the ranks and return their processes."""
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **environment}
    return [start_child(spec, chosen, common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(world)]
