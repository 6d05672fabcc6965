"""Reads and writes the tensors of sharded training: each rank writes the rows that it holds, any number reads them.

``rank-00003.safetensors`` has rank 3's rows of every tensor, and its header says in JSON how many ranks wrote, and of
each tensor its whole shape and the first of these rows. What is not cut is in rank 0's. Numbers and JSON are all there
is: reading such a file runs nothing of it (torch.distributed.checkpoint keeps its index as a pickle, which would).
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, parse_json
from plumbline.runtime.distributed import RankGroup, held_rows, local

#: Key of a header's own entry.
HEADER = "plumbline"


def file_name(rank: int) -> str:
    """Name the file that a rank writes."""
    return f"rank-{rank:05d}.safetensors"


def pieces(tensors: dict[str, torch.Tensor], ranks: RankGroup) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Cut from `tensors` (sharded by rows, or the same on every rank) what this rank writes, and make the file's
    header.
    """
    held, places = {}, {}
    for name, value in tensors.items():
        first, last = held_rows(value)
        if first < last and (hasattr(value, "full_tensor") or ranks.leader):
            held[name] = local(value.detach())
            places[name] = {"shape": list(value.shape), "first": first}
    return held, {HEADER: canonical_json({"ranks": ranks.world, "tensors": places})}


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
        ranks = self._read_header(directory / file_name(0))
        for rank in range(1, ranks):
            path = directory / file_name(rank)
            others = self._read_header(path)
            if others != ranks:
                raise PlumblineError(
                    f"{path} is one of {others} ranks' files, and {file_name(0)} one of {ranks}: "
                    "they are not of one checkpoint"
                )
        for name, found in self.pieces.items():
            found.sort()
            ends = [0, *(last for _, last, _ in found)]
            if [first for first, _, _ in found] != ends[:-1] or ends[-1] != _rows(self.shapes[name]):
                raise PlumblineError(f"{directory}: rows of {name} are missing from its files, or in two of them")

    def _read_header(self, path: Path) -> int:
        """Take in a file; returns how many ranks wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                header = parse_json((file.metadata() or {})[HEADER])
                for name, place in header["tensors"].items():
                    shape, first = torch.Size(place["shape"]), place["first"]
                    rows = file.get_slice(name)
                    held, dtype = rows.get_shape(), rows.get_dtype()
                    if self.shapes.setdefault(name, shape) != shape or held[1:] != list(shape[1:]):
                        raise ValueError(f"{name} has another shape here")
                    if self.dtypes.setdefault(name, dtype) != dtype:
                        raise ValueError(f"{name} is {dtype} here, and {self.dtypes[name]} in another rank's file")
                    self.pieces.setdefault(name, []).append((first, first + _rows(held), path))
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
        found = []
        for begins, ends, path in self.pieces[name]:
            start, stop = max(first, begins) - begins, min(last, ends) - begins
            if start < stop:
                with safe_open(path, framework="pt") as file:
                    if not self.shapes[name]:
                        return file.get_tensor(name)
                    found.append(file.get_slice(name)[start:stop])
        return torch.cat(found) if found else torch.empty(0, *self.shapes[name][1:])

    def whole(self, name: str) -> torch.Tensor:
        """Read a tensor in one piece, on the CPU."""
        return self.read(name, 0, _rows(self.shapes[name]))

    @torch.no_grad()
    def fill(self, name: str, value: torch.Tensor) -> None:
        """Fill `value`, sharded or not, with as much of a tensor as this rank holds."""
        local(value).copy_(self.read(name, *held_rows(value)))


def _rows(shape: torch.Size | list[int]) -> int:
    return shape[0] if len(shape) else 1
