"""Writes weights and optimizer to files and reads them back.

They are written whole by one rank, or each rank's rows by itself. Either form can be read into either kind of model: a
run that was saved by N ranks resumes on M, sharded or not.

Of sharded training, ``rank-00003.safetensors`` has rank 3's rows of every tensor, and its header says in JSON how many
ranks wrote, and of each tensor its whole shape and the first of these rows. What is not cut is in rank 0's. Numbers and
JSON are all there is: reading such a file runs nothing of it (torch.distributed.checkpoint keeps its index as a pickle,
which would).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, name_in_errors, open_atomically, parse_json
from plumbline.core.run_files import MODEL
from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup, is_sharded, local_part, local_row_range
from plumbline.model.init import initialise
from plumbline.train import disk_faults
from plumbline.train.checkpoint.checkpoint_folders import how_to_restart
from plumbline.train.run_optimizer import RunOptimizer

OPTIMIZER = "optimizer.safetensors"
SHARDS = "shards"
#: Key of a header's own entry.
HEADER = "plumbline"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorFile:
    """A file of tensors that this rank writes into a checkpoint; `path` is within the checkpoint's directory."""

    path: Path
    tensors: dict[str, torch.Tensor]
    header: dict[str, str] | None = None


def files(model: nn.Module, optimizer: RunOptimizer, ranks: RankGroup) -> list[TensorFile]:
    """Collect the files that this rank writes of weights and optimizer.

    Training goes on changing their tensors: what is written meanwhile is a copy (`background_saving`).
    """
    weights = {name: value.detach() for name, value in model.named_parameters()}
    state = optimizer.tensors()
    if is_sharded(model):
        tensors = {f"model.{name}": value for name, value in weights.items()}
        rows, header = pieces(tensors | {f"optimizer.{name}": value for name, value in state.items()}, ranks)
        return [TensorFile(path=Path(SHARDS, shard_name(ranks.rank)), tensors=rows, header=header)]
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
    failures = ranks.gather(
        None if failure is None else (disk_faults.find_errno(failure), f"rank {ranks.rank}: {failure}")
    )
    if failure is not None:
        raise failure
    for number, reason in filter(None, failures):
        raise RuntimeError(reason) if number is None else OSError(number, reason)


def write_weights(path: Path, tensors: dict[str, torch.Tensor], header: dict[str, str] | None = None) -> None:
    """Write one safetensors file, whole or not at all, readable like any other file (safetensors alone makes it
    private).
    """
    with open_atomically(path) as file, name_in_errors(path):
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
                key: _shard_like(value, optimizer.parameters[key.rpartition(".")[0]])
                for key, value in _read(directory / OPTIMIZER).items()
            }
        )


def _read(path: Path) -> dict[str, torch.Tensor]:
    with name_in_errors(path):
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
            value.copy_(_shard_like(tensors[name], value))


def initialise_again(model: nn.Module, init_seed: int) -> None:
    """Set a model, sharded or not, to the weights of step 0."""
    if is_sharded(model):
        place(model, dict(create(model.spec, init_seed).named_parameters()))
    else:
        initialise(model, init_seed)


def _shard_like(value: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
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
                state[name] = shards.read_whole(key).to(parameter.device)
    optimizer.load(state)


def shard_name(rank: int) -> str:
    """Name the file that a rank of sharded training writes."""
    return f"rank-{rank:05d}.safetensors"


def pieces(tensors: dict[str, torch.Tensor], ranks: RankGroup) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Cut from `tensors` (sharded by rows, or the same on every rank) what this rank writes, and make the file's
    header.
    """
    rows, places = {}, {}
    for name, value in tensors.items():
        first, last = local_row_range(value)
        if first < last and (hasattr(value, "full_tensor") or ranks.leader):
            rows[name] = local_part(value.detach())
            places[name] = {"shape": list(value.shape), "first": first}
    return rows, {HEADER: canonical_json({"ranks": ranks.world, "tensors": places})}


class ShardReader:
    """Reads the files of one checkpoint of sharded training.

    Attributes:
        shapes: tensor -> its shape when it is whole.
    """

    def __init__(self, directory: Path) -> None:
        """Read the headers of the files in a checkpoint's folder of shards.

        Raises:
            PlumblineError: a file is not there or not of this form, they are not of one checkpoint, or some rows of a
                tensor are in none of them.
            OSError: a file cannot be read.
        """
        self.directory = directory
        self.shapes: dict[str, torch.Size] = {}
        self.pieces: dict[str, list[tuple[int, int, Path]]] = {}
        self.dtypes: dict[str, str] = {}
        ranks = self._read_header(directory / shard_name(0))
        for rank in range(1, ranks):
            path = directory / shard_name(rank)
            file_ranks = self._read_header(path)
            if file_ranks != ranks:
                raise PlumblineError(
                    f"{path} is one of {file_ranks} ranks' files, and {shard_name(0)} one of {ranks}: "
                    "they are not of one checkpoint"
                )
        for name, parts in self.pieces.items():
            parts.sort()
            ends = [0, *(last for _, last, _ in parts)]
            if [first for first, _, _ in parts] != ends[:-1] or ends[-1] != _rows(self.shapes[name]):
                raise PlumblineError(f"{directory}: rows of {name} are missing from its files, or in two of them")

    def _read_header(self, path: Path) -> int:
        """Take in a file; returns how many ranks wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                header = parse_json((file.metadata() or {})[HEADER])
                for name, place in header["tensors"].items():
                    shape, first = torch.Size(place["shape"]), place["first"]
                    rows = file.get_slice(name)
                    rows_shape, dtype = rows.get_shape(), rows.get_dtype()
                    if self.shapes.setdefault(name, shape) != shape or rows_shape[1:] != list(shape[1:]):
                        raise ValueError(f"{name} has another shape here")
                    if self.dtypes.setdefault(name, dtype) != dtype:
                        raise ValueError(f"{name} is {dtype} here, and {self.dtypes[name]} in another rank's file")
                    self.pieces.setdefault(name, []).append((first, first + _rows(rows_shape), path))
            return int(header["ranks"])
        except FileNotFoundError:
            raise PlumblineError(f"{path} is missing") from None
        except (
            SafetensorError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise PlumblineError(f"{path} is not a file of sharded training: {error!r}") from error

    def read(self, name: str, first: int, last: int) -> torch.Tensor:
        """Read rows `first` to `last` (exclusive) of a tensor, on the CPU; a tensor of no dimensions is one row."""
        parts = []
        for begins, ends, path in self.pieces[name]:
            start, stop = max(first, begins) - begins, min(last, ends) - begins
            if start < stop:
                with safe_open(path, framework="pt") as file:
                    if not self.shapes[name]:
                        return file.get_tensor(name)
                    parts.append(file.get_slice(name)[start:stop])
        return torch.cat(parts) if parts else torch.empty(0, *self.shapes[name][1:])

    def read_whole(self, name: str) -> torch.Tensor:
        """Read a tensor in one piece, on the CPU."""
        return self.read(name, 0, _rows(self.shapes[name]))

    @torch.no_grad()
    def fill(self, name: str, value: torch.Tensor) -> None:
        """Fill `value`, sharded or not, with as much of a tensor as this rank holds."""
        local_part(value).copy_(self.read(name, *local_row_range(value)))


def _rows(shape: torch.Size | list[int]) -> int:
    return shape[0] if len(shape) else 1
