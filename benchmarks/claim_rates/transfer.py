"""Draws the transfer study's runs: its printed numbers as the truth, or twenty methods that are all the baseline."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.claim_rates.drawn_worlds import DrawnStudy, World
from plumbline.studies.transfer.claims import CHECKS, Evidence
from tests.studies.transfer.synthetic_results import (
    DIVERGED_LARGE,
    MEAN,
    PUBLISHED,
    SIGMA,
    Facts,
    Held,
    Key,
    Run,
    history,
    hold_frames,
    right,
    study_at,
)

#: Standard deviation of CLIMB-avg over seeds, as printed; of methods with one seed the baseline's.
SPREADS = {"qknorm": 0.00146, "softpick": 0.00133}
#: Standard deviation of the held-out loss over seeds.
LOSS = 0.0021
#: Of the step of a divergence, as a share of it: HybridNorm's three steps, 2800, 2900 and 3500.
STEP = float(np.std([2800, 2900, 3500], ddof=1) / np.mean([2800, 2900, 3500]))

NOISE = [
    "CLIMB-avg: standard deviation 0.00208 (baseline, and methods with one seed), 0.00146 (QK-Norm) and 0.00133 "
    "(Softpick), as printed in section 3.3; at 3B the same, which is assumed",
    "tasks: independent of each other, each sqrt(12) times as far apart as their average, which is assumed",
    "held-out loss: 0.0021 nats, which is assumed (the paper prints no spread; another paper's three seeds at 270M)",
    "steps of a divergence: 12 %, as HybridNorm's three printed steps are apart; that a run diverges is not drawn",
]
_NORMS = "the paper prints no spread of gradient norms, and the curves of a drawn run are made up"
_CURVES = "the losses on the way are made up: the paper prints none"
_WEIGHTS = "the paper prints no number of attention weights"
NOT_DRAWN = {
    "hybrid_pre_nan_grad": _NORMS,
    "hybrid_spike": _NORMS,
    "baseline_3b_grad": _NORMS,
    "ssmax_rise_length": _NORMS,
    "winners_track_loss": _CURVES,
    "improvers_keep_concentration": _WEIGHTS,
    "failures_lose_concentration": _WEIGHTS,
    "softmax_cap_inactive": _WEIGHTS,
}


_INSIDE, _LEVEL = "no difference from the baseline is what it claims", "a level or a spread, which it shares"
_DEVICES = "two devices that give the same are what it claims"
NULL_AGREES = {
    **dict.fromkeys([
        "t2_qknorm_geglu", "t2_gated_attn_qknorm", "t2_softmax_cap", "t2_selective_qknorm", "t2_value_residual",
        "t2_geglu_ffn", "t2_denseformer", "geglu_equals_swiglu",
    ], _INSIDE),
    **dict.fromkeys([
        "baseline_mean_sigma", "baseline_seeds", "sigma_three_refs", "t3_baseline",
        "t7_val_loss_baseline", "t7_val_loss_softpick", "t7_val_loss_qknorm",
    ], _LEVEL),
    "sigma_baseline_largest": "printed inside the noise: deviations of three seeds differ as much by chance",
    "spearman_7": "no relation between the scales is what it claims",
    **dict.fromkeys(["a100_match", "a100_per_task"], _DEVICES),
    # Not drawn, and agreed with by any world in which nothing differs.
    "winners_track_loss": "curves that no eye tells from the baseline's are what it claims",
    "improvers_keep_concentration": "no concentration below the baseline's is what it claims",
    "softmax_cap_inactive": "a cap that clips nothing is what it claims",
    "baseline_3b_grad": "a level, which it shares",
}  # fmt: skip


@cache
def _truths() -> dict[tuple[str, str], tuple[pd.Series, float]]:
    """(scale, method) -> accuracy by task and held-out loss, means over the seeds that are printed."""
    seeds: dict[tuple[str, str], list[Run]] = {}
    for (scale, method, _), run in right().items():
        if run.diverged is None:
            seeds.setdefault((scale, method), []).append(run)
    return {
        place: (pd.concat([run.tasks for run in runs], axis=1).mean(axis=1), float(np.mean([run.loss for run in runs])))
        for place, runs in seeds.items()
    }


def _draw_run(key: Key, run: Run, world: World, rng: np.random.Generator) -> Run:
    """A run that was trained once more, in this world."""
    scale, method, _ = key
    truths = _truths()
    tasks, loss = truths[scale, method] if world == "perfect" else truths[scale, "baseline"]
    if world == "null" and scale == "base":
        tasks = tasks + (MEAN - tasks.mean())
    spread = SPREADS.get(method, SIGMA) if world == "perfect" else SIGMA
    accuracies = tasks + rng.normal(0.0, spread * np.sqrt(len(tasks)), len(tasks))
    return Run(accuracies, loss + rng.normal(0.0, LOSS), made_on=run.made_on, concentration=run.concentration)


def facts(world: World, rng: np.random.Generator) -> Facts:
    """All runs of one world."""
    runs: Facts = {}
    for key, run in right().items():
        if key[0] == "large" and key[1:] in DIVERGED_LARGE and world == "perfect":
            kind = {"hybrid_norm": "sudden", "ssmax": "rise", "hyper": "inflation"}[key[1]]
            at = 100 * max(3, round(DIVERGED_LARGE[key[1:]] * (1 + rng.normal(0.0, STEP)) / 100))
            runs[key] = Run(diverged=at, norms=history(kind, at))
        else:
            runs[key] = _draw_run(key, run, world, rng)
    return runs


def draw(world: World, rng: np.random.Generator, _: Path) -> Held:
    """The frames of one world, of which nothing is written."""
    return hold_frames(facts(world, rng))


def study() -> DrawnStudy:
    """Describe how the study's runs are drawn."""
    return DrawnStudy(
        study=study_at(),
        published=PUBLISHED,
        checks=CHECKS,
        evidence=Evidence,
        draw=draw,
        noise=NOISE,
        not_drawn=NOT_DRAWN,
        null_agrees=NULL_AGREES,
    )
