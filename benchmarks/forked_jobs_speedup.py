"""What it is worth that short jobs start from a process that has their imports: the same table, with jobs forked from
it, with each job by itself, and with fewer, larger jobs, in turn on one machine.

    python benchmarks/forked_jobs_speedup.py                     # smoke, three rounds: ten minutes, two quiet cores
    python benchmarks/forked_jobs_speedup.py --preset demo --repetitions 1    # training as long as a newcomer's

Data, packs and items are made once before, and each time begins with a copy of them. Snakemake packs jobs into groups
for clusters alone, and each job of a group imports for itself; so a larger job is what a rule with several runs would
be: here it is a process that imports once and carries out so many runs, one after the other, without Snakemake. That
it plans and notes fewer jobs is therefore part of what is counted for it. Seconds of processors count every process,
also those that no job waits for, and depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import os
import resource
import runpy
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine_description import command, describe

from plumbline.core.command_line import positive

REPOSITORY = Path(__file__).resolve().parents[1]
#: What a project has in addition to what it makes.
PROJECT = ("Snakefile", "workflow", "src", "profiles", "envs", "pyproject.toml", "requirements.lock", "config")
TARGET = "results/table2.csv"
CORES = len(os.sched_getaffinity(0))
#: What a larger job of each kind imports before its first run.
IMPORTED = {
    "plumbline.train": ("torch", "pandas", "pyarrow.parquet", "safetensors.torch", "msgspec"),
    "plumbline.evaluate": ("torch", "pandas", "pyarrow.parquet", "safetensors.torch", "tokenizers", "lm_eval.evaluator",
                           "lm_eval.tasks"),
}  # fmt: skip
FORKED, ALONE, LARGER = "forked from one process", "each by itself", "{} runs a job"
#: prctl(2): what a child leaves behind becomes a child of this process, so that its seconds are counted.
SET_CHILD_SUBREAPER = 36


def snakemake(place: Path, preset: str, *arguments: str) -> str:
    """Carry out, or plan, the table in `place`; returns what it said.

    Raises:
        SystemExit: it failed.
    """
    line = [sys.executable, "-m", "snakemake", TARGET, *arguments, "--config", f"preset={preset}"]
    done = subprocess.run(
        line, cwd=place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout[-3000:])
    return done.stdout


def environment() -> dict[str, str]:
    """What every process is given: this source, and this environment's commands."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH")]))
    binaries = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": path, "PATH": binaries}


def jobs(place: Path, preset: str, module: str) -> list[list[str]]:
    """The command lines of all jobs of a module, its name first, as Snakemake would have them, each with its log."""
    planned = snakemake(place, preset, "--dry-run", "--printshellcmds")
    lines = [shlex.split(line.partition(": ")[2]) for line in planned.splitlines() if f" -m {module} " in line]
    return [line_words[len(line_words) - line_words[::-1].index(module) - 1 : -1] for line_words in lines]


def run_larger_jobs(place: Path, preset: str, together: int) -> None:
    """Trainings, then evaluations, so many to a process, and a process a core; Snakemake makes the table of them."""
    for module in IMPORTED:
        commands = jobs(place, preset, module)
        assert commands, module
        parts = [commands[begin : begin + together] for begin in range(0, len(commands), together)]
        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(lambda part: one_after_the_other(place, part), parts))
    snakemake(place, preset)


def one_after_the_other(place: Path, part: list[list[str]]) -> None:
    """Have a process carry out some jobs."""
    line = [sys.executable, str(Path(__file__).resolve()), "--jobs", json.dumps(part)]
    if subprocess.run(line, cwd=place, env=environment() | {"OMP_NUM_THREADS": "1"}).returncode:
        raise SystemExit("a larger job failed")


def carry_out(part: list[list[str]]) -> None:
    """Be that process. A fork for each, as they end processes of their own."""
    for name in IMPORTED[part[0][0]]:
        importlib.import_module(name)
    gc.freeze()
    for *arguments, log in part:
        if not (child := os.fork()):
            Path(log).parent.mkdir(parents=True, exist_ok=True)
            log_descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(log_descriptor, 1)
            os.dup2(log_descriptor, 2)
            sys.argv = arguments[:-1]  # without the >
            try:
                runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
            except SystemExit as ending:
                os._exit(bool(ending.code))  # the packages are not taken down
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"a job failed: {Path(log).read_text()}")


def time_way(prepared: Path, preset: str, way: str, together: int) -> tuple[float, float]:
    """Seconds of the clock and of processors of one way, from a copy of what was prepared."""
    place = prepared.with_name("timed")
    shutil.copytree(prepared, place, symlinks=True)
    before, began = children(), time.monotonic()
    if way == FORKED:
        snakemake(place, preset)
    elif way == ALONE:
        snakemake(place, preset, "--set-resources", "pretrain:launch=python")  # in place of all that the profile has
    else:
        run_larger_jobs(place, preset, together)
    wall = time.monotonic() - began
    try:
        while True:  # the process that forked jobs ends with its Snakemake
            os.wait()
    except ChildProcessError:
        cpu = children() - before
    shutil.rmtree(place)
    return wall, cpu


def children() -> float:
    """Seconds of processors of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("smoke", "demo"), default="smoke")
    parser.add_argument("--repetitions", type=positive, default=3)
    parser.add_argument("--runs-per-job", type=positive, default=4, help="runs of a larger job (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"), help="a section is added to it")
    parser.add_argument("--jobs", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs:
        carry_out(options.jobs)
        return
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1)
    ways = [FORKED, ALONE, LARGER.format(options.runs_per_job)]
    timings: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    loads = []
    machine = describe(with_torch=False)
    with tempfile.TemporaryDirectory(prefix="plumbline-short-jobs-") as folder:
        prepared = Path(folder) / "prepared"
        prepared.mkdir()
        for name in PROJECT:
            (prepared / name).symlink_to(REPOSITORY / name)
        snakemake(prepared, options.preset, "--until", "pack", "items")
        count = sum(len(jobs(prepared, options.preset, module)) for module in IMPORTED)
        for number in range(options.repetitions):
            for way in ways if number % 2 == 0 else ways[::-1]:
                loads.append(os.getloadavg()[0])
                timings[way].append(time_way(prepared, options.preset, way, options.runs_per_job))
                print(f"{way}: {timings[way][-1][0]:.1f} s, {timings[way][-1][1]:.1f} s of processors", flush=True)
    base = [statistics.median(values) for values in zip(*timings[FORKED])]
    rows = []
    for way, values in timings.items():
        wall, cpu = (statistics.median(column) for column in zip(*values))
        each = ", ".join(f"{seconds:.0f}" for seconds, _ in values)
        rows.append(f"| {way} | {each} | **{wall:.1f}** | {wall / base[0]:.2f} | {cpu:.1f} | {cpu / base[1]:.2f} |")
    text = "\n".join(
        [
            f"## Table 2 at `{options.preset}`: {count} trainings and evaluations",
            "",
            f"{machine}; before each time {min(loads):.1f} to {max(loads):.1f}. `{command()}`",
            "",
            "| jobs start | seconds, in turn | median | of the first | seconds of processors | of the first |",
            "|---|---|---:|---:|---:|---:|",
            *rows,
        ]
    )
    head = options.out.read_text(encoding="utf-8") if options.out.exists() else "# Ways to start short jobs\n"
    options.out.write_text(f"{head}\n{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
