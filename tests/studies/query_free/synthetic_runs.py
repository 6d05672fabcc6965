"""Synthetic run directories of the query_free study with chosen final losses, written as training writes them, and a
made-up measurement of basis transfer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.measurements import measurement_file
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs import study_config
from plumbline.specs.study_config import Study
from tests.studies.run_files import MadeRun, exchange_runs, make_run, write_run

ROOT = Path(__file__).resolve().parents[3]
STUDY = "query_free"
PUBLISHED = PrintedNumbers(ROOT / "studies" / STUDY / "published")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """How a run ended."""

    loss: float
    outcome: str = "completed"
    step_seconds: float = 0.5


#: Final losses: as printed, and of the other runs as the text states about them (or in its spirit).
LOSSES = {
    "baseline": 2.944,
    "baseline_small_mlp": 2.955,
    "baseline_small_d": 2.956,
    "wq_identity": 2.944,
    "wq_identity_large_mlp": 2.929,
    "residual_query": 2.943,
    "residual_query_gelu": 2.935,
    "wq_identity_floor_tenth": 2.956,
    "wq_identity_decay_0p025": 2.947,
    "wq_identity_unscaled": 2.949,
    "wq_identity_matched": 2.944,
    "baseline_reduced_schedule": 2.951,
    "baseline_large_schedule": 2.962,
    "wq_identity_baseline_schedule": 2.963,
    "wq_identity_large_schedule": 2.948,
    "wq_identity_large_mlp_reduced_schedule": 2.934,
    "wq_identity_large_mlp_rate_3e3": 2.936,
    "norm_free": 3.6,
}

World = dict[str, Facts]


def as_the_document_says() -> World:
    """Every run by its method."""
    fewer = {name for name in LOSSES if name.startswith("wq_identity")}
    return {name: Facts(loss=loss, step_seconds=0.46 if name in fewer else 0.5) for name, loss in LOSSES.items()}


def with_losses(world: World, **losses: float) -> World:
    """Some final losses changed."""
    return world | {name: replace(world[name], loss=loss) for name, loss in losses.items()}


@cache
def study_at(preset: str = "paper") -> Study:
    """The study, loaded once."""
    return study_config.load(STUDY, preset)


def write_runs(world: World, root: Path, preset: str = "paper") -> Path:
    """Write the runs of a world under `root`."""
    for method, facts in world.items():
        write_run(root, _make(method, facts, study_at(preset)))
    return root


def load_where(right: Path, world: World, root: Path, transfer: Transfer) -> RunFrames:
    """The frames of a world, of which nothing is written, and of a measurement below `root`."""
    changed = [name for name, facts in as_the_document_says().items() if world.get(name) != facts]
    anew = {_name_run(name): _make(name, world[name], study_at()) if name in world else None for name in changed}
    return exchange_runs(load_right(right), anew, write_transfer(transfer, root))


@cache
def load_right(root: Path) -> RunFrames:
    """The frames of a world of which nothing is written any more."""
    return load_frames(root)


def load_frames(root: Path, *groups: str, preset: str = "paper", transfer: bool = True) -> RunFrames:
    """The frames of some groups' runs, or of all; `transfer`: with the measurement, if it was written."""
    study = study_at(preset)
    expected = list_expected_runs(None, study, groups or study.usual_groups, root)
    return load(expected, root, measurements={"basis_transfer": MEASURED} if transfer else {})


def _name_run(method: str) -> str:
    return f"{STUDY}/base/{method}/s42"


def _make(method: str, facts: Facts, study: Study) -> MadeRun:
    spec = study.every_run[_name_run(method)].spec
    whole = facts.outcome == "completed"
    last = spec.train.steps if whole else spec.train.steps // 2
    metrics = _metrics(facts.loss, last, spec.train.validate_every)
    made_on = {"device": "cpu", "device_name": "made up", "wall_seconds": facts.step_seconds * last, "parameters": 1}
    return make_run(spec, metrics, step=last, loss=facts.loss, diverged="" if whole else "not finite", made_on=made_on)


def _metrics(final: float, last: int, every: int) -> pd.DataFrame:
    """A held-out loss that falls from 10 to its final value."""
    at = np.arange(every, last + 1, every)
    losses = final + (10 - final) * (1 - at / last) ** 3
    rows = pd.DataFrame({"step": at, "split": "validation", "loss": losses, "grad_norm": np.nan})
    return rows.assign(learning_rate=1e-3, tokens=at * 1000)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What the measurement ends with, by width: relative errors and cosine distances of both arms."""

    widths: tuple[int, ...] = (256, 512, 768)
    mlp: tuple[float, ...] = (0.050, 0.051, 0.052)
    linear: tuple[float, ...] = (0.118, 0.119, 0.120)
    mlp_distance: tuple[float, ...] = (0.0015, 0.0015, 0.0015)
    linear_distance: tuple[float, ...] = (0.0095, 0.0096, 0.0097)
    angle: float = 2.5
    steps: tuple[int, ...] = field(default=(0, 10_000, 20_000))

    def frame(self) -> pd.DataFrame:
        """As the measurement writes it: what it read on the way as well, which is worse."""
        rows: list[dict[str, Any]] = []
        for number, width in enumerate(self.widths):
            mlp, linear = self.mlp[number], self.linear[number]
            near, far = self.mlp_distance[number], self.linear_distance[number]
            ends = {"relative_l2": mlp, "cosine": 1 - near, "cosine_distance": near, "angle_degrees": self.angle}
            for step in self.steps:
                worse = 1 + (self.steps[-1] - step) / self.steps[-1]
                rows += [
                    {"h": width, "arm": "mlp", "step": step, "quantity": q, "value": v * worse} for q, v in ends.items()
                ]
            lines = {
                "relative_l2": linear,
                "cosine": 1 - far,
                "cosine_distance": far,
                "exact_relative_l2": linear - 0.001,
            }
            rows += [{"h": width, "arm": "linear", "step": None, "quantity": q, "value": v} for q, v in lines.items()]
            other = {"h": width, "arm": "linear_eq_13", "step": None}
            rows += [{**other, "quantity": q, "value": 1.4 * v} for q, v in lines.items()]
            rows += [{"h": width, "arm": "mlp_eq_13", "step": 1, "quantity": q, "value": v} for q, v in ends.items()]
        return pd.DataFrame(rows).assign(seed=0).astype({"step": "Int64"})


#: The measurement's key.
MEASURED = f"measured/{STUDY}/basis_transfer"


def write_transfer(transfer: Transfer, root: Path) -> Path:
    """Write the measurement under `root`."""
    path = measurement_file.frame_path(root, MEASURED)
    path.parent.mkdir(parents=True, exist_ok=True)
    measurement_file.write(transfer.frame(), path, {"fingerprint": "m" * 16, "options": {}, "seconds": 1.0})
    return root
