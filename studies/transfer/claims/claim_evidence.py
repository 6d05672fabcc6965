"""Reads from the transfer study's runs what its claims are about; every value notes the runs that gave it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from functools import cached_property

import pandas as pd

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_checkers import nearest_limit
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import Table, require_reference
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import NoiseFloor, compute_verdicts, noise_floor, two_sided_normal

from ..attention_concentration import ConcentrationPoint, find_last_point
from ..divergence_pattern import PAPER_STEPS, Divergence, read_divergence
from ..headline_runs import BASE, LARGE
from ..tables.noise_floor import noise_floor as noise_floor_table
from ..two_scales import two_scales

#: Beyond this |z| a difference counts as one (section 3.3).
SIGNIFICANT_Z = 2.0
#: Corrected p-values count up to here (section 4.1).
LEVEL = 0.05


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run is missing or diverged: the claim then has no value here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.reference: str = require_reference(study, "every claim")
        self.methods: list[str] = list(study.methods)
        ordered = frames.runs.sort_values("seed", kind="stable")
        self._runs = dict(iter(ordered.groupby(["method", "scale"])))
        self._none = frames.runs.iloc[:0]
        self._by_seed = {place: [str(key) for key in runs.index] for place, runs in self._runs.items()}
        self._facts = frames.runs[["outcome", "average", "validation_loss"]].to_dict("index")
        self._keys = {(row.scale, row.method, row.seed): str(row.Index) for row in frames.runs.itertuples()}
        self._tasks: dict[str, pd.Series] = {}
        self._probed: dict[str, ConcentrationPoint | None] = {}

    def runs(self, method: str, scale: str = BASE) -> pd.DataFrame:
        """A method's runs at a scale, by seed; no rows where none is expected."""
        return self._runs.get((method, scale), self._none)

    def list_runs_behind(self, method: str, scale: str = BASE) -> list[str]:
        """The runs behind a table's value: at the base scale all of the baseline's seeds, else the first seed."""
        keys = self._by_seed.get((method, scale))
        if not keys:
            raise MissingRun(MISSING, f"{scale}/{method}")
        return keys if method == self.reference and scale == BASE else keys[:1]

    def value(self, key: str, column: str) -> float:
        """A number of a run: its average or its validation loss."""
        self.used.add(key)
        row = self._facts[key]
        if math.isnan(row[column]):
            raise MissingRun(DIVERGED if row["outcome"] == DIVERGED else MISSING, key)
        return float(row[column])

    def seeds(self, method: str) -> list[float]:
        """CLIMB-avg of all seeds at the base scale."""
        return [self.value(key, "average") for key in self._by_seed.get((method, BASE), [])]

    @cached_property
    def _floor(self) -> NoiseFloor:
        return noise_floor(self.runs(self.reference)["average"])

    @property
    def floor(self) -> NoiseFloor:
        """The baseline's noise floor; all of its seeds must be there."""
        self.seeds(self.reference)
        return self._floor

    def climb(self, method: str, scale: str = BASE) -> float:
        """Table 2's or Table 3's value: the baseline's mean at the base scale, else the first seed."""
        values = [self.value(key, "average") for key in self.list_runs_behind(method, scale)]
        return sum(values) / len(values)

    def delta(self, method: str, scale: str = BASE) -> float:
        """Distance from the baseline at the same scale."""
        return self.climb(method, scale) - self.climb(self.reference, scale)

    def z(self, method: str) -> float:
        """Distance from the baseline's mean in units of its noise floor."""
        floor = self.floor
        if not floor.usable:
            raise MissingRun("without a spread", f"{BASE}/{self.reference}")
        return float(floor.z(self.climb(method)))

    @cached_property
    def two_scales(self) -> pd.DataFrame:
        """The methods at both scales; does not record the runs that it reads."""
        return two_scales(self.frames, self.study, self.reference)

    @cached_property
    def noise_floor(self) -> Table:
        """The table of the references; does not record the runs that it reads."""
        return noise_floor_table(self.frames, self.study, self.published)

    @cached_property
    def _verdicts(self) -> pd.DataFrame:
        values = pd.Series({m: self.climb(m) for m in self.methods}, dtype=float)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="no noise floor")
            return compute_verdicts(values, self.floor, m=self.study.m, baseline=self.reference)

    @property
    def verdicts(self) -> pd.DataFrame:
        """Delta, z and p of all methods; every one of them must have a value."""
        for method in self.methods:
            self.z(method)
        return self._verdicts

    def survivors(self, correction: str) -> pd.Series:
        """Method -> delta, where the corrected p is at most 0.05."""
        table = self.verdicts
        return table.loc[table[f"p_{correction}"] <= LEVEL, "delta"]

    def nearest_to_the_noise(self, methods: Iterable[str]) -> dict[str, tuple[float, float]]:
        """Find whose |z| is nearest to where a difference counts, for the limits next to a verdict."""
        return nearest_limit({f"|z| of {m}": abs(self.z(m)) for m in methods if m != self.reference}, SIGNIFICANT_Z)

    def nearest_to_the_level(self, correction: str) -> dict[str, tuple[float, float]]:
        """Find whose corrected p is nearest to where it counts, by its logarithm."""
        p = self.verdicts[f"p_{correction}"].dropna()
        method = (p.clip(lower=1e-300).map(math.log) - math.log(LEVEL)).abs().idxmin()
        return {f"p of {method}": (float(p[method]), LEVEL)}

    def p_bonferroni(self, method: str) -> float:
        """Bonferroni over the methods that the study counts."""
        return min(1.0, self.study.m * float(two_sided_normal(self.z(method))))

    def loss(self, method: str, scale: str = BASE) -> float:
        """Final validation loss, as `climb`."""
        values = [self.value(key, "validation_loss") for key in self.list_runs_behind(method, scale)]
        return sum(values) / len(values)

    def tasks(self, method: str) -> pd.Series:
        """Accuracy per task at the base scale: the baseline's mean over seeds, else the first seed."""
        self.climb(method)
        if method not in self._tasks:
            seeds = [self.frames.task_scores(key) for key in self.list_runs_behind(method)]
            self._tasks[method] = pd.concat(seeds, axis=1).mean(axis=1)
        return self._tasks[method]

    def task_deltas(self, method: str) -> pd.Series:
        """Distance from the baseline on each task."""
        return self.tasks(method) - self.tasks(self.reference)

    def key(self, method: str, scale: str, seed: int = 42) -> str:
        """A run's key; it is used from here on."""
        key = self._keys.get((scale, method, seed))
        if key is None or self._facts[key]["outcome"] == MISSING:
            raise MissingRun(MISSING, key or f"{scale}/{method}/s{seed}")
        self.used.add(key)
        return key

    def divergence(self, method: str, seed: int = 42, scale: str = LARGE) -> tuple[float, Divergence] | None:
        """The step of a divergence on the paper's length of training, and its history; None if it completed."""
        key = self.key(method, scale, seed)
        run = self.frames.runs.loc[key]
        if run["outcome"] != DIVERGED:
            return None
        return self.on_paper(run["step"], key), read_divergence(self.frames, key)

    def read_concentration(self, key: str) -> ConcentrationPoint | None:
        """What the probe of attention weights says of the end of a run; does not record the runs that it reads."""
        if key not in self._probed:
            self._probed[key] = find_last_point(self.frames, key)
        return self._probed[key]

    def on_paper(self, step: float, key: str) -> float:
        """A step as the same share of the paper's training."""
        return float(step) / self.study.runs[key].spec.train.steps * PAPER_STEPS

    def large_methods(self) -> list[str]:
        """Methods tried at the large scale."""
        tried = set(self.frames.select(LARGE, self.methods)["method"])
        return [method for method in self.methods if method in tried]

    def averages_at_large_scale(self) -> dict[str, float]:
        """The average of every method that completed the large scale."""
        values = {}
        for method in self.large_methods():
            try:
                values[method] = self.climb(method, LARGE)
            except MissingRun as absent:
                if absent.word != DIVERGED:
                    raise
        return values

    def large_outcome(self, method: str) -> str:
        """How the first seed at the large scale ended."""
        key = self.key(method, LARGE, int(self.runs(method, LARGE)["seed"].iloc[0]))
        return str(self.frames.runs.loc[key, "outcome"])
