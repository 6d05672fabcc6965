"""Seconds of a dry run at `paper` size, jobs by rule, and whether torch was imported.

python benchmarks/dry_run.py                         # writes benchmarks/dry_run.md
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import describe

HEAVY = ("torch", "transformers", "datasets", "lm_eval")
COMMANDS = {
    "table 2": ["results/table2.csv", "--config", "preset=paper", "machine=h100"],
    "everything": ["all", "--config", "preset=paper", "machine=h100"],
    "table 2, `--profile slurm`": ["results/table2.csv", "--profile", "slurm"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    rows = [row(name, words, given.rounds) for name, words in COMMANDS.items()]
    text = "\n".join(
        [
            "# Dry runs at `paper` size",
            "",
            f"{describe(with_torch=False)}. Median of {given.rounds}. `python benchmarks/dry_run.py`",
            "",
            "| target | CPU s | wall s | imports torch | jobs |",
            "|---|---:|---:|---|---|",
            *rows,
        ]
    )
    given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def row(name: str, words: list[str], rounds: int) -> str:
    """One row of the table. CPU seconds do not depend on what else the machine does, wall seconds do."""
    command = [sys.executable, "-X", "importtime", "-m", "snakemake", "--dry-run", *words]
    cpu, wall = [], []
    for _ in range(rounds):
        before, start = os.times(), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        after = os.times()
        wall.append(time.perf_counter() - start)
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    found = [package for package in HEAVY if package in imported]
    stats = re.search(r"Job stats:\n.*?\n-+ +-+\n(.*?)\n\n", done.stdout + done.stderr, flags=re.S)
    counts = re.findall(r"^(\w+) +(\d+)$", stats[1], flags=re.M) if stats else []
    jobs = ", ".join(f"{rule} {count}" for rule, count in counts)
    packages = ", ".join(found) or "no"
    return f"| {name} | {statistics.median(cpu):.1f} | {statistics.median(wall):.1f} | {packages} | {jobs} |"


if __name__ == "__main__":
    main()
