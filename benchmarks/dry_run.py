"""Seconds and memory of a dry run at `paper` size, jobs by rule, and whether torch was imported; then the same, and a
plan, of the transfer study with so many seeds of every method that it has two thousand runs, and ten thousand (copies
of it, in a temporary folder). With `--beside`, in turn with another clone at another commit. The page keeps the last
section of each machine.

python benchmarks/dry_run.py                         # writes benchmarks/dry_run.md
python benchmarks/dry_run.py --beside ../earlier
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

from machine_description import command, describe, processor, write_section

REPOSITORY = Path(__file__).parents[1]
#: What a project has in addition to its configuration.
PROJECT = ("Snakefile", "workflow", "src", "profiles", "envs", "pyproject.toml", "requirements.lock")
#: The line of the study that gives every method a seed, and how many it gets.
EVERY_METHOD = "    - {scale: base, methods: all, seeds: [42]}\n"
SEEDS = (100, 500)
HEAVY = ("torch", "transformers", "datasets", "lm_eval")
COMMANDS = {
    "table 2": ["results/table2.csv", "--config", "preset=paper", "machine=h100"],
    "everything": ["all", "--config", "preset=paper", "machine=h100"],
    "table 2, `--profile slurm`": ["results/table2.csv", "--profile", "slurm"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="another clone")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="of every method, for so many rows more")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    clones = [REPOSITORY, *([options.beside.resolve()] if options.beside else [])]
    rounds = options.repetitions
    rows = [row(name, arguments, rounds, {clone: clone for clone in clones}) for name, arguments in COMMANDS.items()]
    lines = [
        f"{describe(with_torch=False)}. Median of {rounds}. `{command()}`",
        "",
        *(f"Beside: commit {read_commit(clone)}, in turn; its figures stand after the stroke." for clone in clones[1:]),
        "",
        "| target | CPU s | wall s | most MB | imports torch | jobs |",
        "|---|---:|---:|---:|---|---|",
        *rows,
        *(line for seeds in options.seeds for line in many(clones, seeds, rounds)),
    ]
    write_section(options.out, ["# Dry runs at `paper` size"], processor(), lines)
    print("\n".join(lines))


def read_commit(clone: Path) -> str:
    """The commit that a clone is at."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True).stdout.strip()


def many(clones: list[Path], seeds: int, rounds: int) -> list[str]:
    """The rows of thousands of runs."""
    with tempfile.TemporaryDirectory(prefix="plumbline-many-") as folder:
        places = {
            clone: copy_with_seeds(clone, Path(folder) / str(number), seeds) for number, clone in enumerate(clones)
        }
        rows = [row(f"table 2 with {seeds} seeds of every method, at `demo`", ["results/table2.csv"], rounds, places)]
        costs, _ = time_in_turn(["plumbline.plan", "--out", "plan.csv"], rounds, places)
        planned = sum(1 for line in (places[REPOSITORY] / "plan.csv").open(encoding="utf-8")) - 1
        rows.append(f"| plan of the same, all studies | {costs} | rows {planned} |")
    return rows


def copy_with_seeds(clone: Path, place: Path, seeds: int) -> Path:
    """A project of a clone's code, in which every method of the transfer study has so many seeds."""
    place.mkdir()
    for name in PROJECT:
        (place / name).symlink_to(clone / name)
    for name in ("config", "studies"):
        shutil.copytree(clone / name, place / name)
    definition = place / "studies/transfer/study.yaml"
    text = definition.read_text(encoding="utf-8")
    assert EVERY_METHOD in text
    listed = ", ".join(str(seed) for seed in (42, *range(1000, 1000 + seeds - 1)))
    definition.write_text(text.replace(EVERY_METHOD, EVERY_METHOD.replace("42", listed)), encoding="utf-8")
    return place


def row(name: str, arguments: list[str], rounds: int, places: dict[Path, Path]) -> str:
    """One row of the table."""
    costs, output = time_in_turn(["snakemake", "--dry-run", *arguments], rounds, places)
    stats = re.search(r"Job stats:\n.*?\n-+ +-+\n(.*?)\n\n", output, flags=re.S)
    counts = re.findall(r"^(\w+) +(\d+)$", stats[1], flags=re.M) if stats else []
    jobs = ", ".join(f"{rule} {count}" for rule, count in counts)
    return f"| {name} | {costs} | {jobs} |"


def time_in_turn(module: list[str], rounds: int, places: dict[Path, Path]) -> tuple[str, str]:
    """Cells of a module's command, by clone, run in its place: medians of CPU seconds, of wall seconds, which depend on
    what else the machine does, and of memory, and what is imported. And what it printed here."""
    runs: dict[Path, list[tuple[float, float, float]]] = {clone: [] for clone in places}
    output = dict.fromkeys(places, "")
    for _ in range(rounds):
        for clone, place in places.items():
            numbers, output[clone] = time_command(module, clone, place)
            runs[clone].append(numbers)
    medians = [[statistics.median(column) for column in zip(*runs[clone])] for clone in places]
    columns = [" / ".join(f"{value:.{digits}f}" for value in of) for of, digits in zip(zip(*medians), (1, 1, 0))]
    return " | ".join([*columns, heavy(output[REPOSITORY])]), output[REPOSITORY]


def time_command(module: list[str], clone: Path, place: Path) -> tuple[tuple[float, float, float], str]:
    """CPU and wall seconds, most megabytes, and what was printed."""
    path = os.pathsep.join(filter(None, [str(clone / "src"), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", *module],
            cwd=place, env=os.environ | {"PYTHONPATH": path}, stdout=output, stderr=errors,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed = ""
        for stream in (output, errors):
            stream.seek(0)
            printed += stream.read()
    if process.returncode:
        raise SystemExit(printed[-2000:])
    return (usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1000), printed


def heavy(output: str) -> str:
    """Which slow packages were imported."""
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in output.splitlines() if "|" in line}
    return ", ".join(package for package in HEAVY if package in imported) or "no"


if __name__ == "__main__":
    main()
