"""Measures how the time of `plumbline verdict` grows with the rows of its file, for each shape of files of rows.

    python benchmarks/verdict_growth.py [--rows 10000 1000000] [--shapes seeds methods ...] [--limit 600]

Takes CPU seconds of the whole command and their ratio; writes verdict_growth.md next to it.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from machine_description import command, describe
from tabulate import tabulate

PAGE = """# How the time of a verdict grows with its file

`{command}` ({machine}): CPU seconds of `plumbline verdict`, the start of Python included; `inf` is what did not end in
the limit. A hundred times the rows may take 150 times as long.

{table}

{shapes}

What must not grow faster than the rows is also held by a test that counts looks at the ledger's entries
(`tests/verdict/numbers/test_numbers.py`).
"""
TABLE = ["--baseline", "m0", "--metric", "loss", "--lower-is-better"]


def seeds(rows: int, rng: random.Random) -> Iterator[str]:
    """Two methods, half of the rows each."""
    yield "method,seed,loss"
    for row in range(rows):
        yield f"m{row % 2},{row // 2},{3 + rng.gauss(0, 0.01):.5f}"


def rows_without_seeds(rows: int, rng: random.Random) -> Iterator[str]:
    """Two methods without a column of seeds."""
    yield "method,loss"
    for row in range(rows):
        yield f"m{row % 2},{3 + rng.gauss(0, 0.01):.5f}"


def methods(rows: int, rng: random.Random) -> Iterator[str]:
    """Five seeds of each method."""
    yield "method,seed,loss"
    for row in range(rows):
        yield f"m{row // 5},{row % 5},{3 + rng.gauss(0, 0.01):.5f}"


def steps(rows: int, rng: random.Random) -> Iterator[str]:
    """Ten runs, each with its steps."""
    yield "method,seed,step,loss"
    for row in range(rows):
        yield f"m{row % 2},{row // 2 % 5},{row // 10},{3 + rng.gauss(0, 0.01):.5f}"


def search(rows: int, rng: random.Random) -> Iterator[str]:
    """The log of a search: three runs of the start, then changes, of which what is better is kept."""
    yield "commit,loss,status,description"
    best = 3.0
    for row in range(rows):
        value = 3 + rng.gauss(0, 0.01)
        status = "keep" if row == 0 or (row > 2 and value < best) else "discard"
        best = value if status == "keep" else best
        yield f"c{max(row, 2)},{value:.5f},{status},change {max(row, 2)}"


SHAPES: dict[str, tuple[Callable[[int, random.Random], Iterator[str]], list[str]]] = {
    "seeds": (seeds, TABLE),
    "unseeded": (rows_without_seeds, TABLE),
    "methods": (methods, TABLE),
    "steps": (steps, TABLE),
    "search": (search, ["--metric", "loss", "--lower-is-better"]),
}


def cpu_seconds(shape: str, rows: int, limit: float) -> float:
    """CPU seconds of one verdict; infinite if it takes longer than `limit` seconds of wall time."""
    lines, arguments = SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.csv"
        path.write_text("\n".join(lines(rows, random.Random(0))) + "\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            command = [sys.executable, "-m", "plumbline", "verdict", str(path), *arguments]
            subprocess.run(command, check=True, timeout=limit, stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return float("inf")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs=2, default=[10_000, 1_000_000], metavar="ROWS")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS")
    options = parser.parse_args()
    few, many = options.rows
    machine, table = describe(with_torch=False), []
    for shape in options.shapes:
        short, long = (cpu_seconds(shape, rows, options.limit) for rows in (few, many))
        table.append([shape, f"{short:.1f}", f"{long:.1f}", f"{long / short:.0f}"])
    heads = ["shape", f"CPU s, {few:,} rows", f"CPU s, {many:,} rows", "ratio"]
    shapes = "\n".join(f"- {shape}: {SHAPES[shape][0].__doc__}" for shape in options.shapes)
    page = PAGE.format(command=command(), machine=machine, table=tabulate(table, heads, "pipe"), shapes=shapes)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
