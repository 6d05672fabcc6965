"""Synthetic runs of the key_norms study with chosen key norms and entropies, written as training and probing write
them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs import study_config
from plumbline.studies.key_norms.norm_curves import count_layers
from tests.studies.run_files import MadeRun, exchange_runs, make_run, write_run

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = PrintedNumbers(ROOT / "studies" / "key_norms" / "published")
STUDY = "key_norms"


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What probes read of one arm: by layer, the key norm at the start and at the end, and the final entropy."""

    norms: list[float]
    entropies: list[float]
    start: float = 8.0
    outcome: str = "completed"

    def with_norms(self, **changed: float) -> Arm:
        """Some layers' final norms changed: ``with_norms(l0=8.0)``."""
        norms = list(self.norms)
        for name, value in changed.items():
            norms[int(name.removeprefix("l"))] = value
        return replace(self, norms=norms)


def ramp(layers: int, *points: tuple[float, float]) -> list[float]:
    """A value for each layer, interpolated between (fraction of the depth, value)."""
    at, values = zip(*points, strict=True)
    return [float(value) for value in np.interp(np.arange(layers) / (layers - 1), at, values)]


def as_the_document_says(layers: int) -> dict[str, Arm]:
    """Early layers fall to 5.3 and look wide, the middle ones end at 9.3, the last at 9.8 and look narrow; the rise is
    not decay's doing, the fall is."""
    norms = ramp(layers, (0, 5.2), (0.3, 6.4), (0.35, 9.0), (0.5, 9.3), (0.95, 9.8), (1, 9.8))
    norms[0], norms[1], norms[-2], norms[-1] = 5.2, 5.4, 9.75, 9.85
    entropies = ramp(layers, (0, 0.95), (1, 0.60))
    without = [norm + 3.5 for norm in norms]
    return {
        "as_published": Arm(norms=norms, entropies=entropies),
        "no_decay": Arm(norms=without, entropies=[value - 0.05 for value in entropies]),
        "frozen_gains": Arm(norms=[8.0] * layers, entropies=ramp(layers, (0, 0.9), (1, 0.7))),
    }


@cache
def study_at(preset: str) -> study_config.Study:
    """The study under a preset."""
    return study_config.load(STUDY, preset)


@dataclass
class World:
    """Run directories under `root`, of one preset; of one that was made of another (`before`) nothing is written."""

    root: Path
    preset: str = "paper"
    arms: dict[str, Arm] = field(default_factory=dict)
    before: World | None = None
    study: study_config.Study = field(init=False)

    def __post_init__(self) -> None:
        self.study = study_at(self.preset)
        self.arms = self.arms or as_the_document_says(count_layers(self.study))
        for name, arm in self.arms.items() if self.before is None else ():
            write_run(self.root, self._make(name, arm))

    def load(self, *groups: str) -> RunFrames:
        """The frames of these groups of runs, by default of all that are not made on request."""
        expected = list_expected_runs(None, self.study, groups or self.study.usual_groups, self.root)
        if self.before is None:
            return load(expected, self.root, probes=True)
        changed = [run for run in expected if self.arms.get(run.method) != self.before.arms.get(run.method)]
        anew = {
            run.key: self._make(run.method, self.arms[run.method]) if run.method in self.arms else None
            for run in changed
        }
        return exchange_runs(self.before.load(*groups), anew)

    def _make(self, method: str, arm: Arm) -> MadeRun:
        spec = self.study.runs[f"{STUDY}/base/{method}/s42"].spec
        steps = spec.train.steps
        last = steps if arm.outcome == "completed" else steps // 2
        at = np.linspace(0, last, 12).astype(int)
        metrics = pd.DataFrame({"step": at[1:], "split": "train", "loss": 5.0, "grad_norm": 1.0})
        metrics = metrics.assign(learning_rate=0.024, tokens=at[1:] * spec.train.batch_tokens)
        read = pd.concat([self._curve(spec, arm, probe, at) for probe in ("key_norm", "query_norm", "entropy")])
        diverged = "" if arm.outcome == "completed" else "not finite"
        return make_run(spec, metrics, read, step=last, loss=4.0, diverged=diverged)

    def _curve(self, spec, arm: Arm, probe: str, steps: np.ndarray) -> pd.DataFrame:
        queries = [0.9 * norm for norm in arm.norms]
        ends = {"key_norm": arm.norms, "query_norm": queries, "entropy": arm.entropies}[probe]
        start = 0.98 if probe == "entropy" else arm.start
        heads = spec.model.key_value_heads if probe == "key_norm" else spec.model.heads
        rows = [
            {"step": step, "layer": layer, "head": head, "value": start + (final - start) * step / steps[-1] + away}
            for layer, final in enumerate(ends)
            for head in range(heads)
            for away in [0.001 * (head - (heads - 1) / 2)]
            for step in steps
        ]
        rows.append({"step": int(steps[-1]), "layer": None, "head": None, "value": 0.0})  # of no layer: to be left out
        read = pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})
        null = 1.0 if probe == "entropy" else 8.0
        read = read.assign(run_id=spec.run_id, probe=probe, null=null, source="online")
        return read.assign(fraction=read["step"] / spec.train.steps)
