"""Draws the premature study's runs: its printed numbers as the truth, or interventions that do nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.claim_rates.drawn_worlds import DrawnStudy, World
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.studies.premature.claims import CHECKS, Evidence
from plumbline.studies.premature.run_values import RunValues
from tests.studies.premature import synthetic_runs as printed
from tests.studies.premature.runs_with_false_claims import nothing_happens
from tests.studies.premature.synthetic_runs import Facts


@dataclass(frozen=True, kw_only=True, slots=True)
class LossSpread:
    """Standard deviations of a held-out loss: of a seed, which moves all runs of that seed, and of a difference from
    the control at the same seed."""

    seed: float
    difference: float


#: By scale, as Tables 1 and 11 print them.
LOSS = {"base": LossSpread(seed=0.0021, difference=0.0030), "large": LossSpread(seed=0.0003, difference=0.0004)}
#: Upper entropy and logit at 3 %: pooled over the models that two or three tables print (control, SwiGLU, GEGLU).
READOUTS = {"entropy": 0.0126, "logit_mean_abs": 0.034}

NOISE = [
    "held-out loss at 270M: 0.0021 nats a seed, in common to all runs of that seed, and 0.0030 for a difference at the "
    "same seed (Table 1); at 0.7B 0.0003 and 0.0004 (Table 11); of other architectures the same, which is assumed",
    "tokens to the control's loss: those of the drawn losses, at the slope of the printed ones",
    "tasks: Table 2's deviations, the control's of its own and those of the paired difference",
    "upper entropy and logit: 0.0126 and 0.034, as far as tables that print the same model twice are apart",
]
_RELEASE = "the paper prints one crossing of the score and no spread"
_WRITES = "the paper prints each of these readings once, without a spread"
NOT_DRAWN = {
    **dict.fromkeys([
        "t8_main", "t8_lower_threshold", "t8_higher_threshold", "t8_no_patience", "t8_stricter_patience",
        "t8_shorter_window", "release_window", "release_main", "lower_routing_same", "sharp_crossing",
    ], _RELEASE),
    **dict.fromkeys([
        "ablation_control", "ablation_intervention", "ablation_order", "ablation_grows",
        "singular_value", "locality", "locality_order", "immature_energy", "t5_gelu_3840", "t5_gelu_2560",
        "t5_swiglu_2560", "t5_geglu_2560", "write_reduction_3840", "write_reduction_2560", "first_upper_reduction",
        "write_order", "readout_20pct", "dose_monotone",
    ], _WRITES),
}  # fmt: skip

NULL_AGREES = {
    **dict.fromkeys(
        ["control_270m", "intervention_270m", "t9_control", "t10_control"],
        "the level of one side, and no side is said to be lower",
    ),
    **dict.fromkeys(
        ["t2_piqa", "t2_hellaswag", "t2_arc_easy", "t2_arc_challenge", "t2_race", "t2_mmlu"],
        "printed inside the noise: less than two standard errors of three pairs",
    ),
    "downstream_wins": "printed inside the noise: a fair coin wins 12 to 16 of 21 in a third of all cases",
    "geglu_at_least": "printed inside the noise: less than two deviations of one pair",
}


def _means() -> dict[tuple[str, str], float]:
    """(scale, method) -> the true loss: the printed one, of several seeds their mean."""
    means = {("base", method): float(np.mean(np.log(values))) for method, values in printed.PPL.items()}
    # One seed is printed of the others: what it is away from the control's at the same seed stays as it is.
    control = math.log(printed.PPL["gpt"][0])
    for method, values in printed.PPL.items():
        if len(values) == 1:
            means["base", method] = means["base", "gpt"] + math.log(values[0]) - control
    return means | {("large", method): float(np.mean(values)) for method, values in printed.LARGE_LOSS.items()}


MEANS = _means()


def _tasks(world: World, method: str, control: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    """Accuracies of one run; `control`: those of the control at the same seed."""
    accuracies = {}
    for task, row in printed.TASKS.iterrows():
        name = "lambada_openai" if task == "lambada" else str(task)
        if method == "gpt":
            accuracies[name] = row["control_mean"] + rng.normal(0.0, row["control_std"])
            continue
        mean = row["delta_pp_mean"] if world == "perfect" else 0.0
        accuracies[name] = control[name] + (mean + rng.normal(0.0, row["delta_pp_std"])) / 100
    return accuracies


def _read(run: Facts, rng: np.random.Generator) -> dict:
    """What probes read, moved by the same at all times of a run."""
    moved = {probe: rng.normal(0.0, spread) for probe, spread in READOUTS.items()}
    return {
        (probe, part): {
            at: (value + (moved[probe] if probe in moved and part == "upper" and at > 0 else 0.0), null)
            for at, (value, null) in curve.items()
        }
        for (probe, part), curve in run.run_values.items()
    }


def facts(world: World, rng: np.random.Generator) -> printed.World:
    """All runs of one world."""
    published = printed.make_published_facts()
    truth = published if world == "perfect" else nothing_happens(published)
    seeds = {scale: {place: rng.normal(0.0, spread.seed) for place in range(3)} for scale, spread in LOSS.items()}
    world_runs: printed.World = {}
    luck: dict[str, float] = {}
    for key in sorted(truth, key=_place_in_pairs):
        _, scale, method, seed = key.split("/")
        place = printed.SEEDS.index(int(seed[1:]))
        mean = MEANS[scale, method] if world == "perfect" else MEANS[scale, "gpt"]
        # A slowed run differs so much from its own control, and another architecture's control from the GPT-style one.
        luck[key] = luck.get(key.replace("_slow/", "/"), 0.0)
        luck[key] += rng.normal(0.0, LOSS[scale].difference) if method != "gpt" else 0.0
        loss = mean + seeds[scale][place] + luck[key]
        control = world_runs.get(f"premature/{scale}/gpt/{seed}")
        run = replace(truth[key], loss=loss, run_values=_read(truth[key], rng), saved=None)
        if control is not None:
            run.control_loss = control.loss
            run.saved = _compute_saved_percent(published[key], control.loss - loss)
        if run.tasks:
            run.tasks = _tasks(world, method, control.tasks if control else {}, rng)
        world_runs[key] = run
    return world_runs


def _place_in_pairs(key: str) -> tuple[bool, bool]:
    """The order in which runs are drawn: each control before what is compared with it."""
    method = key.split("/")[2]
    return method != "gpt", method.endswith("_slow")


def _compute_saved_percent(facts: Facts, gain: float) -> float | None:
    """Percent of the budget that a drawn gain saves, at the slope of the printed gain and saving."""
    if facts.saved is None or gain <= 0:
        return None
    return min(99.0, gain * facts.saved / (facts.control_loss - facts.loss))


@dataclass(frozen=True, kw_only=True)
class DrawnFrames(RunFrames):
    """The frames of a world of which nothing is written: `facts` are what its metrics and probes would say."""

    facts: printed.World

    def metrics(self, key: str) -> pd.DataFrame:
        """Make a run's metrics."""
        return printed.make_metrics(printed.study_at().runs[key].spec, self.facts[key])


