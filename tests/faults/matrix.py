"""Carries out the fault matrix, tests/faults/cells.yaml: a fault strikes one step of the workflow at smoke, and the
same command without it must then give the bytes of an undisturbed project.

    python -m tests.faults.matrix [CELL ...] [--only-table] [--table FILE]

A cell is STEP.FAULT, or one of both for all of its cells. What was carried out of the present code is a line of
work/faults/<its hash>.jsonl and is not carried out again; `--table` writes the matrix as a page.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.project_under_fault import FAULTS, MATRIX, STEPS, Base, CellFailure, carry_out, define_cell, why_not

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
#: What a cell's outcome depends on.
CODE = ("Snakefile", "workflow", "src", "config", "profiles")
PAGE = """# The fault matrix

A fault (a column) strikes a step of the workflow (a row) of a small project at smoke. `refused`: the command ended with
an error that names what it must; `continues`: it ended as it should. In both cases the same command without the fault
then gave, byte for byte, what an undisturbed project has, and carried out no other step. In brackets: so it was with
the code of an earlier commit, and nobody has looked since. `not run`: nobody knows. Empty: the cell does not apply.
What faults and steps are: [cells.yaml](cells.yaml).

`make faults` wrote this page, of the code {code}, in {hours:.1f} hours; at this pace, beside what else ran there, all
cells take {whole:.1f}. {summary}. Faults of a folder with a trainer of one's own: [folders.yaml](folders.yaml).

{table}

## SLURM

Faults of a cluster, each tried on the real SLURM of `tests/cluster`. A name is carried out by `tests/cluster/faults
NAME`, which compares the weights with those of an undisturbed run; `test_...` is a test.

{slurm}
"""
PASSED, FELL, NOT_RUN, NONE = "as expected", "fell", "not run", "does not apply"
EARLIER = "as expected of earlier code alone"


def main() -> None:
    """Carry out the cells that the command line names and that were not yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", help="STEP.FAULT, STEP or FAULT; none: all")
    parser.add_argument("--only-table", action="store_true", help="carry out nothing")
    parser.add_argument("--table", type=Path, help="write the matrix as a page of Markdown")
    options = parser.parse_args()
    work = REPOSITORY / "work/faults"
    work.mkdir(parents=True, exist_ok=True)
    record = work / f"{hash_product()}.jsonl"
    if not options.only_table:
        run_cells(list(choose_cells(options.cells)), record, work)
    results = read_results(record)
    print(dict(Counter(result["outcome"] for result in results.values())))
    if options.table:
        options.table.write_text(write_table(results, read_older_results(work)))
    sys.exit(any(result["outcome"] == FELL for result in results.values()))


