"""Writes the page of a trial: its size, every run's loss, the difference, and what these seeds could have found."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from plumbline.experiment.comparison_terms import POWER, ComparisonTerms
from plumbline.experiment.formatting import fixed, p, percent
from plumbline.experiment.judge import BaselineComparison, judge
from plumbline.experiment.power import seeds_each
from plumbline.experiment.recipe_diff import differences
from plumbline.results.runs.finished_runs import COMPLETED, RunFrames
from plumbline.specs.trial import Trial

#: Columns of a terminal.
WIDTH = 100
#: The metric's column in the csv.
LOSS = "validation_loss"


def rows(trial: Trial, frames: RunFrames) -> pd.DataFrame:
    """Make a row of each run with its loss in nats a token (NaN of one without), as `plumbline verdict` reads them."""
    named = {"study": trial.study.name, "preset": trial.study.preset}
    found = []
    for key, run in trial.runs.items():
        spec, run_ = run.spec, frames.runs.loc[key]
        train = {"steps": spec.train.steps, "tokens": spec.train.steps * spec.train.batch_tokens}
        found.append(
            named
            | {"scale": spec.scale, "method": spec.method, "seed": spec.init_seed, LOSS: run_["validation_loss"]}
            | {"outcome": run_["outcome"], "parameters": run_["parameters"], **train, "run_id": spec.run_id}
        )
    return pd.DataFrame(found)


def markdown(trial: Trial, frames: RunFrames, csv: Path) -> str:
    """Write the page as Markdown, no line wider than `WIDTH` but for commands and the table."""
    losses = {name: _losses(trial, frames, name) for name in (trial.against, trial.method)}
    title = f"# A first look, not a verdict: {_label(trial, trial.method)} against {_label(trial, trial.against)}"
    said = [_size(trial, frames), _grid(trial, losses), *_found(trial, losses), _limits(trial)]
    said += [f"Note: {note}" for note in frames.notes]
    parts = [part if part.startswith("|") else textwrap.fill(part, WIDTH, break_long_words=False) for part in said]
    return "\n\n".join([title, *parts, _commands(trial, csv)]) + "\n"


def judged(trial: Trial, losses: dict[str, dict[str, float]]) -> BaselineComparison:
    """Judge the method's seeds against the baseline's by the pooled test that a verdict of a single try would rest
    on.

    Raises:
        PlumblineError: the seeds have no spread.
    """
    return judge(trial.method, losses[trial.method], losses[trial.against], ComparisonTerms(higher=False))


def _losses(trial: Trial, frames: RunFrames, method: str) -> dict[str, float]:
    """Seed -> loss of the runs that have one."""
    of: dict[str, Any] = {str(run.spec.init_seed): frames.runs.loc[run.key] for run in trial.of_method(method)}
    return {
        seed: float(run["validation_loss"])
        for seed, run in of.items()
        if run["outcome"] == COMPLETED and math.isfinite(run["validation_loss"])
    }


def _label(trial: Trial, method: str) -> str:
    return trial.study.label(method)


def _size(trial: Trial, frames: RunFrames) -> str:
    spec = trial.any_run.spec
    ours, theirs = (trial.of_method(one)[0].spec for one in (trial.method, trial.against))
    differs = differences(ours, theirs)
    other = f" {_label(trial, trial.method)} is not trained by that recipe: {', '.join(differs)}." if differs else ""
    tokens, parameters = spec.train.steps * spec.train.batch_tokens, frames.runs["parameters"].iloc[0]
    counted = "" if pd.isna(parameters) else f" ({tokens / int(parameters):.2g} a parameter)"
    return (
        f"Preset {spec.preset}, study {trial.study.name}, scale {trial.of} ({trial.study.scale_label(trial.of)} "
        f"parameters): {spec.train.steps:,} steps of {spec.train.batch_tokens:,} tokens, {tokens:,} tokens a "
        f"run{counted}, learning rate {spec.optimizer.learning_rate:g}, warm-up {spec.schedule.warmup_steps} steps; "
        f"pack {spec.data.pack} of {spec.data.corpus} ({spec.data.source}), {len(trial.seeds)} seeds of each. Results "
        f"at such a small size say nothing about a larger one.{other}"
    )


def _grid(trial: Trial, losses: dict[str, dict[str, float]]) -> str:
    table = []
    for method, known in losses.items():
        cells = [f"{known[str(seed)]:.4f}" if str(seed) in known else "no loss" for seed in trial.seeds]
        mean = f"{sum(known.values()) / len(known):.4f}" if len(known) == len(trial.seeds) else "none"
        table.append([_label(trial, method), *cells, mean])
    heads = ["Validation loss (nats a token, lower is better)", *(f"seed {seed}" for seed in trial.seeds), "mean"]
    align = ["left", *["right"] * (len(heads) - 1)]
    return tabulate(table, heads, "pipe", disable_numparse=True, colalign=align)


def _found(trial: Trial, losses: dict[str, dict[str, float]]) -> list[str]:
    """The difference, and what these seeds find; where a run has no loss, that there is none to compare."""
    without = {_label(trial, name): len(trial.seeds) - len(known) for name, known in losses.items()}
    if any(without.values()):
        counts = ", ".join(f"{number} of {label}" for label, number in without.items() if number)
        return [
            f"Without a loss (diverged): {counts}. A diverged run has no loss to compare, and leaving it out would "
            "favour its method: no difference is given."
        ]
    found = judged(trial, losses)
    here, there = _label(trial, trial.method), _label(trial, trial.against)
    two_sided = 2 * min(found.p, 1 - found.p)
    unclear = two_sided > 2 * found.terms.alpha
    told = "are not distinguishable" if unclear else f"differ: {here} is {'better' if found.gain > 0 else 'worse'}"
    difference = (
        f"{here} minus {there}: {_signed(-found.gain, found.sigma)} nats, 95 % interval "
        f"{_signed(-found.high, found.sigma)} to {_signed(-found.low, found.sigma)} (t, noise pooled over all "
        f"{found.n + found.n_baseline} runs, p = {p(two_sided)}). With these seeds the two {told}."
    )
    again = seeds_each(abs(found.gain), found.sigma, found.design, POWER)
    size = f" A true difference of the size that was seen takes {again:,} seeds of each." if again and unclear else ""
    power = (
        f"One run's noise is {fixed(found.sigma, found.sigma)} nats (standard deviation over seeds), so that "
        f"{found.n} seeds of each find a gain of {fixed(found.resolved, found.sigma)} with {percent(POWER)} chance, "
        f"and smaller ones less often.{size}"
    )
    return [difference, power]


def _signed(value: float, sigma: float) -> str:
    text = fixed(abs(value), sigma)
    return f"-{text}" if value < 0 else f"+{text}"


def _limits(trial: Trial) -> str:
    return (
        "What a first look leaves out: other sizes and budgets, tasks, and how many methods were looked at before this "
        "one. A verdict on these numbers accounts for the last; more time gives more tokens and seeds:"
    )


def _commands(trial: Trial, csv: Path) -> str:
    verdict = f"python -m plumbline.experiment {csv} --baseline {trial.against} --metric {LOSS} --lower-is-better"
    more = f"python -m plumbline.plan --fit 2h --study {trial.study.name} --method {trial.method}"
    return f"    {verdict}\n    {more} --baseline {trial.against}"
