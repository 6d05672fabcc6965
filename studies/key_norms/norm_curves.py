"""Reads what the study looks at: its arms, its groups of layers, what probes read of them, and what decay alone does.

Source: key_norms study, figure 1 and "Experimental Analysis"; its authors' code for what the text leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import COMPLETED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import missing_word
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study
from plumbline.train.learning_rate import make_schedule

SCALE = "base"

#: The paper's run; the same without weight decay on gains; the same with gains that never move.
AS_PUBLISHED, NO_DECAY, FROZEN = "as_published", "no_decay", "frozen_gains"

#: Probes that the study shows.
KEY_NORM, QUERY_NORM, ENTROPY = "key_norm", "query_norm", "entropy"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerGroup:
    """Layers (from 0) whose mean the paper shows; `printed`: the id of its final norm in the running text."""

    name: str
    label: str
    layers: tuple[int, ...]
    printed: str = ""

    @property
    def title(self) -> str:
        """As ``Early layers (0-1)``."""
        return f"{self.label} ({self.layers[0]}-{self.layers[-1]})"


def groups(layers: int) -> tuple[LayerGroup, ...]:
    """The paper's groups in a model of so many layers: the first two, the two about the middle, the last two.

    Of 22 layers they are 0-1, 10-11 and 20-21, as its text has them. Its authors' code means layers 11-12 by the middle
    ones: the last group, which the paper does not name (interpretation `middle_layers`).
    """
    half = layers // 2
    return (
        LayerGroup(name="early", label="Early layers", layers=(0, 1), printed="early_norm"),
        LayerGroup(name="middle", label="Middle layers", layers=(half - 1, half), printed="middle_norm"),
        LayerGroup(name="final", label="Final layers", layers=(layers - 2, layers - 1), printed="late_norm"),
        LayerGroup(name="middle_in_code", label="Middle layers, authors' code", layers=(half, half + 1)),
    )


def count_layers(study: Study) -> int:
    """Layers of the study's models under its preset."""
    return next(run.spec.model.layers for run in study.runs.values() if run.spec.scale == SCALE)


def find_spec(study: Study, arm: str) -> RunSpec | None:
    """The spec of an arm's first run; None if the study has none."""
    mine = [run.spec for run in study.runs.values() if (run.spec.scale, run.spec.method) == (SCALE, arm)]
    return mine[0] if mine else None


def curve(frames: RunFrames, arm: str, probe: str) -> pd.DataFrame:
    """What a probe read of an arm over its training: one row a step, one column a layer, the mean over heads and
    seeds. Without rows where nothing was read."""
    return _by_layer(frames.probes, list(frames.select(SCALE, [arm]).index), probe)


def _by_layer(probes: pd.DataFrame, keys: list[str], probe: str) -> pd.DataFrame:
    mine = probes[probes["key"].isin(keys) & (probes["probe"] == probe) & probes["layer"].notna()]
    mine = mine.astype({"layer": int, "step": int, "value": float})
    return mine.pivot_table(index="step", columns="layer", values="value", aggfunc="mean")


@dataclass(frozen=True, kw_only=True, slots=True)
class StartAndFinalValues:
    """What a probe read of an arm before the first step (`start`) and after the last (`final`), by layer; empty, with
    the `word` for it, where no run of the arm completed. `runs` are the keys behind it, `n` how many completed."""

    start: pd.Series
    final: pd.Series
    runs: tuple[str, ...]
    n: int
    word: str

    def change(self) -> pd.Series:
        """By how much each layer's number moved."""
        return self.final - self.start


def read_ends(frames: RunFrames, arm: str, probe: str) -> StartAndFinalValues:
    """The ends of an arm's curves, the mean over the seeds that completed.

    Raises:
        PlumblineError: a probe was not read at both ends.
    """
    runs = frames.select(SCALE, [arm])
    done = runs[runs["outcome"] == COMPLETED]
    keys = tuple(str(key) for key in runs.index)
    nothing = pd.Series(dtype=float)
    if done.empty:
        return StartAndFinalValues(
            start=nothing, final=nothing, runs=keys, n=0, word=missing_word(runs["outcome"]) if keys else MISSING
        )
    over = _by_layer(frames.probes, list(done.index), probe)
    if over.empty:
        return StartAndFinalValues(start=nothing, final=nothing, runs=keys, n=0, word=MISSING)
    first, last, steps = over.index[0], over.index[-1], int(done["steps"].max())
    if (first, last) != (0, steps):
        raise PlumblineError(
            f"studies/key_norms/study.yaml: recipe.probes: {probe} was read from step {first} to step {last} of "
            f"{steps}; a change needs both ends, which `every: N` reads"
        )
    return StartAndFinalValues(start=over.iloc[0], final=over.iloc[-1], runs=keys, n=len(done), word="")


def read_final_norm(frames: RunFrames, group: LayerGroup, key: str) -> float:
    """The key norm of a run at its last reading, over a group of layers."""
    over = _by_layer(frames.probes, [key], KEY_NORM)
    return math.nan if over.empty else mean_over(over.iloc[-1], group.layers)


def mean_over(values: pd.Series, layers: Iterable[int]) -> float:
    """The mean of some layers' numbers; NaN if one has none."""
    return math.nan if values.empty else float(values[list(layers)].mean())


def decay(spec: RunSpec) -> np.ndarray:
    """What weight decay alone makes of a gain of 1: prod (1 - lr wd) up to each step, from step 0.

    Constantly 1 where gains are not decayed, or do not move at all. Gains go by AdamW, at its own learning rate.
    """
    optimizer, steps = spec.optimizer, spec.train.steps
    frozen = any(entry["name"] == "freeze" and entry["role"] == "norm" for entry in spec.interventions)
    weight_decay = optimizer.weight_decay if optimizer.decay_norms and not frozen else 0.0
    rate = optimizer.learning_rate * optimizer.options.get("adamw_learning_rate_ratio", 1.0)
    share = make_schedule(spec.schedule, steps)
    return np.cumprod([1.0, *(1.0 - rate * share(step) * weight_decay for step in range(1, steps + 1))])
