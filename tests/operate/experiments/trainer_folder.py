"""A folder with a trainer of milliseconds, and what a test does with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from plumbline.core.append_only_log import CHAIN, AppendOnlyLog
from plumbline.operate.experiments.__main__ import main
from tests import run_in_process

#: It reads its flags itself: argparse takes longer to import than all else that it does.
TRAINER = """\
import random, sys
flags = {"--seed": 0, "--worse": 0} | dict(zip(sys.argv[1::2], sys.argv[2::2]))
seed, worse = int(flags["--seed"]), float(flags["--worse"])
open("data/input.txt").read()
GAIN = 0.0
print(f"step 10: train loss {3.5 - GAIN}")
print(f"val_loss: {3 + worse - GAIN + random.Random(seed).gauss(0, 0.01):.6f}")
"""


Done = subprocess.CompletedProcess[str]


def git(folder: Path, *options: str) -> str:
    return subprocess.run(["git", *options], cwd=folder, check=True, capture_output=True, text=True).stdout


def repository_of(folder: Path, script: str) -> Path:
    """A repository with a script, and with data that git ignores."""
    (folder / "data").mkdir(parents=True)
    (folder / "data/input.txt").write_text("text")
    (folder / ".gitignore").write_text("data/\n")
    (folder / "train.py").write_text(script)
    git(folder, "init", "-q")
    for key, value in (("user.name", "a"), ("user.email", "a@b")):
        git(folder, "config", key, value)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "start")
    return folder


def plumbline(folder: Path, *args: object) -> Done:
    return run_in_process.run(main, *args, cwd=folder)


def change(folder: Path, edit: str = "GAIN = 0.2", was: str = "GAIN = 0.0") -> None:
    text = (folder / "train.py").read_text()
    assert was in text
    (folder / "train.py").write_text(text.replace(was, edit))


def banked(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ".plumbline/runs.jsonl").read_text().splitlines()]


def write_bank(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write the bank anew with other runs in it, as if they had been made so."""
    path = folder / ".plumbline/runs.jsonl"
    path.unlink()
    records = [{key: value for key, value in row.items() if key not in CHAIN} for row in rows]
    with AppendOnlyLog(path=path, noun="bank", remedy="", require=dict).append(lambda _: records):
        pass
