"""What the runs of small models say of the statements in a study's `small.yaml`, derived a second time.

Written from the statements and from what `docs/small-models.md` means by each word, and not from the program that makes
the project's own table, so that an error would have to be made twice to stay unseen. Nothing of that program is
imported: numpy, pandas, scipy and PyYAML are all it needs.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy import stats

SETTINGS = ("data_seed", "model", "optimizer", "schedule", "train", "data", "interventions")
RATE = "optimizer.learning_rate"
WORLDS = 4_000  # that the bounds of a correlation are simulated with


class MissingRun(Exception):
    """A run, or what is read of it, is not there."""


@dataclass(frozen=True)
class Row:
    """What a statement's contrast says at a size; a number that is not shown, or that no run tells, is NaN."""

    statement: str
    size: str
    contrast: str
    verdict: str
    contrast_verdict: str
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan


@dataclass(frozen=True)
class Judged:
    """A contrast's gain, its bounds, and the chance of as large a gain, or of as small, if there were none."""

    gain: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_reversed: float = math.nan

    def verdict(self, level: float, target: float) -> str:
        """The first of the words that holds."""
        if self.p <= level:
            return "seen"
        if self.p_reversed <= level:
            return "reversed"
        return "not seen" if self.high < target else "not decided"


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """The leaves of settings by their dotted paths; of a list of components the names stand in the path."""
    if isinstance(tree, list) and tree and isinstance(tree[0], Mapping):
        tree = {one["name"]: one for one in tree}
    if not isinstance(tree, Mapping):
        return {path: tree}
    return {leaf: one for key, below in tree.items() for leaf, one in flat(below, f"{path}.{key}".strip(".")).items()}


