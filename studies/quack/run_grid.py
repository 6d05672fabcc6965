"""Reads the study's grid: kinds of attention, methods, base rates eta and, for some methods, tau; and how each run
ended.

Source: quack study, "Key Results" and "First 3 experiments"; what counts as stable and which tau is best is ruled in
studies/quack/study.yaml (`stable`, `best_tau`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study

#: Scale -> what readers call its attention.
ATTENTION = {"mha": "MHA", "mla": "MLA"}

DEFAULT, QK_NORM, QUACK, ABLATION = "default", "qk_norm", "quack", "ablation"
QK_CLIPS = ("qk_clip_30", "qk_clip_100")

#: A held-out loss further than this above the lowest before it is a spike (nats).
SPIKE = 0.1

#: Losses this far apart differ, and within this are competitive (nats; interpretation `slightly`).
DIFFERENT, COMPETITIVE = 0.01, 0.05


class RunGrid:
    """Runs by (scale, method, eta, tau); tau is None for a method that has none. A key is None if the study has no
    such run; NaN is a value that is not there, whatever the reason."""

    def __init__(self, frames: RunFrames, study: Study) -> None:
        self.frames, self.study = frames, study
        self._held_out: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def scales(self) -> list[str]:
        """Kinds of attention that have a run."""
        return [scale for scale in ATTENTION if (self.frames.runs["scale"] == scale).any()]

    @cached_property
    def etas(self) -> list[float]:
        """Base rates, rising."""
        return self._axis(DEFAULT, "eta")

    @cached_property
    def taus(self) -> list[float]:
        """Multiples of the base rate for queries and keys, rising."""
        return self._axis(QUACK, "tau")

    def _axis(self, method: str, axis: str) -> list[float]:
        return sorted({float(point[axis]) for point in self.study.points(method).values() if axis in point})

    @cached_property
    def _keys(self) -> dict[tuple[str, str, float, float | None], str]:
        keys = {}
        for key, run in self.frames.runs.iterrows():
            point = self.study.points(run["method"]).get(run["method"])
            if point:
                tau = float(point["tau"]) if "tau" in point else None
                keys[run["scale"], run["method"].partition(".")[0], float(point["eta"]), tau] = str(key)
        return keys

    def methods(self, scale: str) -> list[str]:
        """Methods with a run at a scale, in the YAML's order."""
        mine = {method for at, method, *_ in self._keys if at == scale}
        return [method for method in self.study.definition["methods"] if method in mine]

    def taus_of(self, method: str) -> Sequence[float | None]:
        """The taus that a method is run at: None alone for one that has no tau."""
        return self.taus if self._axis(method, "tau") else (None,)

    def key(self, scale: str, method: str, eta: float, tau: float | None = None) -> str | None:
        """The run at a point."""
        return self._keys.get((scale, method, eta, tau))

    def keys(self, scale: str, method: str, eta: float) -> dict[float | None, str]:
        """tau -> run, of all taus of a method at a base rate."""
        keys = {tau: self.key(scale, method, eta, tau) for tau in self.taus_of(method)}
        return {tau: key for tau, key in keys.items() if key is not None}

    @property
    def middle_eta(self) -> float:
        """The base rate in the middle, at which variants and the wider grid of tau are run."""
        return self.etas[len(self.etas) // 2]

    def list_runs_by_tau(self, scale: str) -> dict[float, str]:
        """tau -> QuacK's run at the middle base rate, those of the wider grid among them."""
        runs = {tau: key for tau, key in self.keys(scale, QUACK, self.middle_eta).items() if tau is not None}
        for key, run in self.frames.select(scale).iterrows():
            arm = self.study.definition.get("arms", {}).get(run["method"])
            if arm is not None and arm["variant_of"].startswith(f"{QUACK}."):
                runs[self._read_tau(str(key), QUACK)] = str(key)
        return runs

    def variants(self, scale: str) -> dict[str, str]:
        """Variant (``method.variant``) -> its run at a scale, in the YAML's order."""
        runs = self.frames.select(scale)
        there = {run["method"]: str(key) for key, run in runs.iterrows() if key in self.study.runs}
        names = [
            f"{method}.{variant}"
            for method, entry in self.study.definition["methods"].items()
            for variant in entry.get("variants", {})
        ]
        return {method: there[method] for method in names if method in there}

    def read_from(self, scale: str, variant: str) -> str | None:
        """The run of the default variant at the same base rate and tau."""
        method, key = variant.partition(".")[0], self.variants(scale)[variant]
        tau = None if None in self.taus_of(method) else self._read_tau(key, method)
        return self.key(scale, method, self.spec(key).optimizer.learning_rate, tau)

    def _read_tau(self, key: str, method: str) -> float:
        """The tau in a run's spec, where the sweep of its method sets it."""
        _, name, option = self.study.definition["methods"][method]["sweep"]["tau"]["sets"].split(".")
        return float(next(entry[option] for entry in self.spec(key).interventions if entry["name"] == name))

    # How a run ended

    def spec(self, key: str) -> RunSpec:
        """The spec of a run."""
        return self.study.every_run[key].spec

    def outcome(self, key: str | None) -> str:
        """completed, diverged or missing."""
        return MISSING if key is None else str(self.frames.runs.loc[key, "outcome"])

    def loss(self, key: str | None) -> float:
        """Final held-out loss of a run that completed, nats a token."""
        there = self.outcome(key) == COMPLETED
        return float(self.frames.runs.loc[key, "validation_loss"]) if there else math.nan

    def validation_curve(self, key: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Steps and held-out losses of a run's evaluations."""
        if key is None:
            return np.array([]), np.array([])
        if key not in self._held_out:
            metrics = self.frames.metrics(key)
            mine = metrics[metrics["split"] == "validation"].sort_values("step")
            self._held_out[key] = (mine["step"].to_numpy(), mine["loss"].to_numpy(dtype=float))
        return self._held_out[key]

    def rise(self, key: str) -> float:
        """By how much a held-out loss after the warm-up is above the lowest before it, at most (nats); infinite if
        one is not finite, NaN if nothing was read after the warm-up."""
        above = self._compute_rises_above_lowest(key)
        return float(above.max()) if above.size else math.nan

    def spikes(self, key: str) -> int:
        """How often the held-out loss rose by more than SPIKE after the warm-up, and came down again or not."""
        high = self._compute_rises_above_lowest(key) > SPIKE
        return int((high[1:] & ~high[:-1]).sum()) + int(high[:1].sum())

    def _compute_rises_above_lowest(self, key: str) -> np.ndarray:
        steps, losses = self.validation_curve(key)
        late = losses[steps >= self.spec(key).schedule.warmup_steps]
        late = np.where(np.isfinite(late), late, np.inf)
        lowest = np.minimum.accumulate(late)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(late - lowest, nan=np.inf, posinf=np.inf)

    def stable(self, key: str) -> bool:
        """Whether a run completed without a spike."""
        return self.outcome(key) == COMPLETED and not self.rise(key) > SPIKE

    def trouble(self, key: str) -> str:
        """What went wrong with a run that was not stable: a word, empty if nothing did."""
        outcome = self.outcome(key)
        if outcome != COMPLETED:
            return outcome
        return "" if self.stable(key) else f"rises by {self.rise(key):.2g}"

    # The best tau

    def find_best_run(self, scale: str, method: str, eta: float) -> str | None:
        """The run of a method at a base rate that stands for it: that of the tau with the lowest final held-out loss
        among completed runs, of equal ones the smaller tau; where none completed, the first there is."""
        keys = list(self.keys(scale, method, eta).values())
        done = [key for key in keys if self.outcome(key) == COMPLETED]
        return min(done, key=self.loss) if done else next(iter(keys), None)

    def tau(self, key: str | None) -> float:
        """A run's tau; NaN if its method has none."""
        mine = next((tau for (*_, tau), run_key in self._keys.items() if run_key == key), None)
        return math.nan if mine is None else mine

    def at_best_rate(self, scale: str, methods: Iterable[str]) -> str | None:
        """The completed run with the lowest final held-out loss over base rates, taus and some methods."""
        keys = [self.find_best_run(scale, method, eta) for method in methods for eta in self.etas]
        done = [key for key in keys if key is not None and self.outcome(key) == COMPLETED]
        return min(done, key=self.loss) if done else None

    def word(self, keys: Iterable[str | None]) -> str:
        """Why runs have no value: diverged if one of them did, else missing."""
        return DIVERGED if DIVERGED in {self.outcome(key) for key in keys} else MISSING

    # Probes

    @cached_property
    def _online(self) -> dict[tuple[str, str], pd.Series]:
        probes = self.frames.probes
        mine = probes[(probes["source"] == "online") & probes["layer"].isna()]
        return {
            (str(key), str(probe)): rows.groupby("step")["value"].mean().astype(float).sort_index()
            for (key, probe), rows in mine.groupby(["key", "probe"], sort=False)
        }

    def curve(self, key: str | None, probe: str) -> pd.Series:
        """Step -> what `logit_change` read of its one head; empty if nothing was."""
        return self._online.get((str(key), probe), pd.Series(dtype=float))

    def largest_logit(self, key: str) -> pd.Series:
        """Step -> largest scaled score of all heads and layers; empty if nothing was read."""
        probes = self.frames.probes
        mine = probes[(probes["key"] == key) & (probes["probe"] == "logit_max") & probes["layer"].notna()]
        return mine.groupby("step")["value"].max().astype(float).sort_index()

    def report(self, key: str, name: str) -> dict[str, Any]:
        """What an intervention of a run decided; empty if it has none or is missing."""
        reports = self.frames.outcomes.get(key, {}).get("interventions", [])
        names = [entry["name"] for entry in self.spec(key).interventions]
        return next((report for own, report in zip(names, reports, strict=False) if own == name), {})
