"""Inputs of `plumbline gate`, `board` and `verify`: records with tiny logs, bundles, pages whose ledger was changed."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.kept_verdicts.carry_out import Edit, VerdictInput, remove, replace, write
from tests.kept_verdicts.numbers_inputs import BASE, LOSS, table

RULES = """\
name = "made-up table"
source = "made up"
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
[goal]
value = 3.28
alpha = 0.01
source = "made up"
[predecessor]
alpha = 0.01
slope = 0.000002
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
SUBMISSION_RULES = """\
name = "made-up submissions"
source = "made up"
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
#: How far the runs of a record are from its mean, in the order of their seeds.
OFFSETS = (0.0004, -0.0011, 0.0009, -0.0006, 0.0013)
CODE = [
    "import torch",
    "class Model(torch.nn.Module):",
    *(f"    weight_{each} = torch.nn.Linear({each}, {each})" for each in range(12)),
]


def log(seed: int, last: float, steps: int = 3000) -> str:
    """A run's log: its code, what it printed of itself, and an evaluation each 500 steps."""
    lines = [*CODE, "=" * 100, "Running PyTorch 2.11.0+cu128", f"Using seed={seed}", "Using rate=0.02", "=" * 100]
    for step in range(500, steps + 1, 500):
        value = last + (steps - step) * 4.5e-5 + (seed + step) % 7 * 1e-5 * (step < steps)
        lines.append(f"step:{step}/{steps} val_loss:{value:.5f} train_time:{step / 10:.1f}s")
    return "\n".join(lines) + "\n"


def board(means: Iterable[tuple[float, int, int]]) -> dict[str, str]:
    """A board by its records: of each the mean, how many runs, and how many steps."""
    files, rows = {"rules.toml": RULES}, ["# Records", "", "| # | Steps | Evidence | Log |", "|---|---|---|---|"]
    for number, (mean, count, steps) in enumerate(means, 1):
        seeds = [10 * number + each for each in range(count)]
        values = [round(mean + offset, 5) for offset in OFFSETS[:count]]
        for seed, value in zip(seeds, values, strict=True):
            files[f"records/results/{number}/{seed}.txt"] = log(seed, value, steps)
        printed = f"{sum(values) / count:.4f} (n={count})"
        rows.append(f"| {number} | {steps} | {printed} | [log](results/{number}/{seeds[0]}.txt) |")
    return files | {"records/README.md": "\n".join(rows) + "\n\nafter the table\n"}


EARLIER = ((3.2781, 3, 4000), (3.2779, 3, 3500), (3.2778, 4, 3500))
SOUND = board((*EARLIER, (3.2765, 5, 3000)))
GATE = "plumbline gate records --rules rules.toml"


def _submission() -> dict[str, str]:
    values = {42: 3.27612, 43: 3.27701, 44: 3.27588}
    files = {"rules.toml": SUBMISSION_RULES}
    for seed, value in values.items():
        lines = ["Hyperparameters:", "  rate: 0.02", f"  seed: {seed}", ""]
        lines += [f"step:{step}/3000 val_bpb:{value + (3000 - step) * 4.5e-5:.4f}" for step in (1000, 2000)]
        files[f"records/train_seed{seed}.log"] = "\n".join([*lines, f"final val_bpb:{value:.8f}"]) + "\n"
    results = {str(seed): {"val_bpb": value} for seed, value in values.items()}
    mean = round(sum(values.values()) / 3, 5)
    submission = {"name": "made up", "date": "2026-01-01", "val_bpb": mean, "seed_results": results}
    return files | {"records/submission.json": json.dumps(submission)}


