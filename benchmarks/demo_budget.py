"""Is the demo's time better spent on steps or on seeds of the baseline? By power, from the demo's own spreads.

    python benchmarks/demo_budget.py                   # some 20 CPU minutes; writes demo_budget.md and .json
    python benchmarks/demo_budget.py --write-page-only # the page, from the .json

The transfer study's base scale at demo is trained with several numbers of steps: six seeds of the baseline and each
method once. What each number of steps shows is then drawn again many times: seeds spread as they did, methods' true
differences are those that were measured (they are single runs: large ones are on average too large), and Table 2's rule
for validation loss counts the methods that it resolves in the right direction. Losses that were trained are kept in the
.json, and the same command continues there.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch
from machine_description import command, describe
from rounding_of_a_run import find_packs

from plumbline.core.files import atomic_write_text
from plumbline.core.stop_request import StopRequest
from plumbline.specs import study_config, study_folders
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import ROOT
from plumbline.stats import power
from plumbline.stats.distributions import t_isf
from plumbline.stats.order_agreement import order_agreement
from plumbline.train import pretrain as training
from plumbline.train.trainer_settings import TrainerSettings

STEPS = (22, 44, 88)
SEEDS = (3, 4, 6, 8, 10)
LEVEL, DRAWS = 0.05, 20_000
#: What 330 steps and all seeds say of the same methods.
LATER = study_folders.folder("transfer", ROOT) / "small_models.csv"


def specs(steps: int) -> Iterator[tuple[str, RunSpec]]:
    """The runs of Table 2 that count: six seeds of the baseline, the first of each other method."""
    study = study_config.load("transfer", "demo")
    for run in study.group("base", "noise_floor"):
        spec = run.spec
        if spec.method == study.reference or spec.init_seed == 42:
            train = msgspec.structs.replace(spec.train, steps=steps, validate_every=steps)
            yield run.key, msgspec.structs.replace(spec, train=train, probes=())


def train(spec: RunSpec, packs: Path) -> tuple[float, float]:
    """Train a run; its final held-out loss (NaN if it diverged), and its CPU seconds."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainerSettings(
            training_pack=packs / "train" / f"{spec.data.pack}.json",
            validation_pack=packs / "validation" / "validation.json",
            state=Path(folder) / "state",
            out=Path(folder) / "out",
            device="cpu",
        )
        assert training.pretrain(spec, settings, StopRequest()) == 0
        outcome = json.loads((settings.out / "outcome.json").read_text(encoding="utf-8"))
    loss = outcome["validation_loss"] if outcome["outcome"] == "completed" else math.nan
    return float(loss), time.process_time() - begin


def measure(out: Path, packs: Path) -> dict[str, dict[str, list[float]]]:
    """Steps -> run -> loss and CPU seconds, as far as they are not yet in the file."""
    losses: dict[str, dict[str, list[float]]] = json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}
    for steps in STEPS:
        mine = losses.setdefault(str(steps), {})
        for key, spec in specs(steps):
            if key not in mine:
                mine[key] = [round(value, 5) for value in train(spec, packs)]
                atomic_write_text(out, json.dumps(losses, indent=1, sort_keys=True) + "\n")
                print(f"{steps} steps, {key}: {mine[key][0]:.4f}, {mine[key][1]:.1f} s", flush=True)
    return losses


def count_resolved(runs: dict[str, list[float]], seeds: int, m: int, draws: int = DRAWS) -> tuple[float, float, float]:
    """Sigma; the mean number of methods that are resolved the right way round, and its standard error, in draws of new
    seeds of the baseline and of one run of each method."""
    baseline = np.array([value for key, (value, _) in runs.items() if "/baseline/" in key])
    others = np.array([value for key, (value, _) in runs.items() if "/baseline/" not in key])
    sigma, true = float(baseline.std(ddof=1)), others[np.isfinite(others)] - baseline.mean()
    rng = np.random.default_rng(0)
    floor = rng.normal(0.0, sigma, (draws, seeds))
    distances = true + rng.normal(0.0, sigma, (draws, len(true))) - floor.mean(axis=1, keepdims=True)
    t = distances / (floor.std(axis=1, ddof=1, keepdims=True) * math.sqrt(1 + 1 / seeds))
    counts = ((np.abs(t) > float(t_isf(LEVEL / m / 2, seeds - 1))) & (np.sign(t) == np.sign(true))).sum(axis=1)
    return sigma, float(counts.mean()), float(counts.std(ddof=1) / math.sqrt(draws))


