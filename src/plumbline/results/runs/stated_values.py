"""Reads the number of a run that a statement measures: of its outcome, its probes, its scores or its interventions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.small_file import CAPPED_LOSS, Measure
from plumbline.specs.small_measures import NEAR
from plumbline.specs.small_runs import StatedRun

#: Of a run that completed and of which the number was not read.
NOT_READ = "not read"


@dataclass(frozen=True, slots=True)
class Value:
    """A number of one seed of an arm, NaN with the `word` for it where there is none, and the keys of its runs."""

    number: float
    runs: tuple[str, ...]
    word: str = ""


class RunValues:
    """The numbers of runs, by key."""

    def __init__(self, frames: RunFrames) -> None:
        self.frames = frames
        self._probes = {str(key): rows for key, rows in frames.probes.groupby("key")} if len(frames.probes) else {}
        scores = frames.scores[frames.scores["task"] != frames.average]
        self._scores = {(str(key), str(name)): rows for (key, name), rows in scores.groupby(["key", "metric"])}

    def read(self, measure: Measure, runs: Sequence[StatedRun]) -> Value:
        """Read a measure of one seed of an arm, which has a run for each rate."""
        keys = tuple(run.spec.key for run in runs)
        outcomes = [self.find_outcome(key) for key in keys]
        scored = measure.frame != "scores" or all(
            (key, measure.column) in self._scores
            for key, outcome in zip(keys, outcomes, strict=True)
            if outcome == COMPLETED
        )
        if MISSING in outcomes or not scored:
            return Value(math.nan, keys, MISSING)
        if measure.over_rates is None and len(runs) > 1:  # no rate is chosen of them
            return Value(math.nan, keys, DIVERGED if DIVERGED in outcomes else MISSING)
        by_rate = {
            run.rate: self._read_run(measure, run)
            for run, outcome in zip(runs, outcomes, strict=True)
            if outcome == COMPLETED or measure.column == CAPPED_LOSS
        }
        if not all(math.isfinite(number) for number in by_rate.values()):
            return Value(math.nan, keys, NOT_READ)
        may_diverge = measure.column == CAPPED_LOSS or measure.over_rates in ("lowest", "largest_trained")
        if DIVERGED in outcomes and not (may_diverge and by_rate):
            return Value(math.nan, keys, DIVERGED)
        of_equal_chances = math.log(runs[0].spec.model.vocabulary)
        if measure.over_rates == "sensitivity" and min(by_rate.values()) >= of_equal_chances:
            return Value(math.nan, keys, DIVERGED)  # no rate trains; its sensitivity would be 0, the best there is
        return Value(_join_rates(measure, by_rate), keys)

    def find_outcome(self, key: str) -> str:
        """How a run ended; `MISSING` where it is not there, or was not asked for."""
        return str(self.frames.runs.loc[key, "outcome"]) if self.is_asked(key) else MISSING

    def is_asked(self, key: str) -> bool:
        """Whether a run was asked for: a configuration may leave sizes out."""
        return key in self.frames.runs.index

    def is_missing(self, key: str) -> bool:
        """Whether a run is not there."""
        return self.find_outcome(key) == MISSING

    def read_loss(self, key: str) -> float:
        """The final validation loss of a run; NaN where it is missing or diverged."""
        completed = self.find_outcome(key) == COMPLETED
        return float(self.frames.runs.loc[key, "validation_loss"]) if completed else math.nan

    def _read_run(self, measure: Measure, run: StatedRun) -> float:
        """The number of a run that completed, or that has one all the same; NaN where it was not read."""
        if measure.column == CAPPED_LOSS:
            of_equal_chances = math.log(run.spec.model.vocabulary)
            if self.find_outcome(run.spec.key) == DIVERGED:
                return of_equal_chances
            return float(np.minimum(self.read_loss(run.spec.key), of_equal_chances))  # NaN, not read, stays
        number = self._read_column(measure, run, measure.column, measure.layers)
        if measure.less is not None:
            number -= self._read_column(measure, run, measure.less, measure.layers)
        if measure.less_layers is not None:
            number -= self._read_column(measure, run, measure.column, measure.less_layers)
        return number

    def _read_column(self, measure: Measure, run: StatedRun, column: str, layers: str | None) -> float:
        key = run.spec.key
        if measure.frame == "runs":
            return float(self.frames.runs.loc[key, column])
        if measure.frame == "interventions":
            values = [each[column] for each in self.frames.outcomes[key].get("interventions", ()) if column in each]
            return float(values[0]) if len(values) == 1 and isinstance(values[0], (int, float)) else math.nan
        if measure.frame == "scores":
            rows = self._scores.get((key, column))
            return math.nan if rows is None else float(rows["value"].mean(skipna=False))
        rows = self._probes.get(key)
        if rows is None:
            return math.nan
        rows = rows[(rows["probe"] == column) & ((rows["fraction"] - measure.at).abs() < NEAR)]
        return float(
            rows[_choose_layers(rows["layer"], str(layers), run.spec.model.layers)]["value"].mean(skipna=False)
        )


def choose_rate(runs: Sequence[StatedRun], values: RunValues) -> float | None:
    """The rate of the lowest mean loss over an arm's tuning runs at a size; a rate at which one diverges is none.

    None while one is missing, or where no rate trains.
    """
    losses: dict[float, list[float]] = {}
    for run in runs:
        assert run.rate is not None
        losses.setdefault(run.rate, []).append(values.read_loss(run.spec.key))
    if any(values.is_missing(run.spec.key) for run in runs):
        return None
    means = {rate: float(np.mean(of_rate)) for rate, of_rate in losses.items() if np.isfinite(of_rate).all()}
    return min(means, key=means.__getitem__, default=None)


def _choose_layers(layer: pd.Series, layers: str, count: int) -> pd.Series:
    """Which rows are of these layers: halves, or the first, middle or last two; `all` has what no layer has, too."""
    half = count // 2
    bounds: dict[str, tuple[float, float]] = {
        "lower": (0, half),
        "upper": (half, count),
        "early": (0, 2),
        "middle": (half - 1, half + 1),
        "final": (count - 2, count),
    }
    if layers == "all":
        return pd.Series(True, index=layer.index)
    first, end = bounds[layers]
    return (layer >= first) & (layer < end)


def _join_rates(measure: Measure, by_rate: Mapping[float | None, float]) -> float:
    """What the values at several rates are together (`Measure.over_rates`)."""
    values = np.array(list(by_rate.values()))
    if measure.over_rates == "lowest":
        return float(values.min())
    if measure.over_rates == "sensitivity":
        return float(values.mean() - values.min())
    if measure.over_rates == "largest_trained":
        assert measure.trained_within is not None
        trained = [rate for rate, value in by_rate.items() if value <= values.min() + measure.trained_within]
        return math.log10(max(rate for rate in trained if rate is not None))
    (value,) = values
    return float(value)
