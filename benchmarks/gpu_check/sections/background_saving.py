"""A checkpoint that is written while steps are taken, next to one for which training waits: the same bytes, and how
long the next step has to wait for either."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    from plumbline.specs.spec import RunSpec

TITLE = "Checkpoints beside training"
SHARE = 0.1

SEQUENCES = 4
#: Steps that are taken while a checkpoint is written, at least.
STEPS = 3


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """One row, of the baseline."""
    return {
        "baseline": lambda: _save_twice(
            base_scale_specs.runs(setting.size.mini)[base_scale_specs.BASELINE], setting.device
        )
    }


def _save_twice(spec: RunSpec, device: str) -> dict[str, Any]:
    """The same state written in both ways. The first save of either kind is not timed: it allots memory."""
    from plumbline.core.stop_request import StopRequest
    from plumbline.model.distributed import join_ranks
    from plumbline.model.numerics import numerics
    from plumbline.train.pretrain import build_loop
    from plumbline.train.step_time import TimingSettings, on_random_tokens, random_pack
    from plumbline.train.trainer_settings import TrainerSettings

    with join_ranks(device) as group, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numerics(group.device)
        spec = on_random_tokens(spec, TimingSettings(sequences=SEQUENCES))
        pack = random_pack(folder / "random.json", spec, SEQUENCES)
        settings = TrainerSettings(
            training_pack=pack, validation_pack=pack, state=folder, out=folder, device=device, micro_batch=SEQUENCES,
            checkpoint_seconds=float("inf"), report_seconds=float("inf"), metric_lag_steps=0,
        )  # fmt: skip
        run_lock: Any = SimpleNamespace(check=lambda: None)
        loop = build_loop(spec, settings, StopRequest(), group, run_lock)
        loop.parts.progress.start(0)
        pauses: dict[bool, float] = {}
        for _ in range(2):
            loop.train_step()
            for beside in (False, True):
                pauses[beside] = _pause(functools.partial(loop.save, background=beside), device)
                for _ in range(STEPS if beside else 0):
                    loop.train_step()
                loop.parts.saver.wait(loop.step)
                saved = max(folder.glob("step-*"))
                if not beside:
                    saved.rename(folder / f"at-once-{saved.name}")
        at_once = folder / f"at-once-{saved.name}"
        files = {path.name: path.read_bytes() for path in saved.glob("*.safetensors")}
        wrong = [file for file, content in files.items() if content != (at_once / file).read_bytes()]
    return {
        "equal": len(files) == 2 and not wrong,
        "wrong": wrong,
        "bytes": sum(map(len, files.values())),
        "at_once_ms": 1e3 * pauses[False],
        "beside_ms": 1e3 * pauses[True],
    }


def _pause(save: Callable[[], None], device: str) -> float:
    """Seconds until the device could begin with the next step."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    save()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def page(state: MeasuredRows) -> list[str]:
    """The table."""
    measured = state.rows("background_saving")
    return table(
        ("run", "MB", "pause at once, ms", "pause beside, ms", "same bytes"),
        (
            (key, f"{row['bytes'] / 1e6:,.0f}", f"{row['at_once_ms']:.0f}", f"{row['beside_ms']:.0f}", row["equal"])
            for key, row in measured.items()
        ),
    )