def hash_product() -> str:
    """Hash the code that faults strike."""
    digest = hashlib.sha256()
    for name in CODE:
        place = REPOSITORY / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.suffix not in (".pyc", ".md"):
                digest.update(str(path.relative_to(REPOSITORY)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def list_cells() -> list[tuple[str, str]]:
    """List every cell, in an order that soon has some of every step and fault."""
    cells = [(step, fault) for fault in FAULTS for step in STEPS]
    random.Random(0).shuffle(cells)
    return cells


def choose_cells(names: list[str]) -> Iterator[tuple[str, str]]:
    """Choose the cells that the names of steps, faults and cells ask for; all where there are none.

    Raises:
        SystemExit: a name is none of those.
    """
    for name in names:
        if not any(name in (step, fault, f"{step}.{fault}") for step, fault in list_cells()):
            raise SystemExit(f"error: {name} is no cell, step or fault of tests/faults/cells.yaml")
    for step, fault in list_cells():
        if not names or {step, fault, f"{step}.{fault}"} & set(names):
            yield step, fault


def sample_cells(count: int, always: list[str]) -> list[tuple[str, str]]:
    """The cells named, and some more that apply: the same ones each time."""
    named = [tuple(name.split(".")) for name in always]
    others = [cell for cell in list_cells() if cell not in named and not why_not(*cell)]
    return [*named, *random.Random(0).sample(others, count)]  # type: ignore[list-item]


def run_cells(cells: list[tuple[str, str]], record: Path, work: Path) -> None:
    """Carry out cells, and add a line to the record after each."""
    done = read_results(record)
    base: Base | None = None
    for step, fault in cells:
        name = f"{step}.{fault}"
        definition = define(step, fault)
        if name in done and done[name]["outcome"] != NOT_RUN and done[name]["definition"] == definition:
            continue
        result = {"cell": name, "definition": definition, "outcome": NONE, "why": why_not(step, fault)}
        if not result["why"]:
            base = base or find_base(work)
            result |= run_cell(base, step, fault, work / "cell")
        with open(record, "a") as lines:
            lines.write(json.dumps(result) + "\n")
        print(name, result["outcome"], result["why"][:1500], f"({result.get('seconds', 0):.0f} s)", flush=True)


def define(step: str, fault: str) -> str:
    """What a cell does and expects: a result is of that."""
    return json.dumps([STEPS[step], define_cell(step, fault)])


def find_base(work: Path) -> Base:
    """The project that cells copy, made anew where the code is another one."""
    root = work / f"base-{hash_product()}"
    if not (root / "complete").exists():
        Base.make(REPOSITORY, root)
        (root / "complete").touch()
    return Base(root)


def run_cell(base: Base, step: str, fault: str, folder: Path) -> dict[str, Any]:
    """Carry out one cell: its outcome, why, and its time."""
    started = time.monotonic()
    try:
        shutil.rmtree(folder, ignore_errors=True)
        carry_out(base, step, fault, folder)
        outcome, why = PASSED, ""
    except CellFailure as failure:
        outcome, why = FELL, str(failure)
    except pytest.skip.Exception as skipped:
        outcome, why = NOT_RUN, str(skipped)
    return {"outcome": outcome, "why": why, "seconds": round(time.monotonic() - started, 1)}


def read_older_results(work: Path) -> dict[str, dict[str, Any]]:
    """Read the last result of each cell that was as expected, of whatever code."""
    results: dict[str, dict[str, Any]] = {}
    for record in sorted(work.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        results |= {name: result for name, result in read_results(record).items() if result["outcome"] == PASSED}
    return {name: result for name, result in results.items() if result["definition"] == define(*name.split("."))}


def read_results(record: Path) -> dict[str, dict[str, Any]]:
    """Read the last result of each cell."""
    lines = record.read_text().splitlines() if record.exists() else []
    return {result["cell"]: result for result in map(json.loads, lines)}


def write_table(results: dict[str, dict[str, Any]], older: dict[str, dict[str, Any]]) -> str:
    """Write the matrix as a page: what was carried out and what came of it, and what was not carried out.

    `older`: results of other code, shown as such where there is none of the present code.
    """
    rows, counts = [], Counter[str]()
    for step in STEPS:
        row = [step]
        for fault in FAULTS:
            result = results.get(f"{step}.{fault}", {"outcome": NONE if why_not(step, fault) else NOT_RUN})
            outcome = result["outcome"]
            if outcome == NOT_RUN and f"{step}.{fault}" in older:
                outcome = EARLIER
            counts[outcome] += 1
            expected = define_cell(step, fault)["expected"]
            row.append({PASSED: expected, EARLIER: f"({expected})", NONE: "", FELL: "**fell**"}.get(outcome, outcome))
        rows.append(row)
    seconds = [result["seconds"] for result in results.values() if "seconds" in result]
    hours, applying = sum(seconds) / 3600, sum(counts.values()) - counts[NONE]
    whole = hours * applying / max(1, len(seconds))
    heads = ["step", *(fault.replace("_", " ") for fault in FAULTS)]
    fallen = [
        f"- {name}: {result['why'].splitlines()[0][:300]}"
        for name, result in sorted(results.items())
        if result["outcome"] == FELL
    ]
    missing = [f"- {name}: {result['why']}" for name, result in sorted(results.items()) if result["outcome"] == NOT_RUN]
    summary = ", ".join(f"{outcome}: {count}" for outcome, count in counts.most_common())
    slurm = [[fault["fault"], fault["by"], fault["result"], str(fault["date"])] for fault in MATRIX["slurm"]]
    text = PAGE.format(
        code=hash_product(),
        hours=hours,
        whole=whole,
        summary=summary,
        table=draw_table(heads, rows),
        slurm=draw_table(["fault", "carried out by", "what came of it", "last on"], slurm),
    )
    for title, names in (("What fell:", fallen), ("What this machine could not do:", missing)):
        text += "\n".join(["", title, "", *names, ""]) if names else ""
    return text


def draw_table(heads: list[str], rows: list[list[str]]) -> str:
    """Draw a table of Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows))


if __name__ == "__main__":
    main()
