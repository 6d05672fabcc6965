"""Saves and restores what a run's loop knows beside weights and optimizer.

That is the step (= the data position), the metrics and the online probes so far, random states, the states of
interventions, and a divergence if there was one. Learning rates and data order are pure functions of the step.

`require_fit` checks that what a checkpoint holds is a state of its run, before anything is restored from it. Its
checksums say that the bytes are those that were written. This says that they can be resumed from: copied into a model,
a tensor of another shape may be spread over it, one of another type lose its digits, and one that is not finite end the
run as a divergence that it never had.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, atomic_write_text, parse_json, pretty_json
from plumbline.core.run_files import MODEL
from plumbline.data import npy
from plumbline.evaluate.probes import ProbeValue
from plumbline.model.decoder import Decoder
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train import interventions, randomness
from plumbline.train.checkpoint.checkpoint_folders import DamagedCheckpoint
from plumbline.train.checkpoint.weight_files import OPTIMIZER, SHARDS, ShardReader
from plumbline.train.disk_faults import UnreadableFile
from plumbline.train.interventions import Intervention
from plumbline.train.monitoring import run_metrics
from plumbline.train.monitoring.run_metrics import OnlineProbes, RunMetrics

METRICS = "metrics.npy"
ONLINE = "online.npy"
LOOP = "loop.json"

#: Values of online probes: -1 is no layer or head, not-a-number is no null.
ONLINE_ROW = np.dtype(
    [
        ("step", "<i8"),
        ("probe", "<U64"),
        ("layer", "<i8"),
        ("head", "<i8"),
        ("value", "<f8"),
        ("null", "<f8"),
    ]
)

#: What our optimizers keep of a parameter, or keep once it had a gradient. Nothing is known of others here.
STATE_KEYS = ({"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"})
OWN_OPTIMIZERS = ("adamw", "muon")


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedLoopState:
    """The training state as it goes into a checkpoint; none of it changes any more.

    `loop` is the text of ``loop.json``.
    """

    metrics: RunMetrics
    online: OnlineProbes
    loop: str

    def write(self, directory: Path) -> None:
        """Write the state into a checkpoint's directory; values of online probes where the run has any."""
        _save(directory / METRICS, np.array(self.metrics.rows, dtype=run_metrics.ROW))
        if self.online.probes:
            rows = [
                (
                    step,
                    probe_value.probe,
                    -1 if probe_value.layer is None else probe_value.layer,
                    -1 if probe_value.head is None else probe_value.head,
                    probe_value.value,
                    float("nan") if probe_value.null is None else probe_value.null,
                )
                for step, probe_value in self.online.probe_values
            ]
            _save(directory / ONLINE, np.array(rows, dtype=ONLINE_ROW))
        atomic_write_text(directory / LOOP, self.loop)


