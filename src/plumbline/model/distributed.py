"""Joins the processes of one run: ranks from torchrun's environment, the few collectives the loop needs, and models
that are whole on each rank or cut into rows.

With one rank nothing of torch.distributed is imported and every collective is the identity.
"""

from __future__ import annotations

import contextlib
import json
import os
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.core.files import find_disk_error
from plumbline.core.stop_request import StopRequest, StopRequested
from plumbline.model.allocator import grow_segments

Strategy = Literal["ddp", "fsdp"]
#: Key under which a rank that falls to an error of its own leaves word for the others.
_ERROR_KEY = "plumbline/fell"


class RankLost(PlumblineError):
    """Raised where another rank is gone without a word: killed, or its machine lost. No fault of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankGroup:
    """This process among those that train one run together.

    Attributes:
        rank: number of this process, from 0.
        world: number of processes.
        device: the device of this process.
        local_rank: number of this process on its node, from 0.
    """

    rank: int
    world: int
    device: torch.device
    local_rank: int = 0

    @property
    def leader(self) -> bool:
        """Whether this is rank 0, which holds the run's lock, writes the files and prints."""
        return self.rank == 0

    @property
    def node_leader(self) -> bool:
        """Whether this is the first rank of its node, which does what is done once per node."""
        return self.local_rank == 0

    def sum(self, values: list[float]) -> list[float]:
        """Element-wise sum over the ranks, in float64."""
        if self.world == 1:
            return values
        from torch import distributed

        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return total.tolist()

    def sum_in_place(self, values: torch.Tensor) -> None:
        """Sum a tensor over the ranks, in place, without making the host wait for a GPU."""
        if self.world > 1:
            from torch import distributed

            distributed.all_reduce(values)

    def max(self, values: list[float]) -> list[float]:
        """Element-wise maximum over the ranks, in float64."""
        if self.world == 1:
            return values
        from torch import distributed

        largest = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
        return largest.tolist()

    def broadcast(self, value: Any = None) -> Any:
        """Give rank 0's value to every rank."""
        if self.world == 1:
            return value
        from torch import distributed

        box = [value]
        distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Give every rank the values of all ranks, ordered by rank."""
        if self.world == 1:
            return [value]
        from torch import distributed

        values: list[Any] = [None] * self.world
        distributed.all_gather_object(values, value)
        return values

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.world > 1:
            from torch import distributed

            distributed.barrier()

    def poll(self, stop: StopRequest) -> None:
        """Leave the work if any rank was asked to stop: a signal to one of them stops them all at the same place.

        Raises:
            StopRequested: a signal has come to this or another rank.
        """
        if self.world == 1:
            stop.poll()
        elif self.sum([float(stop.requested)])[0]:
            raise StopRequested

    def explain(self, error: Exception) -> Exception:
        """What stands behind an error: of a collective, that another rank is lost, or what that one fell to; any other
        is returned as it is.
        """
        if self.world == 1 or not _is_collective_failure(error):
            return error
        if word := _read_parting_message():
            number, message = json.loads(word)
            return RuntimeError(message) if number is None else OSError(number, message)
        return RankLost(
            "another rank of this run is gone without a word (killed, for lack of memory for instance, or its machine "
            "lost), so this one stops too. Start the run again: it continues from its last checkpoint"
        )


@contextlib.contextmanager
def join_ranks(device: str) -> Iterator[RankGroup]:
    """Join the other ranks, if torchrun started any, and leave them at the end.

    Args:
        device: ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``.

    Raises:
        PlumblineError: CUDA is requested and not there.
    """
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device != "cpu":
        grow_segments()
    kind = device if device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise PlumblineError("--device cuda: this machine has no CUDA device; use --device cpu")
        torch.cuda.set_device(local)
        chosen = torch.device("cuda", local)
    else:
        chosen = torch.device("cpu")
    if world == 1:
        yield RankGroup(rank=0, world=1, device=chosen)
        return
    from torch import distributed

    distributed.init_process_group("nccl" if kind == "cuda" else "gloo", device_id=chosen if kind == "cuda" else None)
    try:
        group = RankGroup(rank=rank, world=world, device=chosen, local_rank=local)
        yield group
    except BaseException as error:
        # A wrapped model that lives on in the error's frames keeps the process group alive beyond its destruction, and
        # the process then hangs at its exit every few times (gloo's thread and the interpreter wait for each other).
        traceback.clear_frames(error.__traceback__)
        if not isinstance(error, Exception):
            raise
        if not _is_collective_failure(error):
            _post_parting_message(json.dumps([_disk_errno(error), f"rank {rank}: {type(error).__name__}: {error}"]))
        elif isinstance(cause := group.explain(error), RankLost):
            raise cause from None
        raise
    finally:
        distributed.destroy_process_group()


def _is_collective_failure(error: Exception) -> bool:
    """Whether an error is what a collective raises when another rank does not answer any more."""
    from torch import distributed

    text = str(error)
    unanswered = "gloo/transport" in text or "ncclRemoteError" in text
    return isinstance(error, distributed.DistNetworkError) or (isinstance(error, RuntimeError) and unanswered)


def _disk_errno(error: BaseException | None) -> int | None:
    """The system's number where an error, or one that it came from, is the disk's: then it is no fault of the run."""
    while error is not None:
        if (disk_error := find_disk_error(error)) is not None:
            return disk_error.errno
        error = error.__cause__ or error.__context__
    return None


def _post_parting_message(message: str) -> None:
    """Tell the others why this rank leaves them, before its connections close."""
    from torch.distributed.distributed_c10d import _get_default_store

    with contextlib.suppress(RuntimeError):  # whoever keeps the store is gone
        store = _get_default_store()
        store.set(_ERROR_KEY, message)
        store.get(_ERROR_KEY)  # it has arrived


def _read_parting_message() -> str | None:
    """Why another rank has left, if it said so."""
    from torch.distributed.distributed_c10d import _get_default_store

    with contextlib.suppress(RuntimeError):
        store = _get_default_store()
        if store.check([_ERROR_KEY]):
            return store.get(_ERROR_KEY).decode()
    return None


def parallel(model: nn.Module, ranks: RankGroup, strategy: Strategy) -> nn.Module:
    """Wrap `model` for training by all ranks: DDP keeps it whole on each, FSDP2 shards its parameters in place.

    Gradients are averaged over the ranks; the loss is scaled so that this is the gradient of the batch's mean.

    Raises:
        PlumblineError: layers that share their weights are to be sharded.
    """
    if ranks.world == 1:
        return model
    if strategy == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        if model.spec.shared_layers:
            raise PlumblineError(
                "--strategy fsdp: it shards each layer's own weights, and with model.shared_layers all have the same; "
                "take --strategy ddp"
            )
        mesh = init_device_mesh(ranks.device.type, (ranks.world,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, device_ids=[ranks.device.index] if ranks.device.type == "cuda" else None)


@contextlib.contextmanager
def gradient_sync(model: nn.Module, last: bool) -> Iterator[None]:
    """Exchange the gradients of the block between ranks only if it computes the `last` micro-batch of a step.

    Sharded parameters that are gathered for the first micro-batch's forward pass stay so until the last one's gradient:
    one gather a step, at the price of the whole model in memory. Outside of the block a forward pass, which no gradient
    follows, leaves them sharded.
    """
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
        model.set_reshard_after_backward(last)
        model.set_reshard_after_forward(False)
        try:
            yield
        finally:
            model.set_reshard_after_forward(True)
    elif hasattr(model, "no_sync") and not last:
        with model.no_sync():
            yield
    else:
        yield


def gather_full(value: torch.Tensor) -> torch.Tensor:
    """The whole of a tensor, gathered if it is sharded (a collective: every rank must call it)."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def local_part(value: torch.Tensor) -> torch.Tensor:
    """This rank's part of a sharded tensor, sharing its memory, without gradients; any other tensor whole."""
    return value.to_local() if hasattr(value, "to_local") else value


