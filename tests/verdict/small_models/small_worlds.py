"""Draws what the runs of a study's small.yaml leave, so that each contrast of a statement has a known gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from plumbline.core import frames as schemas
from plumbline.results.runs.finished_runs import RUN_COLUMNS, RunFrames
from plumbline.specs import small_file, small_runs
from plumbline.specs.small_file import Measure, SmallFile, Statement
from plumbline.specs.small_runs import StatedRun

#: A loss that is added to all.
LEVEL_OF_LOSS = 5.0
AVERAGE = "average"
#: The decimal logarithm of a rate between those that are tried, with others above and below.
_MIDDLE = 0.75


@cache
def load(study: str) -> tuple[SmallFile, list[StatedRun]]:
    """A study's statements and their runs, as before any rate is chosen; those at chosen rates are at the first one,
    which is what tuning runs choose that are drawn alike at all rates."""
    small = small_file.load_small(study)
    with mock.patch.object(small_file, "load_rates", return_value={}):
        runs = small_runs.list_stated_runs(small_runs.load_definition(small), small)
    first = {each.id: each.rates[0] for each in small.statements if each.rates}
    return small, [replace(run, rate=first[run.statement]) if run.rate is None else run for run in runs]


def solve_offsets(statement: Statement, gain: float) -> dict[str, float]:
    """What each arm is to measure, so that every contrast gains this."""
    weights = np.array([[each.get(arm, 0.0) for arm in statement.arms] for each in statement.contrasts.values()])
    offsets, *_ = np.linalg.lstsq(weights, np.full(len(weights), gain), rcond=None)
    assert np.allclose(weights @ offsets, gain), f"{statement.id}: contrasts that cannot all gain the same"
    return dict(zip(statement.arms, offsets, strict=True))


class World:
    """The frames of one statement's runs at all sizes.

    Args:
        measure: (run, its arm's offset) -> the number that is measured of the run's seed; noise is drawn in it.
        outcome: run -> completed, diverged or missing.
    """

    def __init__(
        self,
        study: str,
        statement: Statement,
        measure: Callable[[StatedRun], float],
        outcome: Callable[[StatedRun], str] = lambda run: "completed",
    ) -> None:
        self.small, runs = load(study)
        self.statement = statement
        self.runs = [run for run in runs if run.statement == statement.id]
        self.rows: list[dict[str, object]] = []
        self.probes: list[dict[str, object]] = []
        self.scores: list[dict[str, object]] = []
        self.outcomes: dict[str, dict[str, object]] = {}
        for run in self.runs:
            ended = outcome(run)
            value = measure(run)
            self._write(statement.measure, run, value, ended)

    def _write(self, measure: Measure, run: StatedRun, value: float, ended: str) -> None:
        key, completed = run.spec.key, ended == "completed"
        self.outcomes[key] = {"interventions": []}
        loss = LEVEL_OF_LOSS
        if measure.frame == "runs":
            loss += value if measure.over_rates is None else _spread_over_rates(measure, run, value)
        elif measure.frame == "interventions":
            self.outcomes[key] = {"interventions": [{"name": "slow", measure.column: value}]}
        elif measure.frame == "scores" and completed:
            for task, shift in (("first", 0.5), ("second", -0.5), (AVERAGE, 99.0)):
                row = {"key": key, "task": task, "metric": measure.column, "task_source": "proxy", "primary": False}
                self.scores.append(row | {"value": value + shift})
        elif completed:
            self.probes += _list_probe_rows(measure, run, value)
        row = dict.fromkeys(RUN_COLUMNS) | {"key": key, "run_id": run.spec.run_id, "outcome": ended}
        row |= {"study": run.spec.study, "scale": run.size, "method": run.spec.method, "seed": run.spec.init_seed}
        self.rows.append(row | {"groups": ("small",), "validation_loss": loss if completed else math.nan})

    def load(self) -> RunFrames:
        """The frames as a table reads them."""
        runs = pd.DataFrame(self.rows).drop_duplicates("key").set_index("key")
        scores = pd.DataFrame(self.scores, columns=[*schemas.SCHEMAS["scores"].names, "key"])
        probes = pd.DataFrame(self.probes, columns=[*schemas.SCHEMAS["probes"].names, "key"])
        return RunFrames(
            work=Path("work"), runs=runs, scores=scores, probes=probes, average=AVERAGE, outcomes=dict(self.outcomes)
        )


def draw(study: str, statement: Statement, gain: float, sigma: float, *, seed: int | None = None) -> World:
    """A world in which each contrast gains this.

    Args:
        sigma: of a run.
        seed: of random errors; None: errors whose mean over an arm's seeds is 0, so that gains are exact.
    """
    rng, offsets = np.random.default_rng(seed or 0), solve_offsets(statement, gain)
    seeds = {True: statement.tuning.seeds if statement.tuning else [], False: statement.seeds}
    errors = {}
    for size in statement.sizes:
        for arm in statement.arms:
            for tuning, of_arm in seeds.items():
                drawn = rng.normal(0, sigma, len(of_arm))
                drawn -= drawn.mean() if seed is None and len(of_arm) else 0.0
                errors |= {(size, arm, tuning, each): error for each, error in zip(of_arm, drawn, strict=True)}

    def measure(run: StatedRun) -> float:
        return offsets[run.arm] + float(errors[run.size, run.arm, run.tuning, run.spec.init_seed])

    return World(study, statement, measure)


def _spread_over_rates(measure: Measure, run: StatedRun, value: float) -> float:
    """The loss at a rate, so that those of all rates together are the value."""
    assert run.rate is not None
    if measure.over_rates == "largest_trained":
        return 0.0 if math.log10(run.rate) <= value + _MIDDLE else 1.0
    if measure.over_rates == "lowest":
        return value + abs(math.log10(run.rate))
    # Of five rates; none is above the loss of equal chances.
    return {0.316: 0.0, 31.6: 1 + 5 * value}.get(run.rate, 0.5)


def _list_probe_rows(measure: Measure, run: StatedRun, value: float) -> list[dict[str, object]]:
    """The probe's rows at the fraction, and misleading ones of other layers and fractions."""
    count = run.spec.model.layers
    chosen: Mapping[str, set[int]] = {
        "lower": set(range(count // 2)),
        "upper": set(range(count // 2, count)),
        "early": {0, 1},
        "final": {count - 2, count - 1},
    }
    rows = []
    for fraction in (measure.at, 0.5):
        shift = 0.0 if fraction == measure.at else 50.0
        base = {"key": run.spec.key, "fraction": fraction}
        if measure.layers == "all":
            rows.append(base | {"probe": measure.column, "layer": None, "value": value + 1 + shift})
            rows.append(base | {"probe": measure.less or "other", "layer": None, "value": 1 + shift})
            if measure.less is None:
                rows[-2]["value"] = value + shift
            continue
        assert measure.layers is not None
        for layer in range(count):
            level = 30.0
            if layer in chosen[measure.layers]:
                level = value + (2.0 if measure.less_layers else 0.0)
            elif measure.less_layers and layer in chosen[measure.less_layers]:
                level = 2.0
            rows += [
                base | {"probe": measure.column, "layer": layer, "head": head, "value": level + shift + way * 0.25}
                for head, way in ((0, 1), (1, -1))
            ]
    return rows