def _bundle(folder: Path, name: str, files: dict[str, bytes]) -> None:
    """A bundle by hand: an archive that lists its files with their hashes, and the record of it."""
    graph = [
        {"@id": each, "contentSize": str(len(text)), "sha256": hashlib.sha256(text).hexdigest()}
        for each, text in files.items()
    ]
    crate = {"@context": "https://w3id.org/ro/crate/1.2/context", "@graph": graph}
    place = folder / name
    place.mkdir(parents=True)
    with tarfile.open(place / "bundle.tar.xz", "w:xz") as tar:
        for each, text in {"ro-crate-metadata.json": json.dumps(crate).encode(), **files}.items():
            entry = tarfile.TarInfo(f"bundle/{each}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    sha256 = hashlib.sha256((place / "bundle.tar.xz").read_bytes()).hexdigest()
    record = {"words": "an evening on a laptop", "products": 3, "commit": "9f0c4e1", "sha256": sha256}
    (place / "record.json").write_text(json.dumps(record))


def _bundles(folder: Path) -> None:
    for name in ("evening", "morning"):
        _bundle(folder / "records", name, {"runs/a/manifest.json": b"{}", "results/table.csv": b"a,b\n1,2\n"})
    with open(folder / "records/morning/bundle.tar.xz", "ab") as file:
        file.write(b"\0")


def _more_evaluations(folder: Path) -> None:
    for number, path in enumerate(sorted((folder / "records/results/4").iterdir())):
        more = (f"step:{2900 + 25 * each}/3000 val_loss:3.27{70 + number + each} train_time:1s\n" for each in range(4))
        path.write_text(path.read_text().replace("step:3000/3000", f"{''.join(more)}step:3000/3000"))


VERDICT = f"plumbline verdict own/t.csv {LOSS}"
DECIDED = {
    "sentence": "`mine` improves by 0.02.",
    "verdict": "keep",
    "p": 0.001,
    "at": "2026-01-02T03:04:05Z",
    "runs": [1, 2],
}

INPUTS = (
    VerdictInput(
        name="gate_keep",
        files=SOUND,
        steps=(GATE, f"{GATE} --json", f"{GATE} --record 2", f"{GATE} --all", f"{GATE} --all --json"),
    ),
    VerdictInput(name="gate_undecided", files=board((*EARLIER, (3.2796, 5, 3000))), steps=(GATE, f"{GATE} --json")),
    VerdictInput(name="gate_discard", files=board((*EARLIER, (3.2841, 5, 3000))), steps=(GATE, f"{GATE} --json")),
    VerdictInput(
        name="gate_crashed",
        files=SOUND,
        steps=(replace("records/results/4/40.txt", "3000/3000 val_loss:3.27690", "3000/3000 val_loss:nan"), GATE),
    ),
    VerdictInput(
        name="gate_faults",
        files=SOUND,
        steps=(
            replace("records/results/4/41.txt", "weight_7", "weight_8"),
            replace("records/results/4/42.txt", "rate=0.02", "rate=0.025"),
            replace("records/README.md", "(n=5)", "(n=6)"),
            f"{GATE} --json",
            GATE,
        ),
    ),
    VerdictInput(
        name="gate_chosen_step",
        files=SOUND,
        steps=(
            Edit("the logs of record 4 have evaluations at 2900, 2925, 2950 and 2975 too", _more_evaluations),
            replace("records/README.md", "| 4 | 3000 | 3.2767", "| 4 | 2950 | 3.2774"),
            replace("rules.toml", '[runs]\nsource = "made up"', '[runs]\nleast = 3\nchosen = "paid"\nsource = "x"'),
            GATE,
            f"{GATE} --json",
        ),
    ),
    VerdictInput(
        name="gate_submissions",
        files=_submission(),
        steps=(
            GATE,
            f"{GATE} --json",
            replace("records/submission.json", '"val_bpb": 3.27701', '"val_bpb": 3.25'),
            GATE,
            "plumbline board records --rules rules.toml --out board",
        ),
        shows=("board/board.json",),
    ),
    VerdictInput(
        name="gate_refused",
        files=SOUND,
        steps=(
            f"{GATE} --record 44",
            "plumbline gate records",
            "plumbline gate records --rules tarck3",
            "plumbline gate none --rules rules.toml --json",
            replace("rules.toml", "alpha = 0.01\nsource", "alpha = 0.7\nsource"),
            GATE,
            replace("rules.toml", "alpha = 0.7", "aplha = 0.01"),
            f"{GATE} --json",
        ),
    ),
    VerdictInput(
        name="board_of_records",
        files=SOUND,
        steps=(
            replace("records/README.md", "3.2780 (n=3)", "3.2771 (n=3)"),
            "plumbline board records --rules rules.toml --out board",
            "plumbline board records --rules rules.toml --out more --tries 20",
        ),
        shows=("board/board.json", "board/index.html", "board/*.svg", "more/progress.svg"),
    ),
    VerdictInput(
        name="board_of_verdicts",
        files={
            "own/t.csv": table({"base": BASE, "good": (3.262, 3.258, 3.266)}),
            "own/mine.json": json.dumps(DECIDED),
            "own/mine.md": "# mine\n",
            "own/other.json": "{}",
            "own/other.md": "# other\n",
        },
        steps=(
            VERDICT,
            "plumbline board own",
            replace("own/ledger.jsonl", '"name":"good"', '"name":"bad"'),
            "plumbline board own --out changed",
            "plumbline board none",
        ),
        shows=("board/board.json", "board/index.html", "board/*.svg", "changed/board.json"),
    ),
    VerdictInput(
        name="board_of_bundles",
        build=_bundles,
        steps=("plumbline board records",),
        shows=("board/board.json", "board/index.html"),
    ),
    VerdictInput(
        name="verify",
        build=_bundles,
        files={"own/t.csv": table({"base": BASE, "good": (3.262, 3.258, 3.266)}), "bare/notes.txt": "x"},
        steps=(
            VERDICT,
            "plumbline verify own",
            "plumbline verify own --json",
            replace("own/t.verdict.md", "improves", "is worse"),
            "plumbline verify own",
            replace("own/ledger.jsonl", '"name":"good"', '"name":"bad"'),
            "plumbline verify own/ledger.jsonl --json",
            remove("own/ledger.jsonl"),
            write("own/ledger.jsonl", ""),
            "plumbline verify own",
            "plumbline verify records",
            "plumbline verify bare",
            "plumbline verify none --json",
        ),
    ),
)