def local_row_range(value: torch.Tensor) -> tuple[int, int]:
    """The first row of a tensor that this rank holds, and the one after the last; all rows of a tensor that is not
    sharded.

    A tensor of no dimensions counts as one row.
    """
    rows = value.shape[0] if value.ndim else 1
    if not hasattr(value, "full_tensor"):
        return 0, rows
    assert len(value.placements) == 1 and value.placements[0].is_shard(0), "sharded by rows"
    share = -(-rows // value.device_mesh.size())
    first = min(value.device_mesh.get_local_rank() * share, rows)
    last = min(first + share, rows)
    assert value.to_local().shape[0] == last - first, "in equal parts, the last ones smaller"
    return first, last


def local_rows(values_X: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """The part of `values_X` (one number for each row of a parameter) that belongs to the rows this rank holds.

    In the parameter's type, and with as many dimensions as it has, so that it broadcasts over `local(parameter)`.
    """
    values_X = values_X.to(parameter.dtype)
    if hasattr(parameter, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        assert all(placement.is_shard(0) for placement in parameter.placements), "sharded by rows"
        values_X = distribute_tensor(values_X, parameter.device_mesh, parameter.placements, src_data_rank=None)
    return local_part(values_X).reshape(-1, *[1] * (parameter.ndim - 1))


def is_sharded(model: nn.Module) -> bool:
    """Whether any parameter of a model is cut into rows that different ranks hold."""
    return any(hasattr(value, "full_tensor") for value in model.parameters())


def all_finite(model: nn.Module, ranks: RankGroup) -> bool:
    """Whether every weight is a finite number, on every rank (a collective)."""
    with torch.no_grad():
        values = [value.to_local() if hasattr(value, "to_local") else value for value in model.parameters()]
        bad = sum(int(not bool(torch.isfinite(value).all())) for value in values)
    return ranks.sum([float(bad)])[0] == 0


def gather_weights(model: nn.Module, ranks: RankGroup) -> dict[str, torch.Tensor]:
    """Gather all weights in one piece on the CPU of rank 0, which writes them (a collective if they are sharded)."""
    pieces = {}
    for name, value in model.named_parameters():
        piece = gather_full(value.detach())
        if ranks.leader:
            pieces[name] = piece.cpu()
    return pieces