def laid(settings: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under others; another component (another name), or other interventions, replace what was there whole."""
    above = flat({key: told[key] for key in SETTINGS if key in told})
    gone = [leaf[:-4] for leaf, one in above.items() if leaf.endswith(".name") and settings.get(leaf) != one]
    gone += ["interventions."] if "interventions" in told else []
    return {leaf: one for leaf, one in settings.items() if not leaf.startswith(tuple(gone))} | above


class Arms:
    """The settings that each arm of a study trains with at a size."""

    def __init__(self, study: Mapping[str, Any], small: Mapping[str, Any], size: str) -> None:
        stated = small["sizes"][size]
        self.preset: str = small["sizes_of"]
        self.methods: dict[str, Any] = {**study["methods"], **study.get("arms", {})}
        self.common = laid(laid(flat({}), study["recipe"]), study["scales"][stated["scale"]][self.preset])
        self.common = laid(self.common, stated)
        self.by_name = {name: self.settings(name) for name in self.names()}

    def names(self) -> Iterator[str]:
        """Every arm that the preset has."""
        for name, entry in self.methods.items():
            if self.preset in entry.get("presets", [self.preset]):
                grids = entry.get("sweep", {}).items()
                points = itertools.product(*([f"{option}_{one:g}" for one in grid["values"]] for option, grid in grids))
                yield from (f"{name}.{'-'.join(point)}".rstrip(".") for point in points)
                yield from (f"{name}.{variant}" for variant in entry.get("variants", {}))

    def settings(self, arm: str) -> dict[str, Any]:
        """All settings of an arm: `method`, `method.variant` or `method.option_value-option_value`."""
        name, _, rest = arm.partition(".")
        entry = self.methods[name]
        settings = self.settings(entry["variant_of"]) if "variant_of" in entry else self.common
        settings = laid(laid(settings, entry), entry.get(self.preset, {}))
        if rest in entry.get("variants", {}):
            return laid(settings, entry["variants"][rest])
        values = dict(part.rsplit("_", 1) for part in rest.split("-") if part)
        return settings | {entry["sweep"][option]["sets"]: float(value) for option, value in values.items()}

    def folders(self, arm: str, rate: float) -> Iterator[str]:
        """The names under which the run of an arm at a multiple of its rate may be kept, its own first."""
        yield arm if rate == 1 else f"{arm}-rate_{rate:g}"
        wanted = self.by_name[arm]
        for name, settings in self.by_name.items():
            same_rate = math.isclose(settings[RATE], wanted[RATE] * rate, rel_tol=1e-9)
            if name != arm and same_rate and settings | {RATE: 0} == wanted | {RATE: 0}:
                yield name


class Runs:
    """The runs of a study at a size, and what is measured of each."""

    def __init__(self, work: Path, study: str, size: str, arms: Arms) -> None:
        self.work, self.study, self.size, self.arms = work, study, size, arms

    def measured(self, arm: str, rate: float, seed: int, measure: Mapping[str, Any]) -> float:
        """The number of one run: infinite if it diverged, NaN if it was not read."""
        for folder in self.arms.folders(arm, rate):
            path = self.path("runs", folder, seed, "outcome.json")
            if path.exists():
                break
        else:
            raise MissingRun(f"{arm} at rate {rate:g}, seed {seed}")
        outcome, model = read_json(path), read_json(path.with_name("manifest.json"))["spec"]["model"]
        column, frame, equal_chances = measure["column"], measure["frame"], math.log(model["vocabulary"])
        if outcome["outcome"] != "completed":
            return equal_chances if column == "capped_loss" else math.inf
        if frame == "runs":
            loss = number(outcome["validation_loss"])
            return equal_chances if column == "capped_loss" and loss > equal_chances else loss
        if frame == "interventions":
            return number(next((one[column] for one in outcome["interventions"] if column in one), None))
        path = self.path(frame, folder, seed, f"{frame}.parquet")
        if not path.exists():
            raise MissingRun(f"the {frame} of {arm} at rate {rate:g}, seed {seed}")
        table = read_table(path)
        if frame == "scores":
            return float(table.loc[table["metric"] == column, "value"].mean(skipna=False))
        table = table[(table["fraction"] - measure["at"]).abs() < 0.5 / outcome["steps"]]
        value = of_layers(table, column, measure["layers"], model["layers"])
        if "less" in measure:
            value -= of_layers(table, measure["less"], measure["layers"], model["layers"])
        if "less_layers" in measure:
            value -= of_layers(table, column, measure["less_layers"], model["layers"])
        return value

    def path(self, kind: str, folder: str, seed: int, file: str) -> Path:
        """A run's file."""
        return self.work / kind / self.study / self.size / folder / f"s{seed}" / file


@cache
def read_yaml(path: Path) -> Any:
    """A file's content, by the fast reader where there is one."""
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def read_json(path: Path) -> Any:
    """A file's content, which several statements may ask for, as they may for the next one's."""
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def read_table(path: Path) -> pd.DataFrame:
    """A file's rows."""
    return pd.read_parquet(path)


def number(value: Any) -> float:
    """A finite number, or NaN."""
    return float(value) if value is not None and math.isfinite(value) else math.nan


def of_layers(table: pd.DataFrame, probe: str, group: str, layers: int) -> float:
    """The mean of a probe over heads and a group of layers: the first or last two, a half, or whatever there is."""
    table = table[table["probe"] == probe]
    if group != "all":
        half = layers // 2
        groups = {"early": (0, 2), "final": (layers - 2, layers), "lower": (0, half), "upper": (half, layers)}
        table = table[(table["layer"] >= groups[group][0]) & (table["layer"] < groups[group][1])]
    return float(table["value"].mean(skipna=False)) if len(table) else math.nan


def over_rates(losses: Mapping[float, float], measure: Mapping[str, Any], equal_chances: float) -> float:
    """What is asked of an arm's losses over the rates of a grid; an infinite loss is that of a run that diverged."""
    values = list(losses.values())
    best = min(values)
    if any(map(math.isnan, values)) or math.isinf(best):
        return math.nan
    if measure["over_rates"] == "sensitivity":
        return float(np.mean(values)) - best if best < equal_chances else math.nan
    if measure["over_rates"] == "lowest":
        return best
    return math.log10(max(rate for rate, loss in losses.items() if loss <= best + measure["trained_within"]))


class Statement:
    """One statement at one size, with the runs that it is judged by."""

    def __init__(self, small: Mapping[str, Any], stated: Mapping[str, Any], size: str, runs: Runs, chosen: Any) -> None:
        self.stated, self.size, self.runs, self.chosen = stated, size, runs, chosen
        self.measure, self.contrasts, self.test = stated["measure"], stated["contrasts"], stated["test"]
        self.arms = sorted({arm for weights in self.contrasts.values() for arm in weights})
        self.level: float = stated["level"] / (1 if self.test == "order" else len(self.contrasts))
        self.sigma = (
            small["noise"][stated["noise"][size]]["sigma"] if "noise" in stated else math.nan
        )  # of a run, by others
        self.minimum, self.target = float(stated["minimum_gain"]), float(stated["target_gain"])

    def rows(self) -> list[Row]:
        """The statement's verdict and its contrasts' numbers."""
        names = ["order"] if self.test == "order" else list(self.contrasts)
        tuning = self.stated.get("tuning", {})
        try:
            rates = {arm: self.chosen_rate(arm) if tuning else 1.0 for arm in self.arms}
            other_rate = [arm for arm in self.arms if tuning and self.best_rate(arm) != rates[arm]]
            values = {arm: self.values(arm, self.stated["seeds"], rates[arm]) for arm in self.arms}
            shared = {arm: self.values(arm, tuning.get("own_seeds", []), 1.0) for arm in self.arms}
        except MissingRun:
            return [Row(self.stated["id"], self.size, name, "not run", "not run") for name in names]
        lacking = {arm for arm in self.arms if np.isnan(values[arm]).any() or np.isnan(shared[arm]).any()}
        judged = {name: self.judged(name, values, shared) for name in names}
        words = {name: one.verdict(self.level, self.target) for name, one in judged.items()}
        needed = {name: self.arms if self.test in ("t", "order") else self.contrasts[name] for name in names}
        words |= {name: "not decided" for name in names if other_rate or lacking & set(needed[name])}
        silent = any(math.isnan(one.gain) for one in judged.values())
        verdict = "not decided" if other_rate or lacking or silent else of_several(list(words.values()))
        return [
            Row(self.stated["id"], self.size, name, verdict, words[name], one.gain, one.low, one.high, one.p)
            for name, one in judged.items()
        ]

    def chosen_rate(self, arm: str) -> float:
        """The rate, as a multiple of the arm's own, that was chosen for the statement's seeds."""
        rate = found(self.chosen, {self.stated["id"], self.size, arm})
        if rate is None:
            raise MissingRun(f"no rate of {arm} at {self.size} is chosen")
        return rate

    def best_rate(self, arm: str) -> float | None:
        """The rate that the tuning runs choose: lowest mean final loss of those at which every one of them trained."""
        loss = {"frame": "runs", "column": "validation_loss"}
        means = {
            float(rate): np.mean([self.runs.measured(arm, rate, seed, loss) for seed in self.stated["tuning"]["seeds"]])
            for rate in self.stated["rates"]
        }
        finite = {rate: float(mean) for rate, mean in means.items() if np.isfinite(mean)}
        return min(finite, key=lambda rate: finite[rate], default=None)

    def values(self, arm: str, seeds: Sequence[int], rate: float) -> np.ndarray:
        """An arm's number of each seed, NaN where its run diverged or was not read."""
        if "over_rates" in self.measure:
            grid, equal_chances = self.stated["rates"], math.log(self.runs.arms.by_name[arm]["model.vocabulary"])
            losses = [{one: self.runs.measured(arm, one, seed, self.measure) for one in grid} for seed in seeds]
            return np.array([over_rates(one, self.measure, equal_chances) for one in losses])
        return np.array([number(self.runs.measured(arm, rate, seed, self.measure)) for seed in seeds])

    def judged(self, contrast: str, values: Mapping[str, np.ndarray], shared: Mapping[str, np.ndarray]) -> Judged:
        """A contrast by the statement's test."""
        if self.test == "order":
            return self.order(values, shared)
        weights = self.contrasts[contrast]
        if self.test == "t":  # with one spread for all arms of the statement
            read = {arm: one[~np.isnan(one)] for arm, one in values.items()}
            sigma, df = pooled(list(read.values()))
            gain = sum(weight * mean(read[arm]) for arm, weight in weights.items())
            share = sum(weight**2 / max(len(read[arm]), 1) for arm, weight in weights.items())
            return self.student(gain, sigma * math.sqrt(share), df)
        gains = np.sum([weight * values[arm] for arm, weight in weights.items()], axis=0)
        read = ~np.isnan(gains)
        if self.measure["column"] == "capped_loss" and not np.any(gains[read]):
            return Judged(math.nan)  # no arm trains in any seed
        if self.test == "paired_t":
            sigma, df = pooled([gains[read]])
            return self.student(mean(gains[read]), sigma / math.sqrt(max(df + 1, 1)), df)
        unknown = 0  # seeds of which nobody knows, since all arms still train at the largest rate that was tried
        if self.measure.get("over_rates") == "largest_trained":
            largest = math.log10(max(self.stated["rates"]))
            unknown = int(np.sum(np.all([values[arm] == largest for arm in weights], axis=0)))
        return self.sign(gains[read], unknown)

    def student(self, gain: float, error: float, df: int) -> Judged:
        """Student's t of a gain above the minimum, with bounds at the level."""
        if math.isnan(error) or math.isnan(gain):
            return Judged(gain)
        above = gain - self.minimum
        t = above / error if error else math.inf * above if above else 0.0
        half = error * float(stats.t.isf(self.level, df))
        return Judged(gain, gain - half, gain + half, float(stats.t.sf(t, df)), float(stats.t.cdf(t, df)))

    def sign(self, gains: np.ndarray, unknown: int) -> Judged:
        """The sign test; a seed whose gain is the minimum itself has none, for the test and for its opposite.

        `unknown` of these may have one all the same: the upper bound of the chance of a gain counts them as gains.
        """
        n, above, below = len(gains), int(np.sum(gains > self.minimum)), int(np.sum(gains < self.minimum))
        most = above + unknown
        low = float(stats.beta.ppf(self.level, above, n - above + 1)) if above else 0.0
        high = float(stats.beta.isf(self.level, most + 1, n - most)) if most < n else 1.0
        p, p_reversed = (float(stats.binom.sf(count - 1, n, 0.5)) for count in (above, below))
        return Judged(above / n if n else math.nan, low, high, p, p_reversed)

    def order(self, values: Mapping[str, np.ndarray], shared: Mapping[str, np.ndarray]) -> Judged:
        """Whether contrasts have one order at the shared rate and at the tuned ones."""
        means = [{arm: mean(one[~np.isnan(one)]) for arm, one in of.items()} for of in (shared, values)]
        weights = self.contrasts.values()
        first, second = (np.array([sum(w * of[arm] for arm, w in one.items()) for one in weights]) for of in means)
        if np.isnan(first).any() or np.isnan(second).any():
            return Judged(math.nan)
        larger = stats.kendalltau(first, second, alternative="greater", method="exact")
        smaller = stats.kendalltau(first, second, alternative="less", method="exact")
        errors = [
            self.sigma / math.sqrt(len(seeds)) for seeds in (self.stated["tuning"]["own_seeds"], self.stated["seeds"])
        ]
        tau = float(larger.statistic)
        low, high = correlation_bounds(tau, len(first), self.stated["spread"], errors, self.level)
        return Judged(tau, low, high, float(larger.pvalue), float(smaller.pvalue))


def found(tree: Any, path: set[str]) -> float | None:
    """The number that a tree holds under some of the names of a path, in whatever order it nests them."""
    if isinstance(tree, (int, float)):
        return float(tree)
    keys = [key for key in ("rates", "chosen", *sorted(path)) if isinstance(tree, Mapping) and key in tree]
    return next((rate for key in keys if (rate := found(tree[key], path - {key})) is not None), None)


def mean(values: np.ndarray) -> float:
    """The mean, NaN of no values."""
    return float(values.mean()) if len(values) else math.nan


def pooled(groups: Sequence[np.ndarray]) -> tuple[float, int]:
    """The standard deviation of values about their group's mean, pooled over groups, and its degrees of freedom."""
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in groups if len(one))
    df = sum(max(len(one) - 1, 0) for one in groups)
    return (math.sqrt(squares / df) if df else math.nan), df


