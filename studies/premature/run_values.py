"""Reads of the study's runs what its tables, figures and claims need. NaN is a value that is not there, whatever the
reason.

Source: premature study, sections 2, 4 and 5; definitions in `interpretations` of studies/premature/study.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.stats.curve_crossing import first_at_or_below

#: The scales of the study, and the two runs of its central comparison.
BASE, LARGE = "base", "large"
CONTROL, INTERVENTION = "gpt", "gpt_slow"

#: Where the early readouts are taken, where the control of appendix E is compared, and the end.
EARLY, FIFTH, END = 0.03, 0.2, 1.0

#: Upper attention is sharp below this normalised entropy (Figure 3A; interpretation `sharp_threshold`).
SHARP = 0.75

Part = Literal["upper", "lower", "first_upper", "model"]


def name_slowed_run(architecture: str) -> str:
    """The run of an architecture under the intervention."""
    return f"{architecture}_slow"


class RunValues:
    """Numbers of a study's runs, by the key of a run; None is the key of a run that is not expected at all."""

    def __init__(self, frames: RunFrames, study: Study) -> None:
        self.frames, self.study = frames, study
        self._held_out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._offline: dict[str, dict[str, pd.DataFrame]] = {}
        self._curves: dict[tuple[str, str, Part, str], pd.Series] = {}

    @cached_property
    def _keys(self) -> dict[tuple[str, str], dict[int, str]]:
        """Method and scale -> seed -> key, by rising seed."""
        keys: dict[tuple[str, str], dict[int, str]] = {}
        for key, run in self.frames.runs.sort_values("seed", kind="stable").iterrows():
            keys.setdefault((run["method"], run["scale"]), {})[int(run["seed"])] = str(key)
        return keys

    def key(self, method: str, scale: str = BASE, seed: int | None = None) -> str | None:
        """A method's run: of a seed, or of the first one."""
        mine = self._keys.get((method, scale), {})
        return next(iter(mine.values()), None) if seed is None else mine.get(seed)

    def seeds(self, method: str, scale: str = BASE) -> list[int]:
        """Seeds of a method's runs."""
        return list(self._keys.get((method, scale), {}))

    def outcome(self, key: str | None) -> str:
        """completed, diverged or missing."""
        return MISSING if key is None else str(self.frames.runs.loc[key, "outcome"])

    def word(self, *keys: str | None, otherwise: str = MISSING) -> str:
        """Why runs have no value: one of them is missing, or diverged; `otherwise` where all of them are whole."""
        outcomes = {self.outcome(key) for key in keys}
        return next((word for word in (MISSING, DIVERGED) if word in outcomes), otherwise)

    def loss(self, key: str | None) -> float:
        """Final held-out loss, nats a token."""
        return math.nan if key is None else float(self.frames.runs.loc[key, "validation_loss"])

    def perplexity(self, key: str | None) -> float:
        """exp of the final held-out loss."""
        return math.exp(self.loss(key))

    def budget(self, key: str) -> int:
        """Tokens of a run's whole training."""
        train = self.study.runs[key].spec.train
        return train.steps * train.batch_tokens

    def gain(self, control: str | None, other: str | None) -> float:
        """How much lower the other run's final perplexity is than the control's."""
        return self.perplexity(control) - self.perplexity(other)

    def tokens_to(self, key: str | None, level: float) -> float:
        """Tokens after which a run's held-out loss is at most `level`, linear between evaluations; NaN: never."""
        if key is None or math.isnan(level) or self.outcome(key) == MISSING:
            return math.nan
        return first_at_or_below(*self.validation_curve(key), level)

    def validation_curve(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and held-out loss at a run's evaluations."""
        if key not in self._held_out:
            metrics = self.frames.metrics(key)
            mine = metrics[metrics["split"] == "validation"].sort_values("step")
            self._held_out[key] = (mine["tokens"].to_numpy(), mine["loss"].to_numpy())
        return self._held_out[key]

    def tokens_saved_percent(self, control: str | None, other: str | None) -> float:
        """Share of the budget that the other run does not need to reach the control's final loss."""
        reached = self.tokens_to(other, self.loss(control))
        return math.nan if other is None else 100 * (1 - reached / self.budget(other))

    # Probes

    def rows(self, key: str, probe: str) -> pd.DataFrame:
        """Everything that an offline probe read of a run."""
        probes = self.frames.probes
        if key not in self._offline:
            # A claim reads one or two runs of hundreds.
            of_run = probes[(probes["key"] == key) & (probes["source"] == "offline")]
            self._offline[key] = {str(name): rows for name, rows in of_run.groupby("probe", sort=False)}
        return self._offline[key].get(probe, probes.iloc[:0])

    def first_upper(self, key: str) -> int:
        """The first layer of the upper half, counted from 0."""
        return self.study.every_run[key].spec.model.layers // 2

    def value(self, key: str | None, probe: str, fraction: float, part: Part = "upper", column: str = "value") -> float:
        """The mean of a value over a part's layers and heads at a fraction of training; `model`: of no layer."""
        curve = self.curve(key, probe, part, column)
        return float(curve[fraction]) if fraction in curve.index else math.nan

    def null(self, key: str | None, probe: str, fraction: float, part: Part = "upper") -> float:
        """The mean of the value's null, likewise."""
        return self.value(key, probe, fraction, part, "null")

    def curve(self, key: str | None, probe: str, part: Part = "upper", column: str = "value") -> pd.Series:
        """Fraction of training -> mean of a value over a part's layers and heads, by rising fraction."""
        if key is None:
            return pd.Series(dtype=float)
        name = (key, probe, part, column)
        if name not in self._curves:
            self._curves[name] = self._curve(*name)
        return self._curves[name]

    def _curve(self, key: str, probe: str, part: Part, column: str) -> pd.Series:
        rows = self.rows(key, probe)
        if rows.empty:
            return pd.Series(dtype=float)
        first, layers = self.first_upper(key), rows["layer"]
        chosen = {
            "upper": layers >= first,
            "lower": layers < first,
            "first_upper": layers == first,
            "model": layers.isna(),
        }[part]
        there = rows[chosen.fillna(False).astype(bool)]
        return there.groupby("fraction")[column].mean().astype(float).sort_index()

    def ablation(self, key: str | None, kind: str = "loss_neither") -> pd.Series:
        """Fraction -> by how much perplexity rises when the upper half's queries and keys are zero (Figure 3D)."""
        whole, without = self.curve(key, "loss", "model"), self.curve(key, kind, "model")
        return without.map(math.exp) - whole.map(math.exp) if len(whole) and len(without) else whole

    def find_sharp_point(self, key: str | None, threshold: float = SHARP) -> float:
        """The first point at which upper attention is sharp (Figure 3A); NaN: none."""
        entropy = self.curve(key, "entropy")
        reached = entropy.index[entropy < threshold] if len(entropy) else []
        return float(reached[0]) if len(reached) else math.nan

    def pairs(self, scale: str = BASE) -> Iterator[tuple[int, str | None, str | None]]:
        """Seed, control and intervention of each pair of the central comparison."""
        for seed in self.seeds(CONTROL, scale):
            yield seed, self.key(CONTROL, scale, seed), self.key(INTERVENTION, scale, seed)
