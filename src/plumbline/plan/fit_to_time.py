"""Finds scale and steps at which an experiment fits a time, from the machine's own speed, and estimates how long one
takes.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_duration, format_number, parse_duration
from plumbline.plan import data_stage, machines, model_counts
from plumbline.plan.run_estimate import RunEstimator, estimator
from plumbline.project import Project
from plumbline.specs.experiment_runs import budget, load, own_scale
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run, Study

#: The share of the time that is planned for; the rest is for what a plan does not know.
SHARE = 0.9
#: Of scales whose runs read at least so many tokens a parameter the largest is taken.
TOKENS_A_PARAMETER = 1.0
#: Fewest steps of a training.
FEWEST_STEPS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedBudget:
    """A scale and a budget at which all runs of an experiment fit a time.

    Attributes:
        options: the keys of `config.experiment` that ask for it: the scale, and the budget.
        seconds: what all runs take, with the data that they need.
        per_parameter: tokens of a run for each parameter of the baseline.
    """

    options: dict[str, Any]
    seconds: float
    per_parameter: float
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Price:
    """Seconds of the longest run: `fixed`, and for each `step`; how many `runs`, one of each method, run `beside`
    each other; and the baseline's parameters."""

    fixed: float
    step: float
    beside: int
    runs: tuple[Run, ...]
    parameters: int


def fit_budget(
    project: Project, study: Study, method: str, against: str, time: str, *, runs: int, scale: str | None = None
) -> FittedBudget:
    """Find the steps of so many runs that fit a time: at one scale, or at the largest with a token a parameter.

    Speed is that of finished runs, of earlier experiments too, and stated where there are none.

    Raises:
        PlumblineError: the time is none, or too short.
    """
    try:
        seconds = parse_duration(time)
    except PlumblineError as error:
        raise PlumblineError(f"--time-budget {error}") from None
    known_runs = [*project.every_run.values(), *_find_earlier(project, study.code)]
    counts = model_counts.update(Path(project.paths.counts), known_runs)
    machine = machines.load(project.config["machine"])
    prices = estimator(project, machine, sizes=model_counts.ModelCostLookup(counts), calibrate_on=known_runs)
    known_scales = [name for name, presets in study.definition["scales"].items() if study.preset in presets]
    scales = [name for name in known_scales if scale in (None, name)]
    budgets = [
        budget
        for name in scales
        if (budget := _fit_scale(prices, study, method, against, name, seconds, runs)) is not None
    ]
    if not budgets:
        raise PlumblineError(
            f"--time-budget: {format_duration(seconds)} is too short for {runs} runs: give more time, smaller "
            "--baseline-runs and --max-runs, a smaller scale (--scale) or preset (--preset)"
        )
    budgets.sort(key=lambda budget: -budget.per_parameter)
    return next((budget for budget in reversed(budgets) if budget.per_parameter >= TOKENS_A_PARAMETER), budgets[0])


def _fit_scale(
    prices: RunEstimator, study: Study, method: str, against: str, scale: str, seconds: float, runs: int
) -> FittedBudget | None:
    """What fits at a scale; None if fewer than FEWEST_STEPS do."""
    price = _price(prices, study, method, against, scale)
    rounds = math.ceil(runs / price.beside)

    def fitting(room: float) -> int:
        """A run is not spread over what others leave idle, so that each round lasts as long as its longest run."""
        return math.floor((room / rounds - price.fixed) / price.step)

    steps, stage = fitting(SHARE * seconds), 0.0
    if steps >= FEWEST_STEPS and (stage := _data(prices, price, _budget(prices.project, study, scale, steps)["pack"])):
        steps = fitting(SHARE * seconds - stage)
    if steps < FEWEST_STEPS:
        return None
    train = price.runs[0].spec.train
    all_runs, tokens = stage + rounds * (price.fixed + steps * price.step), steps * train.batch_tokens
    message = (
        f"{format_duration(seconds)} on {prices.machine.label}: scale {scale}, {steps:,} steps, {tokens / 1e6:,.2f} M "
        f"tokens a run ({format_number(tokens / price.parameters)} a parameter); all {runs} runs take "
        f"{format_duration(all_runs)}, {_describe_speed(prices)}."
    )
    options = {"scale": scale} | _budget(prices.project, study, scale, steps)
    return FittedBudget(options=options, seconds=all_runs, per_parameter=tokens / price.parameters, message=message)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedTime:
    """How long runs take that are still to be trained, with the data that they need; `runs`: how many these are."""

    runs: int
    seconds: float
    message: str


