"""What fits a time, for a terminal: what was compared, what is proposed and why, and the words to paste."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from plumbline.cli import PlumblineError
from plumbline.plan.fit import SHARE, TOKENS_A_PARAMETER, USUAL_SEEDS, Fit, Option, roughly
from plumbline.plan.page import WIDTH
from plumbline.plan.targets import speed_in_words, trial_row
from plumbline.specs.config import load_config
from plumbline.verdict.terms import POWER
from plumbline.verdict.words import percent


def terminal(fit: Fit, words: Sequence[str]) -> str:
    """The whole page; `words` are the KEY=VALUE words that the configuration was changed with."""
    one = fit.chosen()
    plan, asked = fit.estimator.plan, fit.asked
    study = fit.study
    row = trial_row(fit.estimator, fit.trial(one.scale, one.steps, one.seeds))
    hours = row["wall_hours"]
    assert isinstance(hours, float)
    if 3600 * hours > asked.seconds:
        raise PlumblineError(
            f"--fit: what was found takes {roughly(3600 * hours)} by the plan, more than the {roughly(asked.seconds)} "
            "that are given; please report this, and ask for less with --seeds and --scale"
        )
    stated = not fit.estimator.calibration.speed
    head = (
        f"{roughly(asked.seconds)} on {fit.estimator.machine.label}, {fit.estimator.machine.devices_at_once} at once, "
        f"for {study.label(asked.method)} against {study.label(asked.against)}: study {study.name}, preset "
        f"{plan.name}. Speed {speed_in_words(fit.estimator)}."
    )
    if stated:
        head += " Nothing was trained here yet: run make quick once (three minutes), and ask again."
    proposal = (
        f"Proposed: scale {one.scale} ({study.scale_label(one.scale)} parameters), {one.seeds} seeds of each, "
        f"{one.tokens / 1e6:.2f} M tokens a run ({one.per_parameter:.2g} a parameter), {roughly(hours * 3600)} in all. "
        f"{_why(fit, one)}"
    )
    parts = [head, _rule(fit), _grid(fit.options()), proposal, _resolves(one)]
    filled = [part if part.startswith("scale ") else textwrap.fill(part, WIDTH) for part in parts]
    return "\n\n".join([*filled, "Paste:", f"    {command(fit, one, words)}"])


def command(fit: Fit, one: Option, words: Sequence[str]) -> str:
    """The command that makes the page of this trial; every number of it is in `--config`."""
    config, own = fit.estimator.plan.config, load_config()
    said = [f"preset={config['preset']}"]
    said += [f"machine={config['machine']}"] if config["machine"] != own["machine"] else []
    known = ("preset", "machine", "studies", "trial")
    said += [word for word in words if word.partition("=")[0] not in known]
    said += [f"studies=[{fit.study.name}]", f"trial={flow(one.given)}"]
    return f"snakemake results/trial.md --config {shlex.join(said)}"


def flow(given: Mapping[str, Any]) -> str:
    """A mapping of plain values and lists as YAML writes it in one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in given.items()) + "}"


def _rule(fit: Fit) -> str:
    return (
        f"Below, what fits {percent(SHARE)} of it (the rest is for what a plan does not know). Gain: the smallest in "
        f"validation loss (nats a token) that is found with {percent(POWER)} chance, by the noise of which the last "
        "lines say where it is from; with more tokens than it was measured at it may well be less."
    )


def _why(fit: Fit, one: Option) -> str:
    asked = fit.asked
    if asked.seeds is not None:
        seeds = f"{one.seeds} seeds as asked"
    elif asked.gain:
        seeds = f"the fewest seeds that resolve {asked.gain:g}"
    else:
        seeds = f"{USUAL_SEEDS} seeds unless --seeds or --gain says otherwise"
    if asked.scale is not None:
        return f"(The scale and {seeds}.)" if asked.seeds else f"(The scale as asked, {seeds}.)"
    return (
        f"({seeds[0].upper()}{seeds[1:]}; the largest scale whose runs read {TOKENS_A_PARAMETER:g} token a parameter, "
        "or the smallest where none does.)"
    )


def _resolves(one: Option) -> str:
    if one.noise is None:
        return "Which gain that resolves is not known: no two seeds of the baseline are finished here."
    again = "" if one.passes <= 1 else f" A run goes {one.passes:.1f} times over the pack {one.given['pack']}."
    return (
        f"It resolves a gain of {one.resolved:.2g} nats of validation loss. The noise of a run is taken as "
        f"{one.noise.words}.{again}"
    )


def _grid(options: Sequence[Option]) -> str:
    heads = ["scale", "seeds", "steps", "M tokens", "a parameter", "pack", "passes", "gain"]
    rows = [
        [
            one.scale,
            one.seeds,
            f"{one.steps:,}",
            f"{one.tokens / 1e6:.2f}",
            f"{one.per_parameter:.2f}",
            one.given["pack"],
            "not known" if math.isnan(one.passes) else f"{one.passes:.1f}",
            "not known" if math.isnan(one.resolved) else f"{one.resolved:.3f}",
        ]
        for one in options
    ]
    align = ["left", *["right"] * 4, "left", "right", "right"]
    return tabulate(rows, heads, "simple", disable_numparse=True, colalign=align)
