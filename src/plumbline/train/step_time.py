"""Measures how long a training step of several runs takes, side by side in one process.

Every run's loop is built as `pretrain` builds it, and the loops then take one step each in turn: what slows the machine
down for a while slows all of them. A step is all that the loop does for one: the interventions' beginning, forward and
backward passes over micro-batches, clipping, the optimizer, the interventions' changes. Validation, probes and
checkpoints are not part of it. All runs read the same sequences of random tokens.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pandas as pd
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, sha256_file
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import join_ranks
from plumbline.model.numerics import numerics
from plumbline.specs.spec import RunSpec
from plumbline.train.compiling import CompiledModel
from plumbline.train.loop import TrainingLoop
from plumbline.train.pretrain import build_loop
from plumbline.train.trainer_settings import TrainerSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingSettings:
    """The settings with which steps are timed.

    Units: `sequences` in a step's batch, `micro_batch` of them at a time (None: all), `repeats` timed steps of each run
    after `warmup` steps that are not.
    """

    sequences: int
    micro_batch: int | None = None
    repeats: int = 20
    warmup: int = 3
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compile: bool = False


def measure(specs: Sequence[RunSpec], timing: TimingSettings, report: Callable[[str], None]) -> pd.DataFrame:
    """Time steps; one row each: key of the run, repeat (from 0), place (which of the runs it was this time, from 0),
    seconds.

    The first of the runs rotates from repeat to repeat.

    Raises:
        PlumblineError: the runs read other data, a key stands twice, several ranks, a run diverged, or the compiler
            failed.
    """
    _require_comparable(specs)
    with join_ranks(timing.device) as group, tempfile.TemporaryDirectory(prefix="plumbline-steps-") as folder:
        if group.world > 1:
            raise PlumblineError("step times are measured in one process; start it without torchrun")
        numerics(group.device)
        sequences = max(timing.sequences, 1 + max(spec.sequences_apart for spec in specs))
        pack = random_pack(Path(folder) / "random.json", specs[0], sequences)
        loops = []
        for number, spec in enumerate(specs):
            settings = TrainerSettings(
                training_pack=pack,
                validation_pack=pack,
                state=Path(folder) / str(number),
                out=Path(folder) / str(number),
                micro_batch=timing.micro_batch,
                device=timing.device,
                compile=timing.compile,
                checkpoint_seconds=math.inf,
                report_seconds=math.inf,
            )
            loop = build_loop(on_random_tokens(spec, timing), settings, StopRequest(), group)
            if isinstance(loop.parts.forward, CompiledModel) and loop.parts.forward.fault:
                raise PlumblineError(
                    f"step times: {spec.key} is not compiled ({loop.parts.forward.fault}); fix that, or measure "
                    "without compiling"
                )
            loops.append(loop)
        return _time_in_turn(loops, timing, group.device, report)


def _time_in_turn(
    loops: list[TrainingLoop], settings: TimingSettings, device: torch.device, report: Callable[[str], None]
) -> pd.DataFrame:
    rows = []
    for number in range(settings.warmup + settings.repeats):
        first = number % len(loops)
        for place, loop in enumerate(loops[first:] + loops[:first]):
            seconds = step_seconds(loop, device)
            if not loop.catch_up():
                raise PlumblineError(
                    f"step times: {loop.parts.spec.key} diverged on random tokens "
                    f"({loop.state.divergence['reason']}), and an unfinished step has "
                    "no time; choose a lower learning rate"
                )
            if number >= settings.warmup:
                rows.append((loop.parts.spec.key, number - settings.warmup, place, seconds))
        if number in (settings.warmup - 1, settings.warmup + settings.repeats - 1):
            report(f"{number + 1} steps of {len(loops)} runs on {device}")
    return pd.DataFrame.from_records(rows, columns=["key", "repeat", "place", "seconds"])


def step_seconds(loop: TrainingLoop, device: torch.device) -> float:
    """Measure the wall time of one step of a loop, until the device has done all of it."""
    _wait(device)
    began = time.perf_counter()
    loop.train_step()
    _wait(device)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def on_random_tokens(spec: RunSpec, settings: TimingSettings) -> RunSpec:
    """Change a run's spec to a batch of `sequences` random sequences, enough steps, and next to no validation."""
    train = msgspec.structs.replace(
        spec.train,
        batch_tokens=settings.sequences * spec.model.context,
        steps=max(spec.train.steps, settings.warmup + settings.repeats),
        validation_sequences=1,
    )
    return msgspec.structs.replace(spec, train=train, probes=(), data_seed=0)


def random_pack(manifest: Path, spec: RunSpec, sequences: int) -> Path:
    """Write a pack of so many sequences of random tokens."""
    draw = np.random.default_rng(0)
    tokens_ST = draw.integers(0, spec.data.tokenizer_vocabulary, (sequences, spec.model.context)).astype("<u4")
    shard = manifest.with_suffix(".bin")
    shard.write_bytes(tokens_ST.tobytes())
    content = {
        "context": spec.model.context,
        "dtype": "<u4",
        "sequences": sequences,
        "sequences_per_shard": sequences,
        "shards": [{"file": shard.name, "sequences": sequences, "sha256": sha256_file(shard)}],
        "tokenizer_sha256": "random tokens",
        "vocabulary": spec.data.tokenizer_vocabulary,
    }
    atomic_write_json(manifest, content)
    return manifest


def _require_comparable(specs: Sequence[RunSpec]) -> None:
    keys = [spec.key for spec in specs]
    if not keys or len(set(keys)) < len(keys):
        raise PlumblineError(f"step times: name each run once (they are {keys})")
    reads = {(spec.model.context, spec.data.tokenizer_vocabulary, spec.train.precision) for spec in specs}
    if len(reads) > 1:
        raise PlumblineError(
            f"step times: {', '.join(keys)} differ in context, vocabulary or precision, so their steps are not "
            "comparable; compare runs of one scale"
        )
