"""Checks that what a checkpoint holds is a state of its run, before anything is restored from it.

Its checksums say that the bytes are those that were written. This says that they can be resumed from: copied into a
model, a tensor of another shape may be spread over it, one of another type lose its digits, and one that is not finite
end the run as a divergence that it never had.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.data import npy
from plumbline.model.decoder import Decoder
from plumbline.specs.spec import RunSpec
from plumbline.train import interventions, randomness
from plumbline.train.checkpoint.rolling_checkpoints import DamagedCheckpoint
from plumbline.train.checkpoint.sharded_tensors import ShardReader
from plumbline.train.checkpoint.training_state import LOOP, METRICS, ONLINE, ONLINE_ROW
from plumbline.train.checkpoint.weight_files import MODEL, OPTIMIZER, SHARDS
from plumbline.train.monitoring.run_metrics import ROW

#: What our optimizers keep of a parameter, or keep once it had a gradient. Nothing is known of others here.
KEPT = ({"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"})
OURS = ("adamw", "muon")


def require(directory: Path, metadata: dict[str, Any], spec: RunSpec) -> None:
    """Check that a checkpoint, whose files are as they were written, can be a state of the run of `spec`.

    Raises:
        DamagedCheckpoint: it cannot; the message says in what.
        OSError: something of it cannot be read.
    """
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in Decoder(spec.model).named_parameters()}
    try:
        _require_tensors(directory, shapes, metadata, spec.optimizer.name in OURS)
        _require_rows(directory / METRICS, ROW)
        if any(probe.every for probe in spec.probes):
            _require_rows(directory / ONLINE, ONLINE_ROW)
        _require_loop(directory / LOOP, metadata, len(interventions.build(spec.interventions)))
    except FileNotFoundError as error:
        raise DamagedCheckpoint(f"it lacks a file: {error}") from error
    except (SafetensorError, PlumblineError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedCheckpoint(f"it is no state of this run: {error!r}") from error


def _require_tensors(directory: Path, shapes: dict[str, torch.Size], metadata: dict[str, Any], ours: bool) -> None:
    found: dict[str, set[str]] = {name: set() for name in shapes}
    missing = set(shapes)
    for key, dtype, value in _tensors(directory):
        kind, _, name = key.partition(".")
        parameter, _, entry = (name, "", "") if kind == "model" else name.rpartition(".")
        if parameter not in shapes:
            raise DamagedCheckpoint(f"{key} is of no parameter of the run's model")
        whole = kind == "model" or (ours and entry != "step")
        expected = shapes[parameter] if whole else torch.Size()
        if (whole or ours) and (dtype, value.shape) != ("F32", expected):
            raise DamagedCheckpoint(
                f"{key} is {dtype} of shape {list(value.shape)}, and the run's is F32 of {list(expected)}"
            )
        # An infinite second moment stands still; what is no number makes the next weights none.
        if metadata["finite"] and bool((~torch.isfinite(value) if kind == "model" else value.isnan()).any()):
            raise DamagedCheckpoint(f"{key} has values that are not finite, and was saved as finite")
        if ours and entry == "step" and not 0 <= float(value) <= metadata["step"]:
            raise DamagedCheckpoint(f"{key} counts {float(value):g} updates in {metadata['step']} steps")
        if kind == "model":
            missing.discard(parameter)
        else:
            found[parameter].add(entry)
    if missing:
        raise DamagedCheckpoint(f"model.{min(missing)} is missing")
    for parameter, entries in found.items():
        if ours and entries and entries not in KEPT:
            raise DamagedCheckpoint(
                f"optimizer.{parameter} has {', '.join(sorted(entries))}, which no optimizer of ours keeps"
            )


def _tensors(directory: Path) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Each tensor by its name as `shards` spells it, its type as its file names it, and its values."""
    if (directory / SHARDS).is_dir():
        shards = ShardReader(directory / SHARDS)
        for name in shards.shapes:
            yield name, shards.dtypes[name], shards.whole(name)
        return
    for kind, file in (("model", MODEL), ("optimizer", OPTIMIZER)):
        with safe_open(directory / file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (it is no mapping)
                yield f"{kind}.{name}", tensors.get_slice(name).get_dtype(), tensors.get_tensor(name)


def _require_rows(path: Path, row: np.dtype) -> None:
    found = npy.mapped(path)
    if found.dtype != row or found.ndim != 1:
        raise DamagedCheckpoint(f"{path.name} holds {found.dtype} of shape {found.shape}, not rows of {row}")


def _require_loop(path: Path, metadata: dict[str, Any], expected: int) -> None:
    loop = parse_json(path.read_bytes())
    held = {
        "step": loop["step"],
        "diverged": loop["divergence"] is not None,
        "ranks": len(loop["random"]),
    }
    for name, value in held.items():
        if type(value) is not type(metadata.get(name, value)) or value != metadata.get(name, value):
            raise DamagedCheckpoint(f"{path.name} is of another checkpoint: {name} {value}, not {metadata[name]}")
    if len(loop["interventions"]) != expected:
        raise DamagedCheckpoint(f"{path.name} has states of {len(loop['interventions'])} interventions, not {expected}")
    if not isinstance(loop["seconds"], (int, float)) or not all(isinstance(state, dict) for state in loop["random"]):
        raise DamagedCheckpoint(f"{path.name} holds no seconds, or no random states")
    for rank, state in enumerate(loop["random"]):
        try:
            randomness.require(state)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise DamagedCheckpoint(f"{path.name}: the random state of rank {rank} cannot be set: {error}") from error
