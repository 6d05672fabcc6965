"""Step time of each method of a study, and what it keeps of memory for the gradient, as ratios to its baseline's.

    python benchmarks/method_step_times.py               # demo size, one thread, writes benchmarks/method_step_times.md

All methods live in one process and take their steps in turn, a baseline's step after each: what else the machine does
slows both alike, and CPU time is taken rather than wall time. The medians of these ratios, by component, are the
`relative_step_time` of config/machines.yaml. What is kept is counted in one step of each, and is the same wherever and
whenever that is.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec
import torch
from autograd_memory import HeldByAutograd
from machine_description import describe

from plumbline.core.command_line import positive
from plumbline.core.errors import nearest
from plumbline.model.decoder import create
from plumbline.model.numerics import autocast, numerics
from plumbline.specs import study_config
from plumbline.specs.spec import Precision, RunSpec
from plumbline.train.run_optimizer import RunOptimizer


def trainer(spec: RunSpec, device: str) -> tuple[Callable[[], None], HeldByAutograd]:
    """One training step of a run on random tokens: forward, backward, clip, update. And what a step keeps for its
    backward pass, by its first one, which is taken here: it allocates, too."""
    model = create(spec.model, spec.init_seed, device)
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, [])
    sequences, context = spec.train.batch_tokens // spec.model.context, spec.model.context
    tokens_BT = torch.randint(spec.model.vocabulary, (sequences, context), device=device)

    def step() -> None:
        with autocast(spec.train.precision, torch.device(device)):
            loss = model(tokens_BT, loss=True) / (sequences * (context - 1))
        loss.backward()
        optimizer.clip()
        optimizer.step(1, 1e-4)
        optimizer.zero_grad()

    memory = HeldByAutograd(*model.parameters())
    with memory.count():
        step()
    return step, memory


def _at(spec: RunSpec, precision: Precision) -> RunSpec:
    return msgspec.structs.replace(spec, train=msgspec.structs.replace(spec.train, precision=precision))


def seconds(step: Callable[[], None], device: str) -> float:
    """CPU seconds of a step; on a GPU wall seconds until it is idle."""
    if device == "cpu":
        start = time.process_time()
        step()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="transfer")
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--scale", default="base")
    parser.add_argument("--precision", choices=get_args(Precision), help="default: the runs' own")
    parser.add_argument("--repetitions", type=positive, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--methods", nargs="*", help="default: every method and arm with a run of this scale")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    numerics(torch.device(options.device))
    study = study_config.load(options.study, options.preset)
    specs = {run.spec.method: run.spec for run in study.runs.values() if run.spec.scale == options.scale}
    if options.precision:
        specs = {name: _at(spec, options.precision) for name, spec in specs.items()}
    reference = study.reference or next(iter(study.methods))
    if unknown := [name for name in options.methods or () if name not in specs]:
        there = f"no run of {options.study} at scale {options.scale} is of {unknown[0]!r}"
        parser.error(f"--methods: {there}{nearest(unknown[0], specs)}")
    chosen = options.methods or [name for name in specs if name != reference]
    baseline, of_baseline = trainer(specs[reference], options.device)
    trainers = {name: trainer(specs[name], options.device) for name in chosen}
    steps, memory = ({name: pair[place] for name, pair in trainers.items()} for place in (0, 1))
    ratios: dict[str, list[float]] = {name: [] for name in chosen}
    baselines = [seconds(baseline, options.device)]
    for _ in range(options.repetitions):
        for name, step in steps.items():
            step_seconds = seconds(step, options.device)
            baselines.append(seconds(baseline, options.device))
            ratios[name].append(step_seconds / statistics.mean(baselines[-2:]))
    tokens = specs[reference].train.batch_tokens
    lines = [
        f"# Step time, {options.study} at `{options.preset}`, scale {study.scale_label(options.scale)}",
        "",
        f"{describe()}. Median of {options.repetitions} rounds of the ratio to the baseline's steps just before and "
        "after; "
        f"{'CPU' if options.device == 'cpu' else 'wall'} time of one step of {tokens:,} tokens. The baseline's own "
        "step: "
        f"{statistics.median(baselines):.3f} s. Kept for the gradient: the most bytes that a step holds for its "
        "backward pass, parameters not counted, at this shape in one micro-batch. "
        "`python benchmarks/method_step_times.py`",
        "",
        "| method | time, ratio to baseline | least | most | kept for the gradient, MB | ratio to baseline |",
        "|---|---:|---:|---:|---:|---:|",
        f"| {study.label(reference)} | 1 | {min(baselines) / statistics.median(baselines):.2f} "
        f"| {max(baselines) / statistics.median(baselines):.2f} | {of_baseline.most / 1e6:.1f} | 1 |",
    ]
    for name, values in ratios.items():
        lines.append(
            f"| {study.label(name)} | {statistics.median(values):.2f} | {min(values):.2f} | {max(values):.2f} "
            f"| {memory[name].most / 1e6:.1f} | {memory[name].most / of_baseline.most:.2f} |"
        )
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
