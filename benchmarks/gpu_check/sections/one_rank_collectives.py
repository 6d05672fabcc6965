"""Many ranks' code on one rank: the collectives of `train.distributed`, and DDP's gradients next to a bare model's.

One rank is enough to see that NCCL is there, starts and takes the tensors that are handed to it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    import torch

    from plumbline.model.distributed import RankGroup

TITLE = "DDP and NCCL on one rank"
SHARE = 0.1

#: Sums of a GPU are in no fixed order.
TOLERANCE = 1e-4


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """Two rows."""
    return {"collectives": lambda: _collectives(setting.device), "gradients": lambda: _gradients(setting)}


@contextlib.contextmanager
def _one_rank(device: str) -> Iterator[RankGroup]:
    """A process group of one. `world` is said to be two, since with one rank the trainer calls no collective at all."""
    import torch
    from torch import distributed

    from plumbline.model.distributed import RankGroup

    chosen = torch.device(device, 0) if device == "cuda" else torch.device(device)
    if device == "cuda":
        torch.cuda.set_device(chosen)
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            init_method=f"file://{folder}/rendezvous",
            rank=0,
            world_size=1,
            device_id=chosen if device == "cuda" else None,
        )
        try:
            yield RankGroup(rank=0, world=2, device=chosen)
        finally:
            distributed.destroy_process_group()


def _collectives(device: str) -> dict[str, Any]:
    from torch import distributed

    with _one_rank(device) as group:
        results = {
            "sum": group.sum([1.5, -2.0]) == [1.5, -2.0],
            "max": group.max([1.5, -2.0]) == [1.5, -2.0],
            "broadcast": group.broadcast({"step": 3}) == {"step": 3},
            "gather": group.gather("rank 0")[0] == "rank 0",
        }
        group.barrier()
        backend = distributed.get_backend()
    wrong = [name for name, right in results.items() if not right]
    return {"backend": backend, "equal": not wrong, "wrong": wrong, "error": None}


def _gradients(setting: SectionCall) -> dict[str, Any]:
    import torch
    from torch import distributed

    from plumbline.model.decoder import create
    from plumbline.model.distributed import gradient_sync, parallel
    from plumbline.model.numerics import numerics

    numerics(torch.device(setting.device))
    spec = base_scale_specs.runs(setting.size.mini)[base_scale_specs.BASELINE].model
    draw = torch.Generator().manual_seed(0)
    tokens_BT = torch.randint(spec.vocabulary, (4, spec.context), generator=draw).to(setting.device)
    gradients: dict[str, torch.Tensor] = {}
    for way in ("bare", "wrapped"):
        with _one_rank(setting.device) if way == "wrapped" else contextlib.nullcontext() as group:
            model = create(spec, 0, setting.device)
            forward = model if group is None else parallel(model, group, "ddp")
            for number, part_BT in enumerate(tokens_BT.split(2)):
                with gradient_sync(forward, last=number == 1):
                    (forward(part_BT, loss=True) / tokens_BT.numel()).backward()
            gradients[way] = torch.cat([value.grad.flatten().double() for value in model.parameters()])
            backend = None if group is None else distributed.get_backend()
            del forward
    error = ((gradients["wrapped"] - gradients["bare"]).norm() / gradients["bare"].norm()).item()
    return {"backend": backend, "equal": error <= TOLERANCE, "error": error}


def page(state: MeasuredRows) -> list[str]:
    """The table."""
    measured = state.rows("one_rank_collectives")
    return table(
        ("what", "backend", "error", "equal"),
        ((key, row["backend"], row["error"], row["equal"]) for key, row in measured.items()),
    )
