"""What torch.compile costs at the start of a run, and what of it a folder shared with earlier runs gives back.

    python benchmarks/compile_startup.py
    python benchmarks/compile_startup.py --model-shapes 1.2M --methods baseline attnres --layers 12 --repetitions 1

Each start is the trainer's command with a run of two steps on random tokens and one held-out sequence, on one thread,
in a process of its own: without compiling; compiled into an empty folder (`--compile-cache`); and compiled with what
that left, by a run of another seed. Seconds from the command to its end are taken, of CPU (compilers that it started
included) and of the clock, so a start's price is its row less that of the first. `--methods` takes others of the
transfer study than its baseline, `all` each method (without its variants); `--layers` takes another depth.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from machine_description import command, describe, processor, write_section
from timed_programs import SHAPES, resize

from plumbline.core.command_line import positive
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.train.step_time import random_pack

HEAD = [
    "# The start of a compiled run",
    "",
    "A run of two steps, from the command to its end, on one thread; MB: the folder of what is compiled.",
]


def specs_by_method() -> dict[str, RunSpec]:
    """A run of each of the transfer study's methods."""
    runs = study_config.load("transfer", "demo").runs.values()
    return {run.spec.method: run.spec for run in runs if run.spec.scale == "base"}


def make_spec(spec: RunSpec, shape: dict[str, int], seed: int) -> RunSpec:
    """Two steps of a run's method in this shape."""
    train = msgspec.structs.replace(
        spec.train, batch_tokens=shape["sequences"] * shape["context"], steps=2, validation_sequences=1
    )
    data = msgspec.structs.replace(spec.data, tokenizer_vocabulary=shape["vocabulary"])
    return msgspec.structs.replace(
        spec, model=resize(spec.model, shape), train=train, data=data, probes=(), init_seed=seed, data_seed=seed
    )


def start(spec: RunSpec, folder: Path, name: str, arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and seconds of the clock of one run."""
    pack = folder / "random.json"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "plumbline.train", "--spec", spec.to_json(), "--training-pack", str(pack)]
    line += [
        "--validation-pack",
        str(pack),
        "--state",
        str(folder / name / "state"),
        "--out",
        str(folder / name / "out"),
    ]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([*line, *arguments], check=True, env=environment, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - began


def measure(label: str, shape: dict[str, int], method: str, run_spec: RunSpec) -> list[str]:
    """Rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="plumbline-compile-") as temporary:
        folder = Path(temporary)
        random_pack(folder / "random.json", make_spec(run_spec, shape, 1), shape["sequences"])
        cache = ["--compile", "--compile-cache", str(folder / "cache")]
        starts = {"not compiled": (1, []), "compiled, empty folder": (1, cache), "compiled, another seed": (2, cache)}
        for name, (seed, arguments) in starts.items():
            used, passed = start(make_spec(run_spec, shape, seed), folder, name.replace(" ", "-"), arguments)
            size = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file()) / 1e6
            rows.append(
                f"| {label}, {shape['layers']} layers | {method} | {name} | {used:.1f} | {passed:.1f} | {size:.1f} |"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    methods = specs_by_method()
    parser.add_argument("--methods", nargs="+", choices=[*methods, "all"], default=["baseline"])
    parser.add_argument("--layers", type=positive, help="layers in place of the shape's own")
    parser.add_argument(
        "--repetitions", type=positive, default=2, help="the whole table so many times (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    lines = [
        f"{describe()}. `{command()}`",
        "",
        "| run | shape | method | start | CPU seconds | seconds | MB |",
        "|---:|---|---|---|---:|---:|---:|",
    ]
    names = [name for name in methods if "." not in name] if "all" in options.methods else options.methods
    for run in range(1, options.repetitions + 1):
        for label in options.model_shapes:
            shape = SHAPES[label] | ({} if options.layers is None else {"layers": options.layers})
            for method in names:
                rows = [f"| {run} {row}" for row in measure(label, shape, method, methods[method])]
                print("\n".join(rows), flush=True)
                lines += rows
    write_section(options.out, HEAD, f"Equal layers in one graph: {processor()}", lines)
    print(options.out)


if __name__ == "__main__":
    main()
