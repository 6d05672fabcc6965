"""What a checkpoint costs the steps around it: written at once, or by a thread while the next steps are taken.

    python benchmarks/checkpoint_saving.py       # 1.2M and 6M parameters, one thread; writes the .md next to it

One process; a round saves once in each way, and the ways take turns in going first. The pause is the wall time until
the call returns and the next step may begin. "With steps" is all of it: the call, the steps after it, and the wait
until the checkpoint is there, in wall seconds and in CPU seconds of the process. Ratios are of one round.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import torch
from machine_description import command, describe
from timed_programs import SHAPES, resize

from plumbline.core.command_line import positive
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import join_ranks
from plumbline.model.numerics import numerics
from plumbline.specs import study_config
from plumbline.train.loop import TrainingLoop
from plumbline.train.pretrain import build_loop
from plumbline.train.step_time import random_pack
from plumbline.train.trainer_settings import TrainerSettings

WAYS = {"at once": False, "beside": True}


def loop(label: str, folder: Path, group: Any) -> TrainingLoop:
    """The baseline's loop at a shape, with a lock that nobody contests."""
    shape, runs = SHAPES[label], study_config.load("transfer", "demo").runs.values()
    spec = next(run.spec for run in runs if (run.spec.scale, run.spec.method) == ("base", "baseline"))
    train = msgspec.structs.replace(
        spec.train, batch_tokens=shape["sequences"] * shape["context"], steps=100_000, validation_sequences=1
    )
    tokenizer = msgspec.structs.replace(spec.data, tokenizer_vocabulary=shape["vocabulary"])
    spec = msgspec.structs.replace(spec, model=resize(spec.model, shape), train=train, data=tokenizer, probes=())
    pack = random_pack(folder / "random.json", spec, 4096)
    (folder / "state").mkdir()
    settings = TrainerSettings(
        training_pack=pack, validation_pack=pack, state=folder / "state", out=folder, checkpoint_seconds=math.inf,
        report_seconds=math.inf, device="cpu", background_io=False, metric_lag_steps=0,
    )  # fmt: skip
    run_lock: Any = SimpleNamespace(check=lambda: None)
    training_loop = build_loop(spec, settings, StopRequest(), group, run_lock)
    training_loop.parts.progress.start(0)
    return training_loop


def save_and_step(training_loop: TrainingLoop, background: bool, steps: int) -> tuple[float, float, float]:
    """Save and take the steps after it: seconds of the pause, and wall and CPU seconds of all."""
    training_loop.train_step()
    began, cpu = time.perf_counter(), time.process_time()
    training_loop.save(background=background)
    pause = time.perf_counter() - began
    for _ in range(steps):
        training_loop.train_step()
    training_loop.parts.saver.wait(training_loop.step)
    return pause, time.perf_counter() - began, time.process_time() - cpu


def time_reading(training_loop: TrainingLoop) -> float:
    """Seconds that a step's sequences take to be read when they are requested."""
    began = time.process_time()
    for step in range(1, 101):
        training_loop.batches.take(step)
    return (time.process_time() - began) / 100


def measure(label: str, options: argparse.Namespace, group: Any) -> list[str]:
    """The rows of a shape."""
    with tempfile.TemporaryDirectory(dir=options.checkpoint_folder) as folder:
        training_loop = loop(label, Path(folder), group)
        steps = math.ceil(options.seconds_of_steps / min(_seconds(training_loop) for _ in range(3)))
        timings: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WAYS}
        for number in range(options.rounds):
            for name in sorted(WAYS, reverse=bool(number % 2)):
                timings[name].append(save_and_step(training_loop, WAYS[name], steps))
        read = time_reading(training_loop)
    columns = {name: list(zip(*values)) for name, values in timings.items()}
    medians = [[statistics.median(values) for values in columns[name]] for name in WAYS]
    pairs = [list(zip(*pair)) for pair in zip(columns["beside"], columns["at once"])]
    ratios = [statistics.median(beside / at_once for beside, at_once in pair) for pair in pairs]
    rows = [
        f"| {label} | {name} | {pause * 1000:.0f} | {wall:.2f} | {cpu:.2f} |"
        for name, (pause, wall, cpu) in zip(WAYS, medians)
    ]
    return [
        *rows,
        f"| {label} | ratio | {ratios[0]:.2f} | {ratios[1]:.3f} | {ratios[2]:.3f} |",
        f"| {label} | reading a step's sequences: {read * 1000:.2f} ms | | | |",
    ]


def _seconds(training_loop: TrainingLoop) -> float:
    began = time.perf_counter()
    training_loop.train_step()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=positive, default=8)
    parser.add_argument(
        "--seconds-of-steps", type=float, default=2.0, help="seconds of steps after a save (default: %(default)s)"
    )
    parser.add_argument(
        "--table-repetitions", type=positive, default=2, help="the whole table so many times (default: %(default)s)"
    )
    parser.add_argument(
        "--checkpoint-folder", type=Path, help="where checkpoints are written (default: the temporary folder)"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "# A checkpoint beside training",
        "",
        f"{describe()}. Medians of {options.rounds} rounds, one thread; some {options.seconds_of_steps:g} s of steps "
        "follow each "
        f"save. `{command()}`",
        "",
        "| run | shape | written | pause, ms | with steps, s | with steps, CPU s |",
        "|---:|---|---|---:|---:|---:|",
    ]
    with join_ranks("cpu") as group:
        numerics(group.device)
        for run, label in itertools.product(range(1, options.table_repetitions + 1), options.model_shapes):
            rows = [f"| {run} {row}" for row in measure(label, options, group)]
            print("\n".join(rows), flush=True)
            lines += rows
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
