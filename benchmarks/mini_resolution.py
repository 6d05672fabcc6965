"""Which gains the transfer study's `mini` can resolve: its base scale with a tenth of the parameters, on two cores.

    python benchmarks/mini_resolution.py                    # a tenth of mini's tokens: two hours of two quiet cores
    python benchmarks/mini_resolution.py --token-share 0.1  # a hundredth of them, as the committed .md and .json
    python benchmarks/mini_resolution.py --token-share 0.1 --write-page-only # the table, from runs that are there

The size follows from mini's own spec (`small`): a third of its width in as many heads, half its vocabulary, and as
many layers as bring the parameters nearest to a tenth; the spread of initial logits, the learning rate's 1/width and
the warm-up's share of steps stay. Corpus, held-out text and items are mini's; training is in float32.

Runs are made by the project's own workflow, from a copy of it under benchmarks/runs/pilot in which these sizes stand.
What is finished is kept, and the same command goes on from there. The six seeds of the baseline come first, then each
method; the table says what was not reached.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from machine_description import describe
from scipy import optimize

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import COMPLETED
from plumbline.plan.model_counts import estimate_cost
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import ROOT, read_yaml
from plumbline.stats.noise_floor import noise_floor
from plumbline.stats.power import chance_called, compute_resolvable_distance
from plumbline.stats.sample_spread import bound_sigma

STUDY, PRESET, SCALE = "transfer", "mini", "base"
METHODS = ["qknorm", "ssmax", "sigmoid_attn", "relu_squared", "layerscale", "value_residual"]

#: What divides mini's parameters and tokens, and its width. A tenth of the parameters is most of all the embedding, so
#: that the vocabulary is halved.
SHRINK, NARROWER, VOCABULARY = 10, 3, 2

#: Tokens of a step, and items a task: what two cores manage.
BATCH, ITEMS = 2048, 100

RUNS = ROOT / "benchmarks" / "runs" / "pilot"
COPIED = ("Snakefile", "workflow", "config", "studies", "profiles", "envs")

#: Name in the frames -> what it is called, whether more is better, and digits shown.
MEASURES = {
    "validation_loss": ("Validation loss (nats a token)", False, 4),
    "logprob_gold": ("Mean log-probability of the right answer (nats)", True, 3),
    "average": ("CLIMB-avg", True, 4),
}


def small(spec: RunSpec, share: float) -> dict[str, Any]:
    """The scale at a tenth of `spec`'s parameters and `share` of a tenth of its tokens, as an entry of the YAML."""
    model, train = spec.model, spec.train
    width, vocabulary = model.width // NARROWER, model.vocabulary // VOCABULARY
    sizes: dict[str, Any] = {
        "width": width,
        "heads": model.heads,
        "key_value_heads": model.key_value_heads,
        "head_width": width // model.heads,
        "ffn_width": model.ffn_width // NARROWER,
        "vocabulary": vocabulary,
        "context": model.context,
        "init_std": round(model.init_std * math.sqrt(model.width / width), 4),
    }
    wished = estimate_cost(model).parameters / SHRINK
    layers = min(
        range(2, model.layers + 1), key=lambda layers: abs(_parameters(spec, sizes | {"layers": layers}) - wished)
    )
    steps = round(share * train.steps * train.batch_tokens / SHRINK / BATCH)
    warmup = max(1, round(steps * spec.schedule.warmup_steps / train.steps))
    return {
        "label": f"{_parameters(spec, sizes | {'layers': layers}) / 1e6:.1f}M",
        "model": {"layers": layers} | sizes,
        "optimizer": {"learning_rate": round(spec.optimizer.learning_rate * model.width / width, 5)},
        "schedule": {"warmup_steps": warmup},
        "train": {
            "steps": steps,
            "batch_tokens": BATCH,
            "precision": "float32",
            "validate_every": steps,
            "validation_sequences": train.validation_sequences,
        },
    }


def project(share: float) -> Path:
    """The copy of the project in which these sizes stand for mini's; made again each time, except what it has made."""
    folder = _folder(share)
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    spec = study_config.load(STUDY, PRESET).runs[f"{STUDY}/{SCALE}/baseline/s42"].spec
    study, scale = folder / "studies" / STUDY / "study.yaml", small(spec, share)
    content = read_yaml(study)
    content["scales"] = {
        name: {PRESET: presets[PRESET] | scale if name == SCALE else presets[PRESET]}
        for name, presets in content["scales"].items()
    }
    vocabulary = scale["model"]["vocabulary"]
    for presets in content["scales"].values():
        presets[PRESET]["model"]["vocabulary"] = vocabulary
    _write(study, content)
    corpus = folder / "config" / "corpora" / f"{content['corpus']}.yaml"
    read = read_yaml(corpus)
    read["presets"][PRESET]["tokenizer"]["vocabulary"] = vocabulary
    _write(corpus, read)
    preset = folder / "config" / "presets" / f"{PRESET}.yaml"
    preset_content = read_yaml(preset)
    preset_content["evaluation"]["limit"] = ITEMS
    _write(preset, preset_content)
    return folder


