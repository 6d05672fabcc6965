"""The files of sharded training: rows that come together again, what is refused, and that nothing in them is run."""

from __future__ import annotations

import errno
import json
import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.weight_files import HEADER, ShardReader, shard_name
from tests.model_specs import small

ROWS = torch.arange(21.0).reshape(7, 3)


class Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def write_shards(folder: Path, cuts: list[tuple[int, int]], ranks: int | None = None) -> Path:
    """ROWS cut into files, with a count of steps in the first one."""
    for rank, (first, last) in enumerate(cuts):
        tensors, places = {"model.a": ROWS[first:last].clone()}, {"model.a": {"shape": [7, 3], "first": first}}
        if rank == 0:
            tensors["optimizer.a.step"], places["optimizer.a.step"] = torch.tensor(5.0), {"shape": [], "first": 0}
        header = {HEADER: json.dumps({"ranks": ranks or len(cuts), "tensors": places})}
        save_file(tensors, folder / shard_name(rank), metadata=header)
    return folder


def test_rows_are_read_from_the_files_that_have_them(tmp_path: Path) -> None:
    shards = ShardReader(write_shards(tmp_path, [(0, 3), (3, 6), (6, 7)]))
    assert shards.shapes == {"model.a": torch.Size([7, 3]), "optimizer.a.step": torch.Size([])}
    for first in range(8):
        for last in range(first, 8):
            assert torch.equal(shards.read("model.a", first, last), ROWS[first:last])
    assert torch.equal(shards.read_whole("model.a"), ROWS) and shards.read_whole("optimizer.a.step").item() == 5
    value = torch.zeros(7, 3)
    shards.fill("model.a", value)
    assert torch.equal(value, ROWS)


@pytest.mark.parametrize(
    ("cuts", "ranks", "text"),
    [
        ([(0, 3), (3, 7)], 3, r"rank-00002\.safetensors is missing"),
        ([(0, 3), (4, 7)], 2, "model.a are missing"),
        ([(0, 4), (3, 7)], 2, "model.a are missing"),
        ([(0, 3), (3, 6)], 2, "model.a are missing"),
    ],
)
def test_rows_that_are_not_there_are_told(tmp_path: Path, cuts: list[tuple[int, int]], ranks: int, text: str) -> None:
    with pytest.raises(PlumblineError, match=text):
        ShardReader(write_shards(tmp_path, cuts, ranks))


@pytest.mark.parametrize(
    "header",
    [
        "[" * 100_000,
        "[]",
        '{"ranks": 1, "tensors": []}',
        '{"ranks": Infinity, "tensors": {}}',
        '{"ranks": 1, "tensors": {"model.a": {"shape": [1e999, 3], "first": 0}}}',
    ],
)
def test_a_header_of_another_form_is_refused(tmp_path: Path, header: str) -> None:
    save_file({"model.a": ROWS}, tmp_path / shard_name(0), metadata={HEADER: header})
    with pytest.raises(PlumblineError, match=r"rank-00000\.safetensors.*file"):
        ShardReader(tmp_path)


def test_files_of_two_checkpoints_are_not_put_together(tmp_path: Path) -> None:
    def rank_1(dtype: torch.dtype, ranks: int) -> None:
        header = {"ranks": ranks, "tensors": {"model.a": {"shape": [7, 3], "first": 3}}}
        save_file({"model.a": ROWS[3:].to(dtype)}, tmp_path / shard_name(1), metadata={HEADER: json.dumps(header)})

    write_shards(tmp_path, [(0, 3), (3, 7)])
    rank_1(torch.float32, 3)
    with pytest.raises(PlumblineError, match=r"rank-00001\.safetensors.*of 3.*of 2"):
        ShardReader(tmp_path)
    rank_1(torch.bfloat16, 2)
    with pytest.raises(PlumblineError, match=r"rank-00001\.safetensors .*model\.a is BF16 here, and F32"):
        ShardReader(tmp_path)


@pytest.mark.parametrize("name", [".metadata", shard_name(0)])
def test_state_that_would_run_code_is_refused_and_not_run(tmp_path: Path, name: str) -> None:
    shards, marker = tmp_path / "state/step-0000004/shards", tmp_path / "ran"
    shards.mkdir(parents=True)
    (shards / name).write_bytes(pickle.dumps(Payload(marker)))
    message = "pickle.*cleanup --restart .*/state`$" if name == ".metadata" else "not a file of sharded training"
    with pytest.raises(PlumblineError, match=message):
        weight_files.load(shards.parent, create(small(), 0), None)
    assert not marker.exists()


def test_what_fails_on_one_rank_fails_on_all() -> None:
    here, errors = OSError(errno.EIO, "sick"), []
    ranks: Any = SimpleNamespace(rank=1, gather=lambda value: errors.append(value) or [None, value])
    with pytest.raises(OSError, match="sick"):
        weight_files.on_every_rank(ranks, lambda: (_ for _ in ()).throw(here))
    assert errors == [(errno.EIO, "rank 1: [Errno 5] sick")]
    for number, kind in ((errno.EIO, OSError), (None, RuntimeError)):
        ranks = SimpleNamespace(rank=1, gather=lambda value, number=number: [(number, "rank 0: told"), value])
        with pytest.raises(kind, match="rank 0: told"):
            weight_files.on_every_rank(ranks, lambda: None)
