"""Made-up record folders with one fault each, and sound ones: which faults does `plumbline gate` find?

    python -m benchmarks.gate_faults        # twenty seconds

120 folders by one seed: 60 with a fault of eight kinds and 60 without one, half as a README's table with logs that hold
their code, half as submission.json files. Runs are normal with one sigma. What is sound varies as real folders do: many
runs in one file, an output next to its log, line ends of another system, a seed in the code, a linked folder or README.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plumbline.core.files import atomic_write_text
from plumbline.verdict.formatting import write_grid
from plumbline.verdict.gate.board_reading import find_record, read_board
from plumbline.verdict.gate.judgement import Judgement, judge_record
from plumbline.verdict.gate.rules import read_rules

SEED, FOLDERS, SIGMA, GOAL = 31, 60, 0.0012, 3.28
KINDS = ("headline", "code", "duplicate", "configuration", "stop step", "diverged", "truncated", "metric")
#: The kinds under which the gate may name what was planted.
NAMES = {kind: {kind} for kind in KINDS} | {
    "headline": {"headline", "last digit"},
    "stop step": {"stop step", "truncated", "paid"},
}
TABLE_RULES = """
name = "made-up table"
source = "benchmarks/gate_faults.py"
metric = "val_loss"
[table]
page = "README.md"
number = "#"
headline = "Evidence"
headline_form = "{value} (n={n})"
step = "Steps"
log = "Log"
[log]
lines = ["step:{step}/{steps} val_loss:{value}"]
others = ["val_ema_loss:{value}"]
[goal]
value = 3.28
alpha = 0.01
source = "made up"
[runs]
source = "made up"
[stopping]
chosen = "paid"
source = "made up"
[same]
code_in_log = true
source = "made up"
"""
SUBMISSION_RULES = """
name = "made-up submissions"
source = "benchmarks/gate_faults.py"
metric = "val_bpb"
[submissions]
file = "submission.json"
headline = ["val_bpb"]
seeds = ["seed_results"]
[log]
lines = ["step:{step}/{steps} val_bpb:{value}", "val_bpb:{value}"]
[goal]
value = 3.28
alpha = 0.01
source = "made up"
[runs]
source = "made up"
[stopping]
source = "made up"
[same]
source = "made up"
"""
CODE = ["import torch", "from torch import nn", "", "class Model(nn.Module):", "    pass", ""] + [
    f"weight_{number} = nn.Linear({number}, {number})" for number in range(40)
]


@dataclass
class Run:
    """A made-up run: its evaluations by step, and what its log says next to them."""

    seed: int
    values: dict[int, float]
    steps: int
    rate: float = 0.02
    code: list[str] = field(default_factory=lambda: list(CODE))
    metric: str = "val_loss"
    beside: float | None = None

    def log(self) -> str:
        lines = [*self.code, "=" * 100, "Running PyTorch 2.11.0+cu128", f"Using seed={self.seed}"]
        lines += [f"Using rate={self.rate}", "=" * 100]
        for step, value in self.values.items():
            more = f" val_ema_loss:{value + self.beside:.5f}" if self.beside is not None else ""
            lines.append(f"step:{step}/{self.steps} {self.metric}:{value:.5f}{more} train_time:{step / 10:.1f}s")
        return "\n".join(lines) + "\n"

    def submission_log(self) -> str:
        lines = ["Hyperparameters:", f"  rate: {self.rate}", f"  seed: {self.seed}", "  layers: 9", ""]
        lines += [f"step:{step}/{self.steps} val_bpb:{value:.4f}" for step, value in list(self.values.items())[:-1]]
        last = list(self.values.values())[-1]
        before = last + (0.02 if self.beside is None else self.beside)
        return "\n".join([*lines, f"before_rounding val_bpb:{before:.8f}", f"final val_bpb:{last:.8f}"]) + "\n"


def make_runs(
    rng: np.random.Generator, n: int, *, mean: float = 3.276, steps: int = 3000, close: bool = False
) -> list[Run]:
    """Runs of one configuration; `close`: evaluated more closely near the end."""
    at = [*range(250, steps + 1, 250)]
    if close:
        at = sorted({*at, *range(steps - 100, steps + 1, 25)})
    runs = []
    for seed in rng.choice(500, n, replace=False):
        shift = rng.normal(0, SIGMA)
        curve = {step: mean + shift + (steps - step) * 4.5e-5 + rng.normal(0, 1e-4) for step in at}
        runs.append(Run(int(seed), {step: round(value, 5) for step, value in curve.items()}, steps))
    return runs


def mean_at(runs: list[Run], step: int) -> float:
    return float(np.mean([run.values[step] for run in runs]))


def write_table(folder: Path, runs: list[Run], printed: str, step: int, n: int, rng: np.random.Generator) -> None:
    """A board of three sound records and this one, the last."""
    rows = ["# Records", "", "| # | Steps | Evidence | Log |", "|---|---|---|---|"]
    for number in range(1, 4):
        others = make_runs(rng, 5, mean=3.277)
        place = folder / f"results/{number}"
        place.mkdir(parents=True)
        for run in others:
            (place / f"{run.seed}.txt").write_text(run.log())
        rows.append(
            f"| {number} | 3000 | {mean_at(others, 3000):.4f} (n=5) | [log](results/{number}/{others[0].seed}.txt) |"
        )
    place = folder / "results/new"
    place.mkdir(parents=True)
    for run in runs:
        (place / f"log_{run.seed}.txt").write_text(run.log())
    rows.append(f"| 4 | {step}(!) | {printed} (n={n}) | [log](results/new/log_{runs[0].seed}.txt) |")
    (folder / "README.md").write_text("\n".join(rows) + "\n\nafter the table\n")


def write_submission(folder: Path, runs: list[Run], headline: float, printed: dict[int, float]) -> None:
    for run in runs:
        (folder / f"train_seed{run.seed}.log").write_text(run.submission_log())
    results = {str(seed): {"val_bpb": round(value, 6)} for seed, value in printed.items()}
    submission = {"name": "made up", "date": "2026-01-01", "val_bpb": round(headline, 5), "seed_results": results}
    (folder / "submission.json").write_text(json.dumps(submission))


def faulty_table(folder: Path, kind: str, rng: np.random.Generator) -> None:
    """A record of a table with one fault."""
    n, step = int(rng.integers(3, 9)), 3000
    runs = make_runs(rng, n, close=kind == "stop step")
    claimed, last = n, runs[-1]
    printed = mean_at(runs, step)
    if kind == "headline":
        printed -= float(rng.choice([1.6e-4, 3e-4, 1e-3]))
    elif kind == "code":
        at = int(rng.integers(6, len(CODE)))
        last.code = [line.replace("Linear", "Wider") if number == at else line for number, line in enumerate(CODE)]
    elif kind == "duplicate":
        claimed += 1
        printed = float(np.mean([*(run.values[step] for run in runs), last.values[step]]))
    elif kind == "configuration":
        last.rate = 0.025
    elif kind == "stop step":
        if rng.random() < 0.5:
            step = 2950  # of all runs, after looking
            printed = mean_at(runs, step)
        else:  # of each run its own
            for run in runs[1:]:
                end = int(rng.choice([2925, 2950, 2975]))
                run.values = {at: value for at, value in run.values.items() if at <= end}
            printed = float(np.mean([list(run.values.values())[-1] for run in runs]))
    elif kind == "diverged":
        last.values[int(rng.choice([1500, 3000]))] = float(rng.choice([np.nan, np.inf]))
        printed = float(np.mean([run.values[step] for run in runs[:-1]]))
    elif kind == "metric":
        if rng.random() < 0.5:
            last.metric = "ema val_loss"
            last.values = {at: value - 0.004 for at, value in last.values.items()}
            printed = mean_at(runs, step)
        else:
            for run in runs:
                run.beside = -0.004
            printed -= 0.004
    write_table(folder, runs, f"{printed:.4f}", step, claimed, rng)
    place = folder / "results/new"
    if kind == "duplicate":
        text = last.log().replace(f"seed={last.seed}", "seed=777").replace(".1s", ".2s")
        (place / "log_777.txt").write_text(text)
    if kind == "metric" and last.metric != "val_loss":
        path = place / f"log_{last.seed}.txt"
        lines = [
            f"ema {line.replace('ema val_loss', 'val_loss')}" if "ema val" in line else line
            for line in last.log().split("\n")
        ]
        path.write_text("\n".join(lines))
    if kind == "truncated":
        path = place / f"log_{last.seed}.txt"
        text = path.read_text()
        path.write_text(text[: int(len(text) - rng.integers(70, 250))])


def faulty_submission(folder: Path, kind: str, rng: np.random.Generator) -> None:
    """A submission with one fault."""
    runs = make_runs(rng, int(rng.integers(3, 6)))
    last, other = runs[-1], runs[0]
    printed = {run.seed: run.values[3000] for run in runs}
    headline = float(np.mean(list(printed.values())))
    if kind == "headline":
        headline = min(printed.values()) if rng.random() < 0.5 else headline - 3e-5
    elif kind == "duplicate":
        last.values, printed[last.seed] = other.values, other.values[3000]
        headline = float(np.mean(list(printed.values())))
    elif kind == "configuration":
        last.rate = 0.025
    elif kind == "diverged":
        last.values[3000] = np.nan
        del printed[last.seed]
    elif kind == "metric":
        printed[last.seed] += 0.02
        headline = float(np.mean(list(printed.values())))
    write_submission(folder, runs, headline, printed)
    path = folder / f"train_seed{last.seed}.log"
    if kind == "truncated":
        path.write_text("\n".join(path.read_text().split("\n")[:-4]) + "\nstep:27")
    if kind == "diverged":
        submission = json.loads((folder / "submission.json").read_text())
        submission["seed_results"][str(last.seed)] = {"val_bpb": round(headline, 6)}
        (folder / "submission.json").write_text(json.dumps(submission))


def sound(folder: Path, table: bool, rng: np.random.Generator) -> None:
    """A record without a fault, in one of the ways in which real ones differ."""
    runs = make_runs(rng, int(rng.integers(3, 9)), close=bool(rng.random() < 0.3))
    if not table:
        printed = {run.seed: run.values[3000] for run in runs}
        write_submission(folder, runs, float(np.mean(list(printed.values()))), printed)
        if rng.random() < 0.5:  # the output of one run again, under another name
            (folder / "train.log").write_text(runs[0].submission_log())
        return
    way = int(rng.integers(6))
    if way == 1:  # a seed in the code
        for run in runs:
            run.code = [*CODE, f"seed = {run.seed}"]
    write_table(folder, runs, f"{mean_at(runs, 3000):.4f}", 3000, len(runs), rng)
    place, page = folder / "results/new", folder / "README.md"
    first = place / f"log_{runs[0].seed}.txt"
    if way == 2:  # all runs in one file
        text = runs[0].log() + "".join(run.log().rpartition("=" * 100 + "\n")[2] for run in runs[1:])
        for path in place.iterdir():
            path.unlink()
        first.write_text(text)
    elif way == 3:  # what the runs printed, next to their logs
        for run in runs:
            (place / f"stdout_{run.seed}.txt").write_text(run.log().rpartition("=" * 100 + "\n")[2])
    elif way == 4:  # another system's line ends
        for path in place.iterdir():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    elif way == 5:  # the row links to a page
        (place / "README.md").write_text("# What was done\n")
        page.write_text(page.read_text().replace(f"results/new/{first.name}", "results/new/README.md"))


def judge_folder(folder: Path, table: bool) -> Judgement:
    """What the gate says of a made-up record."""
    rules_file = folder.parent / f"{folder.name}.toml"
    rules_file.write_text(TABLE_RULES if table else SUBMISSION_RULES)
    rules = read_rules(str(rules_file))
    board = read_board(folder, rules)
    return judge_record(find_record(board, None), board, rules)


def kinds_found(judgement: Judgement) -> set[str]:
    kinds = {fault.kind for fault in judgement.evidence.faults}
    return kinds | ({"paid"} if judgement.tries > 1 else set())


def all_folders(root: Path, seed: int = SEED) -> list[tuple[str, bool, set[str]]]:
    """Make and judge all folders: what was planted (nothing in a sound one), whether as a table, what was found."""
    rng, results = np.random.default_rng(seed), []
    for number in range(2 * FOLDERS):
        kind = KINDS[number // 2 % len(KINDS)] if number < FOLDERS else ""
        # A submission holds no code, and no step that could be chosen.
        table = number % 2 == 0 or kind in ("code", "stop step")
        folder = root / f"record{number}"
        folder.mkdir()
        if kind:
            (faulty_table if table else faulty_submission)(folder, kind, rng)
        else:
            sound(folder, table, rng)
        results.append((kind, table, kinds_found(judge_folder(folder, table))))
    return results


def main() -> None:
    """Write what was found."""
    with tempfile.TemporaryDirectory() as folder:
        results = all_folders(Path(folder))
    rows = []
    for kind in KINDS:
        names_found = [names for planted, _, names in results if planted == kind]
        name_count = sum(bool(names & NAMES[kind]) for names in names_found)
        rows.append([kind, str(len(names_found)), str(sum(map(bool, names_found))), str(name_count)])
    clear = [names - {"paid"} for planted, _, names in results if not planted]
    text = "\n\n".join(
        [
            "# Made-up record folders: which faults are found",
            f"{FOLDERS} folders with one fault, {FOLDERS} without, by seed {SEED}. `python -m benchmarks.gate_faults`",
            write_grid(["planted", "folders", "found", "named as that kind"], rows),
            f"Sound folders: {len(clear)}; with a fault that is none: {sum(map(bool, clear))}.",
            "A step that was chosen after looking is found as a p that is paid for, or as runs that end before it.\n",
        ]
    )
    atomic_write_text(Path(__file__).with_suffix(".md"), text)
    print(text)


if __name__ == "__main__":
    main()
