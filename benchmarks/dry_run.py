"""Seconds of a dry run at `paper` size, jobs by rule, and whether torch was imported; then the same, and a plan, of the
transfer study with so many seeds of every method that it has two thousand runs (a copy of it, in a temporary folder).

python benchmarks/dry_run.py                         # writes benchmarks/dry_run.md
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine_description import describe

REPOSITORY = Path(__file__).parents[1]
#: What a project has in addition to its configuration.
PROJECT = ("Snakefile", "workflow", "src", "profiles", "envs", "pyproject.toml", "requirements.lock")
#: The line of the study that gives every method a seed, and how many it gets.
EVERY_METHOD = "    - {scale: base, methods: all, seeds: [42]}\n"
SEEDS = 100
HEAVY = ("torch", "transformers", "datasets", "lm_eval")
COMMANDS = {
    "table 2": ["results/table2.csv", "--config", "preset=paper", "machine=h100"],
    "everything": ["all", "--config", "preset=paper", "machine=h100"],
    "table 2, `--profile slurm`": ["results/table2.csv", "--profile", "slurm"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    rows = [row(name, arguments, options.repetitions) for name, arguments in COMMANDS.items()]
    text = "\n".join(
        [
            "# Dry runs at `paper` size",
            "",
            f"{describe(with_torch=False)}. Median of {options.repetitions}. `python benchmarks/dry_run.py`",
            "",
            "| target | CPU s | wall s | imports torch | jobs |",
            "|---|---:|---:|---|---|",
            *rows,
            *many(options.repetitions),
        ]
    )
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def many(rounds: int) -> list[str]:
    """The rows of two thousand runs."""
    with tempfile.TemporaryDirectory(prefix="plumbline-many-") as folder:
        place = Path(folder)
        for name in PROJECT:
            (place / name).symlink_to(REPOSITORY / name)
        for name in ("config", "studies"):
            shutil.copytree(REPOSITORY / name, place / name)
        definition = place / "studies/transfer/study.yaml"
        text = definition.read_text(encoding="utf-8")
        assert EVERY_METHOD in text
        seeds = ", ".join(str(seed) for seed in (42, *range(1000, 1000 + SEEDS - 1)))
        definition.write_text(text.replace(EVERY_METHOD, EVERY_METHOD.replace("42", seeds)), encoding="utf-8")
        arguments = ["results/table2.csv"]
        rows = [row(f"table 2 with {SEEDS} seeds of every method, at `demo`", arguments, rounds, place)]
        command = [sys.executable, "-X", "importtime", "-m", "plumbline.plan", "--out", str(place / "plan.csv")]
        cpu, wall, done = time_command(command, rounds, place)
        planned = sum(1 for line in (place / "plan.csv").open(encoding="utf-8")) - 1
        rows.append(f"| plan of the same, all studies | {cpu:.1f} | {wall:.1f} | {heavy(done)} | rows {planned} |")
    return rows


def row(name: str, arguments: list[str], rounds: int, place: Path = REPOSITORY) -> str:
    """One row of the table."""
    command = [sys.executable, "-X", "importtime", "-m", "snakemake", "--dry-run", *arguments]
    cpu, wall, done = time_command(command, rounds, place)
    stats = re.search(r"Job stats:\n.*?\n-+ +-+\n(.*?)\n\n", done.stdout + done.stderr, flags=re.S)
    counts = re.findall(r"^(\w+) +(\d+)$", stats[1], flags=re.M) if stats else []
    jobs = ", ".join(f"{rule} {count}" for rule, count in counts)
    return f"| {name} | {cpu:.1f} | {wall:.1f} | {heavy(done)} | {jobs} |"


def time_command(command: list[str], rounds: int, place: Path) -> tuple[float, float, subprocess.CompletedProcess[str]]:
    """Median CPU and wall seconds. The first do not depend on what else the machine does, the second do."""
    cpu, wall = [], []
    path = os.pathsep.join(filter(None, [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH")]))
    for _ in range(rounds):
        before, start = os.times(), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=os.environ | {"PYTHONPATH": path})
        after = os.times()
        wall.append(time.perf_counter() - start)
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return statistics.median(cpu), statistics.median(wall), done


def heavy(done: subprocess.CompletedProcess[str]) -> str:
    """Which slow packages it imported."""
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    return ", ".join(package for package in HEAVY if package in imported) or "no"


if __name__ == "__main__":
    main()
