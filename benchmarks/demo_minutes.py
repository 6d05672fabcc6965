"""How long a newcomer waits: the set-up, Table 2, and all of one study with its variants, from a fresh clone.

    python benchmarks/demo_minutes.py                    # two clones, one after the other

Each run clones this repository's commit into a folder of its own and types the README's commands: `make setup`,
`make table2`, `make demo STUDY=transfer`, which goes on from Table 2's runs. Minutes are of the clock, so the machine
should have nothing else to do. What they went to is from Snakemake's benchmark files: the seconds of all jobs of a
rule, over as many as run at once; what is left is Snakemake's own planning, and cores that waited for a last job.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from machine_description import command, describe

from plumbline.core.command_line import positive

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = {"training": ("pretrain",), "evaluation": ("evaluate",), "probes of runs": ("probe", "measure")}


def run_command(command: str, clone: Path) -> float:
    """Seconds of a command of the README in `clone`.

    Raises:
        subprocess.CalledProcessError: it failed; its output stands in the clone's folder.
    """
    began = time.monotonic()
    with open(clone.parent / "output.txt", "a", encoding="utf-8") as output:
        subprocess.run(command.split(), cwd=clone, check=True, stdout=output, stderr=subprocess.STDOUT)
    return time.monotonic() - began


def jobs(clone: Path) -> dict[Path, tuple[str, float]]:
    """Rule and seconds of every job that has finished in `clone`, by benchmark file."""
    folder = clone / "work/demo/benchmarks"
    rows = {}
    for path in sorted(folder.rglob("*.jsonl")):
        rule = path.relative_to(folder).parts[0].removesuffix(".jsonl")
        rows[path] = (rule, float(json.loads(path.read_text().splitlines()[-1])["s"]))
    return rows


def row(command: str, seconds: float, new: list[tuple[str, float]], at_once: int) -> str:
    """A command's minutes, jobs, and what the minutes went to."""
    spent: Counter[str] = Counter()
    for rule, of_job in new:
        spent[next((column for column, rules in COLUMNS.items() if rule in rules), "other jobs")] += of_job / at_once
    shares = [spent[column] for column in (*COLUMNS, "other jobs")]
    trained = sum(rule == "pretrain" for rule, _ in new)
    minutes = (f"{part / 60:.1f}" for part in (*shares, seconds - sum(shares)))
    return f"| `{command}` | **{seconds / 60:.1f}** | {trained} | {' | '.join(minutes)} |"


def measure(study: str, at_once: int) -> list[str]:
    """Rows of one run."""
    with tempfile.TemporaryDirectory(prefix="plumbline-demo-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        setup = run_command("make setup", clone)
        rows, before = [f"| `make setup` | **{setup / 60:.1f}** | | | | | | |"], {}
        for command in ("make table2", f"make demo STUDY={study}"):
            seconds, after = run_command(command, clone), jobs(clone)
            rows.append(row(command, seconds, [job for path, job in after.items() if path not in before], at_once))
            before = after
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="transfer")
    parser.add_argument(
        "--repetitions", type=positive, default=2, help="clones, one after the other (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    at_once = len(os.sched_getaffinity(0))
    lines = [
        "# Minutes of the demo, from a fresh clone",
        "",
        f"{describe(with_torch=False)}. Minutes of the clock, and what they went to, with {at_once} jobs at once. "
        f"`{command()}`",
        "",
        f"| run | command | minutes | runs trained | {' | '.join(COLUMNS)} | other jobs | between jobs |",
        f"|---:|---|{'---:|' * (len(COLUMNS) + 4)}",
    ]
    for run in range(1, options.repetitions + 1):
        for line in measure(options.study, at_once):
            lines.append(f"| {run} {line}")
            print(lines[-1], flush=True)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(options.out)


if __name__ == "__main__":
    main()
