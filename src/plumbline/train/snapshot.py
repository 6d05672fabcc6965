"""Tensors of a run to and from files: whole on one rank, or sharded through torch.distributed.checkpoint.

Either form can be read into either kind of model: a run that was saved by N ranks resumes on M, sharded or not.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from plumbline.cli import PlumblineError
from plumbline.files import atomic
from plumbline.model.decoder import create
from plumbline.model.init import initialise
from plumbline.train.distributed import Ranks, full
from plumbline.train.optim import Optimizer

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
SHARDS = "shards"


def is_sharded(model: nn.Module) -> bool:
    """Whether any parameter is in pieces."""
    return any(hasattr(value, "full_tensor") for value in model.parameters())


def finite(model: nn.Module, ranks: Ranks) -> bool:
    """Whether every weight is a finite number, on every rank (a collective)."""
    with torch.no_grad():
        values = [value.to_local() if hasattr(value, "to_local") else value for value in model.parameters()]
        bad = sum(int(not bool(torch.isfinite(value).all())) for value in values)
    return ranks.sum([float(bad)])[0] == 0


def save(directory: Path, model: nn.Module, optimizer: Optimizer, ranks: Ranks) -> None:
    """Write weights and optimizer into `directory` (a collective if they are sharded)."""
    if is_sharded(model):
        from torch.distributed import checkpoint

        tensors = {f"model.{name}": value.detach() for name, value in model.named_parameters()}
        tensors |= {f"optimizer.{name}": value for name, value in optimizer.tensors().items()}
        checkpoint.save(tensors, checkpoint_id=str(directory / SHARDS))
    elif ranks.leader:
        write_weights(directory / MODEL, {name: value.detach() for name, value in model.named_parameters()})
        write_weights(directory / OPTIMIZER, optimizer.tensors())


def write_weights(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """One safetensors file, whole or not there, readable like any other file (safetensors alone makes it private)."""
    with atomic(path) as file:
        save_file({name: value.contiguous() for name, value in tensors.items()}, file.name)


def whole_weights(model: nn.Module, ranks: Ranks) -> dict[str, torch.Tensor]:
    """All weights in one piece on the CPU of rank 0, which writes them (a collective if they are sharded)."""
    whole = {}
    for name, value in model.named_parameters():
        piece = full(value.detach())
        if ranks.leader:
            whole[name] = piece.cpu()
    return whole


def load(directory: Path, model: nn.Module, optimizer: Optimizer | None) -> None:
    """Read weights, and the optimizer's state if one is given, into a model of either kind."""
    if (directory / SHARDS).is_dir():
        _load_shards(directory / SHARDS, model, optimizer)
        return
    place(model, load_file(directory / MODEL))
    if optimizer is not None:
        optimizer.load(
            {
                key: _like(value, optimizer.parameters[key.rpartition(".")[0]])
                for key, value in load_file(directory / OPTIMIZER).items()
            }
        )


def place(model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Fill the parameters from whole tensors.

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
    """The weights of step 0, sharded or not."""
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


def _load_shards(directory: Path, model: nn.Module, optimizer: Optimizer | None) -> None:
    from torch.distributed import checkpoint, is_initialized

    parameters = {name: value.detach() for name, value in model.named_parameters()}
    wanted: dict[str, torch.Tensor] = {f"model.{name}": value for name, value in parameters.items()}
    if optimizer is not None:
        for key, entry in checkpoint.FileSystemReader(str(directory)).read_metadata().state_dict_metadata.items():
            kind, _, rest = key.partition(".")
            if kind == "optimizer":
                parameter = parameters[rest.rpartition(".")[0]]
                same = entry.size == parameter.shape
                wanted[key] = torch.zeros_like(parameter) if same else torch.zeros(
                    entry.size, dtype=entry.properties.dtype, device=parameter.device)  # fmt: skip
    checkpoint.load(wanted, checkpoint_id=str(directory), no_dist=not is_initialized())
    if optimizer is not None:
        state = {key.partition(".")[2]: value for key, value in wanted.items() if key.startswith("optimizer.")}
        optimizer.load(state)