class _DrawnValues(RunValues):
    """Reads curves from the facts, of which layers and heads would be made that have them as their means."""

    def _curve(self, key: str, probe: str, part: str, column: str) -> pd.Series:
        curve = self.frames.facts[key].run_values.get((probe, part), {})
        return pd.Series({at: both[column == "null"] for at, both in sorted(curve.items())}, dtype=float)


class DrawnEvidence(Evidence):
    """The study's evidence, of drawn frames."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.run_values = _DrawnValues(frames, study)


def draw(world: World, rng: np.random.Generator, _: Path) -> DrawnFrames:
    """The frames of one world, of which nothing is written."""
    runs, made = facts(world, rng), printed.load_published()
    tasks = {(key, task): value for key, run in runs.items() for task, value in run.tasks.items()}
    places = pd.MultiIndex.from_frame(made.scores[["key", "task"]])
    values = {field.name: getattr(made, field.name) for field in fields(RunFrames)}
    losses = pd.Series({key: run.loss for key, run in runs.items()})
    values["runs"] = made.runs.assign(validation_loss=losses.reindex(made.runs.index))
    values["scores"] = made.scores.assign(value=[tasks.get(place, float("nan")) for place in places])
    return DrawnFrames(facts=runs, **values)


def study() -> DrawnStudy:
    """Describe how the study's runs are drawn."""
    return DrawnStudy(
        study=printed.study_at(),
        published=printed.PUBLISHED,
        checks=CHECKS,
        evidence=DrawnEvidence,
        draw=draw,
        noise=NOISE,
        not_drawn=NOT_DRAWN,
        null_agrees=NULL_AGREES,
    )