def estimate_time(project: Project, study: Study, runs: Sequence[Run]) -> ExpectedTime:
    """Estimate how many of these runs are to be trained and how long they take, with the data that they need.

    Speed is as in `fit_budget`; operations are counted where a plan has counted them, else estimated, so that torch is
    not needed.
    """
    prices = estimator(project, calibrate_on=[*project.every_run.values(), *_find_earlier(project, study.code)])
    to_do = [run for run in runs if not prices.is_trained(run)]
    if not to_do:
        return ExpectedTime(runs=0, seconds=0.0, message="Nothing is to be trained: all runs are there.")
    at_once, seconds = prices.machine.runs_at_once(to_do), [prices.pretrain_seconds(run) for run in to_do]
    training = sum(max(seconds[first : first + at_once]) for first in range(0, len(to_do), at_once))
    stage = data_stage.seconds(project, to_do)
    data = "; the data before them take a time that is not known" if stage is None else ""
    about, verb = "" if prices.is_exact(to_do) else "about ", "s are" if len(to_do) > 1 else " is"
    progress, total_seconds = f"{len(runs) - len(to_do)} of {len(runs)} are there", training + (stage or 0.0)
    message = (
        f"At most {len(to_do)} run{verb} to be trained ({progress}): {about}{format_duration(total_seconds)} "
        f"on {prices.machine.label}, {_describe_speed(prices)}{data}."
    )
    return ExpectedTime(runs=len(to_do), seconds=total_seconds, message=message)


def _describe_speed(prices: RunEstimator) -> str:
    basis = "measured on finished runs" if prices.calibration.speed else "stated, for nothing was trained here yet"
    return f"speed {basis}"


def _budget(project: Project, study: Study, scale: str, steps: int) -> dict[str, Any]:
    return budget(study, scale, steps, project.corpora[study.corpus], project.runs.values())


def _price(prices: RunEstimator, study: Study, method: str, against: str, scale: str) -> _Price:
    """A run's seconds grow with its steps along a line, by the plan's model: two points of it are enough."""
    project = prices.project

    def load_runs(steps: int) -> tuple[Run, ...]:
        experiment = {"scale": scale, "method": method, "against": against, "baseline_seeds": [0], "seeds": [0]}
        experiment |= _budget(project, study, scale, steps)
        return tuple(load(experiment, study, project.root, project.config["data"]["source"]).runs.values())

    low, high = load_runs(10 * FEWEST_STEPS), load_runs(20 * FEWEST_STEPS)
    first, second = ([prices.pretrain_seconds(run) for run in runs] for runs in (low, high))
    slopes = [(more - less) / (10 * FEWEST_STEPS) for less, more in zip(first, second, strict=True)]
    return _Price(
        fixed=max(less - 10 * FEWEST_STEPS * slope for less, slope in zip(first, slopes, strict=True)),
        step=max(slopes),  # of two methods the slower one is the longer run: their starts are alike
        beside=prices.machine.runs_at_once(low),
        runs=low,
        parameters=prices.size(low[0]).parameters,
    )


def _data(prices: RunEstimator, price: _Price, pack: str) -> float:
    """Seconds of the data stage for a pack, which may be none that is there."""
    replace = msgspec.structs.replace
    runs = [
        dataclasses.replace(run, spec=replace(run.spec, data=replace(run.spec.data, pack=pack))) for run in price.runs
    ]
    return data_stage.seconds(prices.project, runs) or 0.0


def _find_earlier(project: Project, study: str) -> list[Run]:
    """Find the finished runs of a study's experiments in the work folder, whatever the configuration is now."""
    runs = []
    for path in sorted((Path(project.paths.work) / "runs" / study).glob("*_steps_*/*/s*/manifest.json")):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            run_files.require_manifest(path, manifest)
            spec = RunSpec.from_dict(manifest["spec"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of another version, or damaged: it counts for nothing here
        run = Run(spec=spec, groups=("experiment",))
        if run.key == "/".join(path.parts[-5:-1]) and own_scale(spec.scale) != spec.scale:
            runs.append(run)
    return runs
