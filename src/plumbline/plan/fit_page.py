"""Shows what fits a time on a terminal: what was compared, what is proposed and why, and the words to paste."""

from __future__ import annotations

import json
import math
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from plumbline.core.errors import PlumblineError
from plumbline.experiment.comparison_terms import POWER
from plumbline.experiment.formatting import percent
from plumbline.experiment.recipe_diff import differences
from plumbline.plan import seed_noise
from plumbline.plan.fit import SHARE, TOKENS_A_PARAMETER, USUAL_SEEDS, BudgetFit, FitOption, number, roughly
from plumbline.plan.page import WIDTH
from plumbline.plan.targets import speed_in_words, trial_row
from plumbline.specs.config import load_config


def terminal(fit: BudgetFit, profiles: Sequence[str] = ()) -> str:
    """Write the whole page; `profiles`: the Snakemake profiles that were given, for the pasted command to repeat."""
    one = fit.chosen()
    plan, asked = fit.estimator.project, fit.asked
    study = fit.study
    row = trial_row(fit.estimator, fit.trial(one.scale, one.steps, one.seeds))
    hours = row["wall_hours"]
    assert isinstance(hours, float)
    if 3600 * hours > asked.seconds:
        raise PlumblineError(
            f"--fit: the result takes {roughly(3600 * hours)} by the plan, more than the {roughly(asked.seconds)} "
            "that are given; please report this, and ask for less with --seeds and --scale"
        )
    stated = not fit.estimator.calibration.speed
    head = (
        f"{roughly(asked.seconds)} on {fit.estimator.machine.label}, {fit.estimator.machine.devices_at_once} at once, "
        f"for {study.label(asked.method)} against {study.label(asked.against)}: study {study.name}, preset "
        f"{plan.name}. Speed {speed_in_words(fit.estimator)}."
    )
    if stated:
        head += " Nothing was trained here yet: run make quick once (three minutes), then repeat this command."
    proposal = (
        f"Proposed: scale {one.scale} ({study.scale_label(one.scale)} parameters), {one.seeds} seeds of each, "
        f"{one.tokens / 1e6:,.2f} M tokens a run ({number(one.per_parameter, 2)} a parameter), "
        f"{roughly(hours * 3600)} in all. {_why(fit, one)}"
    )
    parts = [head, *_recipe(fit, one), _rule(fit), _grid(fit.options()), proposal, _resolves(one)]
    filled = [part if part.startswith("scale ") else textwrap.fill(part, WIDTH) for part in parts]
    return "\n\n".join([*filled, "Paste:", f"    {command(fit, one, profiles)}"])


def command(fit: BudgetFit, one: FitOption, profiles: Sequence[str] = ()) -> str:
    """Spell the command that trains an option's trial and makes its page.

    Every number of it is in `--config`, and so is whatever else of the configuration is not what config/config.yaml
    says, whether a word, a profile or a file said it.
    """
    config = fit.estimator.project.config
    other = _differing(config, load_config())
    # `main_study` was put in for this page: results/ holds copies of its products, and a trial is none of them.
    known = ("preset", "studies", "main_study", "trial")
    said = [f"preset={config['preset']}"]
    said += [_word(key, value) for key, value in other.items() if key not in known]
    said += [f"studies=[{fit.study.name}]", f"trial={flow(one.given)}"]
    with_profiles = "".join(f" --profile {shlex.quote(one)}" for one in profiles)
    return f"snakemake results/trial.md{with_profiles} --config {shlex.join(said)}"


def _differing(config: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `config` that makes it of `own` when it is laid over that: of nested values what differs alone."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key not in own or value != own[key]:
            nested = isinstance(value, Mapping) and isinstance(own.get(key), Mapping)
            found[key] = _differing(value, own[key]) if nested else value
    return found


def _word(key: str, value: Any) -> str:
    """KEY=VALUE as it is read back: bare if it may be, else as JSON, which is YAML with every text in quotes."""
    from plumbline.project.invocation import parsed

    bare = f"{key}={value}"
    try:
        if isinstance(value, str) and parsed([bare]) == {key: value}:
            return bare
    except PlumblineError:
        pass
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def flow(given: Mapping[str, Any]) -> str:
    """Write a mapping of plain values and lists in one line of YAML."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in given.items()) + "}"


def _recipe(fit: BudgetFit, one: FitOption) -> list[str]:
    """Where the method is not trained as what it is compared with: a learning rate that makes runs diverge, say."""
    trial = fit.trial(one.scale, one.steps, one.seeds)
    differs = differences(*(trial.of_method(name)[0].spec for name in (trial.method, trial.against)))
    if not differs:
        return []
    label = fit.study.label(fit.asked.method)
    return [f"Mind: {label} is not trained by the recipe of what it is compared with: {', '.join(differs)}."]


def _rule(fit: BudgetFit) -> str:
    return (
        f"Below, what fits {percent(SHARE)} of it (the rest is a margin). Gain: the smallest in "
        f"validation loss (nats a token) that is found with {percent(POWER)} chance, by the noise of which the last "
        "lines say where it is from (*: assumed, not measured here at that scale); with more tokens than it was "
        "measured at it may well be less."
    )


def _why(fit: BudgetFit, one: FitOption) -> str:
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


def _resolves(one: FitOption) -> str:
    elsewhere = [known for known in one.fit.sigmas if known.scale and known.scale != one.scale]
    gain, pack = one.fit.asked.gain, one.given["pack"]
    if one.noise is None:
        asked = f", so that nothing is said of the {gain:g} that is asked for" if gain else ""
        return f"The gain that this resolves is not known: {seed_noise.unknown(one.scale, elsewhere)}{asked}."
    asked = ""
    if gain:
        asked = f", so that the {gain:g} that is asked for is {'' if one.resolved <= gain else 'NOT '}resolved"
    again = f" A run goes {one.passes:.1f} times over the pack {pack}." if one.passes > 1 else ""
    if math.isnan(one.passes):
        again = f" How often a run goes over the pack {pack}, all of its corpus, is not known."
    return (
        f"It resolves a gain of {one.resolved:.2g} nats of validation loss{asked}. The noise of a run is taken as "
        f"{one.noise.words(one.scale, elsewhere)}.{again}"
    )


def _grid(options: Sequence[FitOption]) -> str:
    heads = ["scale", "seeds", "steps", "M tokens", "a parameter", "pack", "passes", "gain"]
    rows = [
        [
            one.scale,
            one.seeds,
            f"{one.steps:,}",
            f"{one.tokens / 1e6:,.2f}",
            f"{one.per_parameter:,.2f}",
            one.given["pack"],
            "not known" if math.isnan(one.passes) else f"{one.passes:.1f}",
            _gain(one),
        ]
        for one in options
    ]
    align = ["left", *["right"] * 4, "left", "right", "left"]
    return tabulate(rows, heads, "simple", disable_numparse=True, colalign=align)


def _gain(one: FitOption) -> str:
    """What is resolved, with a mark where that rests on an assumption."""
    return "not known" if one.noise is None else f"{one.resolved:.3f}{'' if one.noise.scale else '*'}"