def of_several(words: Sequence[str]) -> str:
    """A statement's verdict by those of its contrasts."""
    return next((word for word in ("reversed", "not seen", "not decided") if word in words), "seen")


def correlation_bounds(tau: float, n: int, spread: float, errors: Sequence[float], level: float) -> tuple[float, float]:
    """The correlations of true gains below, and above, which a tau as large, or as small, is rarer than the level."""
    true, other, *noise = np.random.default_rng(0).normal(size=(4, WORLDS, n))
    i, j = np.triu_indices(n, 1)
    first = spread * true + errors[0] * noise[0]
    grid = np.linspace(-1, 1, 41)
    as_large, as_small = [], []
    for correlation in grid:
        second = spread * (correlation * true + math.sqrt(1 - correlation**2) * other) + errors[1] * noise[1]
        taus = np.sign((first[:, i] - first[:, j]) * (second[:, i] - second[:, j])).mean(axis=1)
        as_large.append(float(np.mean(taus >= tau - 1e-9)))
        as_small.append(float(np.mean(taus <= tau + 1e-9)))
    return float(np.interp(level, as_large, grid)), float(np.interp(level, as_small[::-1], grid[::-1]))


def judge(small_yaml: Path, work: Path, rates_yaml: Path | None = None) -> list[Row]:
    """Every statement at every size, by the runs below a work folder; chosen rates lie beside the statements."""
    small, study = read_yaml(small_yaml), read_yaml(small_yaml.with_name("study.yaml"))
    rates_yaml = rates_yaml or small_yaml.with_name("small_rates.yaml")
    chosen = read_yaml(rates_yaml) if rates_yaml.exists() else None
    runs = {size: Runs(work, small["study"], size, Arms(study, small, size)) for size in small["sizes"]}
    statements = [
        Statement(small, one, size, runs[size], chosen) for one in small["statements"] for size in one["sizes"]
    ]
    return [row for statement in statements for row in statement.rows()]


if __name__ == "__main__":
    print(pd.DataFrame(judge(Path(sys.argv[1]), Path(sys.argv[2]))).to_string(index=False))