def compare_order(runs: dict[str, list[float]]) -> str:
    """How many pairs of methods, by the first seed of each, are ordered as in the record of small models."""
    with open(LATER, encoding="utf-8", newline="") as file:
        later = {row["method"]: float(row["validation_loss_minus_baseline_base"]) for row in csv.DictReader(file)}
    losses = {key.split("/")[2]: loss for key, (loss, _) in runs.items() if key.endswith("/s42")}
    order = order_agreement(losses, later, draws=0)
    return f"{order.alike:g} of {order.pairs}"


def page(losses: dict[str, dict[str, list[float]]]) -> str:
    """The table: steps x seeds, what each resolves, and what it costs next to the demo's choice."""
    study = study_config.load("transfer", "demo")
    chosen_steps = study.runs["transfer/base/baseline/s42"].spec.train.steps
    chosen_seeds = sum(run.spec.method == "baseline" for run in study.group("base", "noise_floor"))
    others = len(study.group("base", "noise_floor")) - chosen_seeds
    lines, costs = [], {}
    for steps, runs in losses.items():
        of_baseline = float(np.mean([seconds for key, (_, seconds) in runs.items() if "/baseline/" in key]))
        of_others = float(np.mean([seconds for key, (_, seconds) in runs.items() if "/baseline/" not in key]))
        for seeds in SEEDS:
            costs[int(steps), seeds] = seeds * of_baseline + others * of_others
    orders = {int(steps): compare_order(runs) for steps, runs in losses.items()}
    for (steps, seeds), seconds in costs.items():
        sigma, mean, error = count_resolved(losses[str(steps)], seeds, study.m)
        mark = " **the demo**" if (steps, seeds) == (chosen_steps, chosen_seeds) else ""
        share = seconds / costs[chosen_steps, chosen_seeds]
        smallest = power.compute_resolvable_distance(sigma, seeds, m=study.m)
        lines.append(
            f"| {steps} | {seeds}{mark} | {sigma:.4f} | {smallest:.3f} | {mean:.2f} ± {error:.2f} | {share:.2f} | "
            f"{orders[steps]} |"
        )
    return "\n".join(
        [
            "# What the demo's time is best spent on: steps or seeds of the baseline",
            "",
            f"{describe()}. `{command()}`: transfer at 1.2M, {len(next(iter(losses.values())))} runs trained with each "
            f"number of steps; {DRAWS:,} draws a row.",
            "",
            f"*Resolved*: methods of {study.m} whose difference in validation loss is significant in the right "
            "direction (one run each, prediction t, Bonferroni), were the measured differences and spread true. "
            "*From*: the smallest difference that is significant. *Cost*: CPU time of training Table 2's runs beside "
            "the demo's; evaluation is the same in all rows of as many runs. *Order*: pairs of methods that are "
            "ordered as after 330 steps (the record of [small models](../docs/small-models.md), all seeds).",
            "",
            "Half the steps resolve more for half the time, since seeds differ less; but what they resolve is the "
            "order of the first steps, of which less lasts. So the demo keeps 44.",
            "",
            "| steps | baseline seeds | spread of seeds | from (nats) | resolved | cost | order |",
            "|---:|---:|---:|---:|---:|---:|---:|",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("work"), help="work folder (default work)")
    parser.add_argument("--write-page-only", action="store_true", help="the page, from the .json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    out = Path(__file__).with_suffix(".json")
    losses = json.loads(out.read_text()) if options.write_page_only else measure(out, find_packs(options.work))
    out.with_suffix(".md").write_text(page(losses), encoding="utf-8")
    print(out.with_suffix(".md"))


if __name__ == "__main__":
    main()
