"""Steps of the trainer in which the host never waits for the device: one that does is an error here.

Each method of the transfer study, and the baseline under Muon, takes steps whose losses are read late
(`plumbline.train.monitoring.deferred_metrics`), once its kernels are compiled, while torch raises at whatever waits. A
processor has no queue to wait for: there it is seen that the steps are taken, and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    from plumbline.specs.spec import RunSpec

TITLE = "Steps without waiting for the device"
SHARE = 0.1

#: Steps late, and steps beyond these, so that some are read while later ones wait.
LATE, MORE = 4, 3
SEQUENCES = 4


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each method, and one for Muon."""
    specs = base_scale_specs.runs(setting.size.mini)
    chosen = {name: specs[name] for name in base_scale_specs.methods() if name in specs}
    planned = {name: functools.partial(_steps, spec, setting.device) for name, spec in chosen.items()}
    return planned | {"muon": functools.partial(_steps, _with_muon(specs[BASELINE]), setting.device)}


def _with_muon(spec: RunSpec) -> RunSpec:
    import msgspec

    return msgspec.structs.replace(spec, optimizer=msgspec.structs.replace(spec.optimizer, name="muon"))


@contextlib.contextmanager
def _no_waiting(device: str) -> Iterator[None]:
    """Whatever waits for a GPU in here raises."""
    import torch

    if device != "cuda":
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _steps(spec: RunSpec, device: str) -> dict[str, Any]:
    from plumbline.core.stop_request import StopRequest
    from plumbline.model.distributed import join_ranks
    from plumbline.model.numerics import numerics
    from plumbline.train.pretrain import build_loop
    from plumbline.train.step_time import TimingSettings, on_random_tokens, random_pack
    from plumbline.train.trainer_settings import TrainerSettings

    with join_ranks(device) as group, tempfile.TemporaryDirectory() as folder:
        numerics(group.device)
        pack = random_pack(Path(folder) / "random.json", spec, SEQUENCES)
        settings = TrainerSettings(
            training_pack=pack, validation_pack=pack, state=Path(folder), out=Path(folder), device=device,
            metric_lag_steps=LATE, micro_batch=SEQUENCES // 2, checkpoint_seconds=float("inf"),
            report_seconds=float("inf"),
        )  # fmt: skip
        loop = build_loop(on_random_tokens(spec, TimingSettings(sequences=SEQUENCES)), settings, StopRequest(), group)
        loop.train_step()
        loop.catch_up()
        with _no_waiting(device):
            for _ in range(LATE + MORE):
                loop.train_step()
        finite = loop.catch_up()
    return {"steps": loop.step, "finite": finite, "waited": "not on a CPU" if device == "cpu" else "never"}


def page(state: MeasuredRows) -> list[str]:
    """The table; a method that waited has no row, and is named with torch's words."""
    measured = state.rows("steps_without_waiting")
    return table(
        ("method", "steps", "losses finite", "host waited"),
        ((key, row["steps"], row["finite"], row["waited"]) for key, row in measured.items()),
    )
