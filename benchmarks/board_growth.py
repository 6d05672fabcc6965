"""CPU seconds of `plumbline board` as the records become more, and what a record costs of many next to one of few.

    python -m benchmarks.board_growth                      # writes benchmarks/board_growth.md
    python -m benchmarks.board_growth --records 500 1000

Made-up records of three runs each, and made-up verdicts of a project; all in one process, one after the other, so that
their ratio hangs little on what else the machine does. Work in proportion to the records has a ratio of 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import gate_faults
from benchmarks.machine_description import describe
from plumbline.core.command_line import positive
from plumbline.core.files import atomic_write_text
from plumbline.verdict.board import __main__ as board
from plumbline.verdict.formatting import write_grid

PREDECESSOR = '[predecessor]\nalpha = 0.01\nsource = "made up"\n'


def write_records(folder: Path, records: int) -> None:
    """Records of three runs, each a little better than the one before."""
    rng = np.random.default_rng(0)
    for number in range(records):
        place = folder / f"2026-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}_{number}"
        place.mkdir(parents=True)
        runs = gate_faults.make_runs(rng, 3, mean=3.276 - number * 1e-5)
        printed = {run.seed: run.values[3000] for run in runs}
        gate_faults.write_submission(place, runs, float(np.mean(list(printed.values()))), printed)


def write_verdicts(folder: Path, verdicts: int) -> None:
    """Pages of experiments, with their numbers."""
    folder.mkdir()
    for number in range(verdicts):
        numbers = {"sentence": f"`x{number}` improves.", "verdict": "keep", "p": 0.01, "runs": [1, 2, 3]}
        (folder / f"x{number}.json").write_text(json.dumps(numbers))
        (folder / f"x{number}.md").write_text("# x\n")


def seconds(*arguments: str | Path) -> float:
    """CPU seconds of the verb with this command line."""
    before, sys.argv = sys.argv, ["plumbline board", *map(str, arguments)]
    begun = time.process_time()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            board.main()
    finally:
        sys.argv = before
    return time.process_time() - begun


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=positive, nargs="+", default=[125, 250, 500, 1000])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "rules.toml").write_text(gate_faults.SUBMISSION_RULES + PREDECESSOR)
        write_records(root / "first", 2)
        seconds(root / "first", "--rules", root / "rules.toml", "--out", root / "out")  # what is imported once
        costs: list[tuple[float, float]] = []
        for number in options.records:
            write_records(root / f"records{number}", number)
            write_verdicts(root / f"verdicts{number}", number)
            others = seconds(root / f"records{number}", "--rules", root / "rules.toml", "--out", root / "out")
            own = seconds(root / f"verdicts{number}", "--out", root / "out")
            costs.append((others / number, own / number))
            ratios = [f"{cost / first:.2f}" for cost, first in zip(costs[-1], costs[0])]
            rows.append([f"{number:,}", f"{others:.2f}", ratios[0], f"{own:.2f}", ratios[1]])
    heads = ("records", "others' records, CPU s", "of one, beside one of the fewest", "own verdicts, CPU s", "likewise")
    text = "\n\n".join(
        [
            "# What a board costs as its records become more",
            f"{describe(with_torch=False)}. `python -m benchmarks.board_growth`",
            write_grid(heads, rows),
            "Reading, checking, judging and drawing together; a record here has three logs of 13 evaluations.\n",
        ]
    )
    atomic_write_text(options.out, text)
    print(text)


if __name__ == "__main__":
    main()
