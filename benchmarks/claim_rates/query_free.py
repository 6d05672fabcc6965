"""Draws the query_free study's runs: its printed losses as the truth, or models that all end as the baseline does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.claim_rates.drawn_worlds import DrawnStudy, World
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.studies.query_free.claims import CHECKS, Evidence
from tests.studies.query_free import synthetic_runs

#: Standard deviation of the final loss over seeds.
LOSS = 0.0021
#: Runs whose loss the paper prints.
PRINTED = ("baseline", "baseline_small_mlp", "baseline_small_d", "wq_identity", "wq_identity_large_mlp")

NOISE = [
    "final loss: 0.0021 nats, which is assumed (the paper has one seed a model; another paper's three seeds at 270M)"
]
_TRANSFER = "a measurement, of which the paper prints ranges and no spread"
_SAID = "the paper prints no loss of these runs"

NULL_AGREES = {
    **dict.fromkeys(["t2_wq_identity", "match_baseline", "pct_wq_identity"], "no difference is what it claims"),
    "t2_baseline": "a level, which it shares",
}


def draw(world: World, rng: np.random.Generator, folder: Path) -> RunFrames:
    """The frames of one world, whose files are written below `folder`."""
    published = synthetic_runs.as_the_document_says()
    end = published["baseline"].loss
    runs = {
        name: replace(run, loss=(run.loss if world == "perfect" else end) + rng.normal(0.0, LOSS))
        for name, run in published.items()
        if name in PRINTED
    }
    return synthetic_runs.load_frames(synthetic_runs.write_runs(runs, folder), transfer=False)


def study() -> DrawnStudy:
    """Describe how the study's runs are drawn."""
    trained = [name for name, check in CHECKS.items() if check.function and check.scope == "training"]
    unprinted = ("deep_decay_helps", "higher_lr_admitted", "weight_decay_range", "lr_ratio")
    not_drawn = {name: _TRANSFER for name in trained if name.startswith("mlp_transfer")}
    not_drawn |= {name: _SAID for name in trained if name in unprinted}
    return DrawnStudy(
        study=synthetic_runs.study_at(),
        published=synthetic_runs.PUBLISHED,
        checks=CHECKS,
        evidence=Evidence,
        draw=draw,
        noise=NOISE,
        not_drawn=not_drawn,
        null_agrees=NULL_AGREES,
    )
