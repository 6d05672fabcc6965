"""Writes weights and optimizer to files and reads them back.

They are written whole by one rank, or each rank's rows by itself (`plumbline.train.checkpoint.sharded_tensors`). Either
form can be read into either kind of model: a run that was saved by N ranks resumes on M, sharded or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, naming
from plumbline.model.decoder import create
from plumbline.model.init import initialise
from plumbline.runtime.distributed import RankGroup
from plumbline.train import disk_faults
from plumbline.train.checkpoint.sharded_tensors import ShardReader, file_name, pieces
from plumbline.train.checkpoint.state_records import how_to_restart
from plumbline.train.model_weights import is_sharded
from plumbline.train.run_optimizer import RunOptimizer

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
SHARDS = "shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorFile:
    """A file of tensors that this rank writes into a checkpoint; `path` is within the checkpoint's directory."""

    path: Path
    tensors: dict[str, torch.Tensor]
    header: dict[str, str] | None = None


def files(model: nn.Module, optimizer: RunOptimizer, ranks: RankGroup) -> list[TensorFile]:
    """Collect the files that this rank writes of weights and optimizer.

    Training goes on changing their tensors (`plumbline.train.checkpoint.host_copies`).
    """
    weights = {name: value.detach() for name, value in model.named_parameters()}
    state = optimizer.tensors()
    if is_sharded(model):
        both = {f"model.{name}": value for name, value in weights.items()}
        held, header = pieces(both | {f"optimizer.{name}": value for name, value in state.items()}, ranks)
        return [TensorFile(path=Path(SHARDS, file_name(ranks.rank)), tensors=held, header=header)]
    if ranks.leader:
        return [TensorFile(path=Path(MODEL), tensors=weights), TensorFile(path=Path(OPTIMIZER), tensors=state)]
    return []


def write(directory: Path, files: list[TensorFile]) -> None:
    """Write files of tensors below `directory`."""
    for file in files:
        write_weights(directory / file.path, file.tensors, file.header)


def on_every_rank(ranks: RankGroup, write: Callable[[], None]) -> None:
    """Run `write` on every rank (a collective): what fails on one fails on all, so that none waits for it in vain.

    Raises:
        OSError: on another rank, by its disk.
        RuntimeError: on another rank, by anything else.
    """
    failure: Exception | None = None
    try:
        write()
    except Exception as error:
        failure = error
    said = ranks.gather(None if failure is None else (disk_faults.number(failure), f"rank {ranks.rank}: {failure}"))
    if failure is not None:
        raise failure
    for number, reason in filter(None, said):
        raise RuntimeError(reason) if number is None else OSError(number, reason)


def write_weights(path: Path, tensors: dict[str, torch.Tensor], header: dict[str, str] | None = None) -> None:
    """Write one safetensors file, whole or not at all, readable like any other file (safetensors alone makes it
    private).
    """
    with atomic(path) as file, naming(path):
        save_file({name: value.contiguous() for name, value in tensors.items()}, file.name, metadata=header)


def load(directory: Path, model: nn.Module, optimizer: RunOptimizer | None) -> None:
    """Read weights, and the optimizer's state if one is given, into a model, whether it is sharded or not.

    Raises:
        PlumblineError: the names are not the model's, or the state is in a form that is not read.
    """
    if (directory / SHARDS).is_dir():
        _load_shards(directory / SHARDS, model, optimizer)
        return
    place(model, _read(directory / MODEL))
    if optimizer is not None:
        optimizer.load(
            {
                key: _like(value, optimizer.parameters[key.rpartition(".")[0]])
                for key, value in _read(directory / OPTIMIZER).items()
            }
        )


def _read(path: Path) -> dict[str, torch.Tensor]:
    with naming(path):
        return load_file(path)


def place(model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Fill a model's parameters, sharded or not, from whole tensors.

    Raises:
        PlumblineError: the names are not the model's.
    """
    parameters = dict(model.named_parameters())
    if tensors.keys() != parameters.keys():
        raise PlumblineError(f"weights do not fit the model: {sorted(tensors.keys() ^ parameters.keys())}")
    with torch.no_grad():
        for name, value in parameters.items():
            value.copy_(_like(tensors[name], value))


def initialise_again(model: nn.Module, init_seed: int) -> None:
    """Set a model, sharded or not, to the weights of step 0."""
    if is_sharded(model):
        place(model, dict(create(model.spec, init_seed).named_parameters()))
    else:
        initialise(model, init_seed)


def _like(value: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """A whole tensor on the parameter's device, sharded as it is unless it has another shape (a count of steps)."""
    value = value.to(parameter.device)
    if value.shape != parameter.shape:
        return value.clone()
    if not hasattr(parameter, "full_tensor"):
        return value.clone()
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)


def _load_shards(directory: Path, model: nn.Module, optimizer: RunOptimizer | None) -> None:
    if (directory / ".metadata").exists():
        raise PlumblineError(
            f"{directory} was written by torch.distributed.checkpoint, whose index is a pickle: reading it would run "
            f"what it contains, so it is not read; {how_to_restart(directory.parent.parent)}"
        )
    shards = ShardReader(directory)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    names = {key.partition(".")[2] for key in shards.shapes if key.startswith("model.")}
    if names != parameters.keys():
        raise PlumblineError(f"weights do not fit the model: {sorted(names ^ parameters.keys())}")
    for name, value in parameters.items():
        shards.fill(f"model.{name}", value)
    if optimizer is None:
        return
    state = {}
    for key, shape in shards.shapes.items():
        kind, _, name = key.partition(".")
        if kind == "optimizer":
            parameter = parameters[name.rpartition(".")[0]]
            if shape == parameter.shape:
                state[name] = torch.zeros_like(parameter)
                shards.fill(key, state[name])
            else:
                state[name] = shards.whole(key).to(parameter.device)
    optimizer.load(state)