class TrainingState:
    """The state of a run's loop: how far it is. The loop goes on changing it.

    Attributes:
        step: updates made.
        random: random states before the step that comes next.
        divergence: the step, the reason, and once it is settled the step of the weights; None of a run that continues.
    """

    def __init__(self, spec: RunSpec, device: torch.device) -> None:
        self.step = 0
        self.metrics = RunMetrics()
        self.online = OnlineProbes(spec)
        self.random = randomness.capture(device)
        self.divergence: dict[str, Any] | None = None
        self._earlier = 0.0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds that training took so far, all starts together."""
        return self._earlier + time.monotonic() - self._began

    def snapshot(self, ranks: RankGroup, interventions: Sequence[Intervention]) -> SavedLoopState:
        """Copy the state as a checkpoint takes it now (a collective)."""
        loop = {
            "step": self.step,
            "seconds": self.seconds,
            "random": ranks.gather(randomness.encode(self.random)),
            "interventions": [intervention.state() for intervention in interventions],
            "divergence": self.divergence,
        }
        return SavedLoopState(metrics=self.metrics.copy(), online=self.online.copy(), loop=pretty_json(loop))

    def put_back(self, directory: Path, ranks: RankGroup, interventions: Sequence[Intervention]) -> None:
        """Restore the state from a checkpoint's directory, whoever wrote it on however many ranks.

        Raises:
            UnreadableFile: an intervention cannot make sense of what it says of it.
        """
        loop = parse_json((directory / LOOP).read_text(encoding="utf-8"))
        self.metrics = RunMetrics(np.load(directory / METRICS, allow_pickle=False).tolist())
        if self.online.probes:
            self.online.probe_values = [
                (
                    step,
                    ProbeValue(
                        probe=probe,
                        layer=None if layer < 0 else layer,
                        head=None if head < 0 else head,
                        value=value,
                        null=None if np.isnan(null) else null,
                    ),
                )
                for step, probe, layer, head, value, null in np.load(directory / ONLINE, allow_pickle=False).tolist()
            ]
        self.step, self._earlier, self.divergence = loop["step"], loop["seconds"], loop["divergence"]
        for intervention, state in zip(interventions, loop["interventions"], strict=True):
            try:
                intervention.load_state(state)
            except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise UnreadableFile(
                    f"checkpoint {directory}: its state of the intervention {intervention.name!r} cannot be put back "
                    f"({error!r}); move that folder away and start the run again, from an earlier checkpoint"
                ) from error
        if ranks.rank < len(loop["random"]):
            randomness.restore(loop["random"][ranks.rank], ranks.device)
            self.random = randomness.capture(ranks.device)


def _save(path: Path, rows: np.ndarray) -> None:
    """Write rows whole: numpy itself tells of a full disk late, without its number, or not at all."""
    content = io.BytesIO()
    np.save(content, rows, allow_pickle=False)
    atomic_write_bytes(path, content.getvalue())


def require_fit(directory: Path, metadata: dict[str, Any], spec: RunSpec) -> None:
    """Check that a checkpoint, whose files are as they were written, can be a state of the run of `spec`.

    Raises:
        DamagedCheckpoint: it cannot; the message says in what.
        OSError: something of it cannot be read.
    """
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in Decoder(spec.model).named_parameters()}
    try:
        _require_tensors(directory, shapes, metadata, spec.optimizer.name in OWN_OPTIMIZERS)
        _require_rows(directory / METRICS, run_metrics.ROW)
        if any(probe.every for probe in spec.probes):
            _require_rows(directory / ONLINE, ONLINE_ROW)
        _require_loop(directory / LOOP, metadata, len(interventions.build(spec.interventions)))
    except FileNotFoundError as error:
        raise DamagedCheckpoint(f"it lacks a file: {error}") from error
    except (SafetensorError, PlumblineError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedCheckpoint(f"it is no state of this run: {error!r}") from error


def _require_tensors(
    directory: Path, shapes: dict[str, torch.Size], metadata: dict[str, Any], own_optimizer: bool
) -> None:
    entries_by_parameter: dict[str, set[str]] = {name: set() for name in shapes}
    missing = set(shapes)
    for key, dtype, value in _iterate_tensors(directory):
        kind, _, name = key.partition(".")
        parameter, _, entry = (name, "", "") if kind == "model" else name.rpartition(".")
        if parameter not in shapes:
            raise DamagedCheckpoint(f"{key} is of no parameter of the run's model")
        has_full_shape = kind == "model" or (own_optimizer and entry != "step")
        expected = shapes[parameter] if has_full_shape else torch.Size()
        if (has_full_shape or own_optimizer) and (dtype, value.shape) != ("F32", expected):
            raise DamagedCheckpoint(
                f"{key} is {dtype} of shape {list(value.shape)}, and the run's is F32 of {list(expected)}"
            )
        # An infinite second moment stands still; what is no number makes the next weights none.
        if metadata["finite"] and bool((~torch.isfinite(value) if kind == "model" else value.isnan()).any()):
            raise DamagedCheckpoint(f"{key} has values that are not finite, and was saved as finite")
        if own_optimizer and entry == "step" and not 0 <= float(value) <= metadata["step"]:
            raise DamagedCheckpoint(f"{key} counts {float(value):g} updates in {metadata['step']} steps")
        if kind == "model":
            missing.discard(parameter)
        else:
            entries_by_parameter[parameter].add(entry)
    if missing:
        raise DamagedCheckpoint(f"model.{min(missing)} is missing")
    for parameter, entries in entries_by_parameter.items():
        if own_optimizer and entries and entries not in STATE_KEYS:
            raise DamagedCheckpoint(
                f"optimizer.{parameter} has {', '.join(sorted(entries))}, which no optimizer of ours keeps"
            )


def _iterate_tensors(directory: Path) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Each tensor by its name as `shards` spells it, its type as its file names it, and its values."""
    if (directory / SHARDS).is_dir():
        shards = ShardReader(directory / SHARDS)
        for name in shards.shapes:
            yield name, shards.dtypes[name], shards.read_whole(name)
        return
    for kind, file in (("model", MODEL), ("optimizer", OPTIMIZER)):
        with safe_open(directory / file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (it is no mapping)
                yield f"{kind}.{name}", tensors.get_slice(name).get_dtype(), tensors.get_tensor(name)


def _require_rows(path: Path, row: np.dtype) -> None:
    rows = npy.map_array(path)
    if rows.dtype != row or rows.ndim != 1:
        raise DamagedCheckpoint(f"{path.name} holds {rows.dtype} of shape {rows.shape}, not rows of {row}")


def _require_loop(path: Path, metadata: dict[str, Any], expected: int) -> None:
    loop = parse_json(path.read_bytes())
    facts = {
        "step": loop["step"],
        "diverged": loop["divergence"] is not None,
        "ranks": len(loop["random"]),
    }
    for name, value in facts.items():
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