def carry_out(folder: Path, study: study_config.Study, methods: list[str], cores: int) -> None:
    """Train and score: the baseline's seeds, then the methods, each as far as it is not yet done.

    Raises:
        PlumblineError: Snakemake failed; its logs are named.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for chosen in (["baseline"], methods):
        keys = [key for key, run in study.runs.items() if run.spec.scale == SCALE and run.spec.method in chosen]
        keys = [key for key in keys if "baseline" in chosen or key.endswith("/s42")]
        targets = [f"work/{PRESET}/scores/{key}/scores.parquet" for key in keys]
        command = [sys.executable, "-m", "snakemake", *targets, "--cores", str(cores)]
        command += ["--config", f"preset={PRESET}", f"studies=[{STUDY}]"]
        if subprocess.run(command, cwd=folder, env=environment).returncode:
            raise PlumblineError(
                f"a job failed or was stopped: see {folder / 'logs'}; the same command goes on from there"
            )


def tabulate_runs(frames: RunFrames) -> pd.DataFrame:
    """Every run that is finished, on its key: method, seed and the MEASURES; NaN if it was not scored."""
    completed = frames.runs[frames.runs["outcome"] == COMPLETED]
    gold = frames.scores[frames.scores["metric"] == "logprob_gold"].groupby("key")["value"].mean()
    return completed[["method", "seed", "validation_loss", "average", "parameters"]].assign(logprob_gold=gold)


def figures(runs: pd.DataFrame, m: int, seeds: int) -> dict[str, Any]:
    """By measure: sigma over the baseline's seeds, what it resolves with mini's number of `seeds` and with the
    document's three, and each method's gain over the seeds' mean (better upwards).

    Raises:
        PlumblineError: fewer than two seeds of the baseline are finished.
    """
    by_measure = {}
    for name, (_, upwards, _) in MEASURES.items():
        floor, sign = noise_floor(runs[runs["method"] == "baseline"][name]), 1 if upwards else -1
        if not floor.usable:
            raise PlumblineError(
                f"{name}: {floor.n} seeds of the baseline are finished; run it again without --write-page-only"
            )
        gains = {str(run.method): sign * float(floor.delta(getattr(run, name))) for run in runs.itertuples()}
        by_measure[name] = {
            "seeds": floor.n,
            "mean": floor.mean,
            "sigma": floor.sigma,
            "smallest_resolved_delta": compute_resolvable_distance(floor.sigma, seeds, m=m),
            "gain_found_with_80pct_power": find_resolved_gain(floor.sigma, seeds, m),
            "smallest_resolved_delta_3_seeds": compute_resolvable_distance(floor.sigma, 3, m=m),
            "smallest_resolved_delta_these_seeds": compute_resolvable_distance(floor.sigma, floor.n, m=m),
            "gain_by_method": {
                name: gain for name, gain in gains.items() if name != "baseline" and not math.isnan(gain)
            },
        }
    return by_measure


def find_resolved_gain(sigma: float, n: int, m: int) -> float:
    """The true gain that one run of `m` against `n` seeds shows as better in four cases of five; `sigma` is the true
    spread of a run."""
    most = 20 * compute_resolvable_distance(sigma, n, m=m)
    return float(optimize.brentq(lambda gain: chance_called(gain, sigma, n, m=m) - 0.8, 0.0, most))


def page(by_measure: dict[str, Any], study: study_config.Study, runs: pd.DataFrame, share: float, seeds: int) -> str:
    """The table as Markdown."""
    spec = study.runs[f"{STUDY}/{SCALE}/baseline/s42"].spec
    model, train = spec.model, spec.train
    tokens, whole = train.steps * train.batch_tokens, share / SHRINK
    fewest = min(measure["seeds"] for measure in by_measure.values())
    low, high = bound_sigma(1.0, fewest - 1, 0.05)
    lines = [
        f"# What the transfer study's `mini` can resolve: a pilot with {1 / SHRINK:g} of its parameters and "
        f"{whole:g} of its tokens",
        "",
        f"{describe()}. {int(runs['parameters'].max()):,} parameters ({model.layers} layers of width {model.width}, "
        f"{model.heads} heads x {model.head_width}, {model.key_value_heads} key/value heads, FFN {model.ffn_width}, "
        f"{model.vocabulary:,} entries, context {model.context}), N(0, {model.init_std:g}^2), learning rate "
        f"{spec.optimizer.learning_rate:g}; {train.steps} steps of {train.batch_tokens:,} tokens, "
        f"{tokens / 1e6:.2f} M in all ({whole:g} of mini's {tokens / whole / 1e6:.0f} M). Validation on "
        f"{train.validation_sequences:,} sequences, scores on at most {ITEMS} items a task (seven tasks of proxies). "
        f"`python benchmarks/mini_resolution.py --token-share {share:g}`",
        "",
        f"*Resolves*: how far one run of a method must lie from the mean of mini's {seeds} baseline seeds, were their "
        "sigma this one, for the prediction t to stay at p <= 0.05 after Bonferroni over "
        f"{study.m} methods; *in 80 %*: the true gain that is seen so in 80 % of runs; *with 3*: how far with the "
        "document's three seeds.",
        "",
        "| measure | seeds | mean | sigma | resolves | in 80 % | with 3 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (label, _, digits) in MEASURES.items():
        measure = by_measure[name]
        numbers = [
            measure[key]
            for key in (
                "mean",
                "sigma",
                "smallest_resolved_delta",
                "gain_found_with_80pct_power",
                "smallest_resolved_delta_3_seeds",
            )
        ]
        lines.append(
            f"| {label} | {measure['seeds']} | " + " | ".join(f"{number:.{digits}f}" for number in numbers) + " |"
        )
    methods = [
        method for method in METHODS if any(method in measure["gain_by_method"] for measure in by_measure.values())
    ]
    if methods:
        lines += [
            "",
            "Gains of one run (seed 42) over the mean of the seeds here, better upwards, also in sigma; **bold** where "
            "these seeds resolve them:",
            "",
            "| method | " + " | ".join(label for label, _, _ in MEASURES.values()) + " |",
            "|---|" + "---:|" * len(MEASURES),
        ]
        lines += [f"| {study.label(method)} | " + " | ".join(_gains(by_measure, method)) + " |" for method in methods]
    if fewest < seeds:
        lines += [
            "",
            f"Of mini's {seeds} seeds {by_measure['validation_loss']['seeds']} are trained and {fewest} scored: a "
            "first figure, not one to lean on. The same command goes on from there.",
        ]
    left_out = [name for name in METHODS if name not in methods]
    if left_out:
        lines += ["", f"Not reached: {', '.join(study.label(name) for name in left_out)}."]
    lines += [
        "",
        f"Sigma from {fewest} seeds is itself uncertain by a factor of {low:.2f} to {high:.2f} (95 %). Such a small "
        "model has another sigma than mini itself, whose own is in its table `noise_floor`.",
    ]
    return "\n".join(lines) + "\n"


def _gains(by_measure: dict[str, Any], method: str) -> list[str]:
    cells = []
    for name, (_, _, digits) in MEASURES.items():
        measure, gain = by_measure[name], by_measure[name]["gain_by_method"].get(method)
        if gain is None:
            cells.append("not scored")
            continue
        text = f"{gain:+.{digits}f} ({gain / measure['sigma']:+.1f} sigma)"
        cells.append(f"**{text}**" if abs(gain) >= measure["smallest_resolved_delta_these_seeds"] else text)
    return cells


def _parameters(spec: RunSpec, sizes: dict[str, Any]) -> int:
    return estimate_cost(spec.model.from_dict(spec.model.to_dict() | sizes)).parameters


def _folder(share: float) -> Path:
    return RUNS / f"share{share:g}"


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--token-share", type=float, default=1.0, help="of a tenth of mini's tokens (default: %(default)g)"
    )
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--write-page-only", action="store_true", help="train nothing")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    if not 0 < options.token_share <= 1:
        raise PlumblineError(
            f"--token-share {options.token_share:g}: a share of a tenth of mini's tokens is above 0 and at most 1"
        )
    folder = _folder(options.token_share) if options.write_page_only else project(options.token_share)
    study = study_config.load(STUDY, PRESET, folder)
    if not options.write_page_only:
        carry_out(folder, study, options.methods, options.cores)
    assert study.suite is not None
    expected = list_expected_runs(None, study, ["base", "noise_floor"], folder)
    methods = {"baseline", *options.methods}
    chosen = [run for run in expected if run.scale == SCALE and run.method in methods]
    frames = load(chosen, folder / "work" / PRESET, average=study.suite.average)
    runs = tabulate_runs(frames)
    seeds = sum(run.method == "baseline" for run in expected if run.scale == SCALE)
    by_measure = figures(runs, study.m, seeds)
    options.out.write_text(page(by_measure, study, runs, options.token_share, seeds), encoding="utf-8")
    options.out.with_suffix(".json").write_text(json.dumps(by_measure, indent=1) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    command_line.run(main)
