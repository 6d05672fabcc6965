"""A session of `plumbline try` itself, driven as a loop would: by the exit codes of examples/loop/decide.sh alone.

The trainer is examples/loop/train.py, whose noise is known. A proposal adds an entry to its CHANGES, which is what it
takes off the loss: nothing, or a gain that the driver does not look at.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOP = Path(__file__).parents[1] / "examples" / "loop"
#: Spread of one run of the trainer.
SIGMA = 0.01
KEPT, NOT_KEPT = 0, (10, 11, 12)
TOML = r"""
[run]
command = "python train.py {flags}"
seed = "inject"
timeout = "1m"
[metric]
pattern = '^val_bpb:\s+(\S+)'
direction = "lower"
"""


@dataclass(frozen=True)
class Driven:
    """How a session went.

    Attributes:
        codes: the exit code of each proposal.
        changes: what train.py has at the end, as it was committed.
        runs: all that were made before the claim.
        seconds: of the whole session.
        claim: the sentence of `plumbline confirm` afterwards.
    """

    codes: list[int]
    changes: list[float]
    runs: int
    seconds: float
    claim: str


def drive(folder: Path, gains: Sequence[float]) -> Driven:
    """Go through a session in a new folder; `gains` in sigma."""
    environment = set_up(folder)
    began = time.monotonic()
    codes = [proposed(folder, number, gain * SIGMA, environment) for number, gain in enumerate(gains, start=1)]
    seconds = time.monotonic() - began
    runs = (folder / ".plumbline/runs.jsonl").read_text().count("\n")
    claimed = json.loads(call(["plumbline", "confirm", "--json"], folder, environment).stdout)
    text = call(["git", "show", "HEAD:train.py"], folder, environment).stdout
    return Driven(codes, changes_of(text), runs, seconds, claimed["sentence"])


def set_up(folder: Path) -> dict[str, str]:
    """Make a repository with the trainer, and an environment in which `plumbline` and `python` are this Python's."""
    folder.mkdir(parents=True)
    for name in ("train.py", "decide.sh"):
        shutil.copy(LOOP / name, folder)
    (folder / "plumbline.toml").write_text(TOML.lstrip())
    own = folder.parent / "bin"
    own.mkdir(exist_ok=True)
    for name, words in (("plumbline", "-m plumbline"), ("python", "")):
        (own / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (own / name).chmod(0o755)
    author = {f"GIT_{who}_{what}": f"{what}@loop" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{own}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **author, "PATH": path, "XDG_STATE_HOME": str(folder.parent / "state")}
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "start")):
        call(["git", *words], folder, environment)
    return environment


def proposed(folder: Path, number: int, gain: float, environment: dict[str, str]) -> int:
    """Propose a change, and have it decided."""
    script = folder / "train.py"
    text = script.read_text()
    entry = gain + 1e-12 * number  # no two proposals are the same text
    script.write_text(text.replace("CHANGES = [", f"CHANGES = [{entry!r}, ", 1))
    trust = [] if number > 1 else ["--trust"]
    done = call(["sh", "decide.sh", f"change {number}", *trust], folder, environment, check=False)
    if done.returncode not in (KEPT, *NOT_KEPT):
        raise SystemExit(f"proposal {number} ended with {done.returncode}:\n{done.stderr}")
    return done.returncode


def changes_of(text: str) -> list[float]:
    line = next(line for line in text.splitlines() if line.startswith("CHANGES = ["))
    return [float(word) for word in line.partition("[")[2].rstrip("]").split(",") if word.strip()]


def call(
    words: Sequence[str], folder: Path, environment: dict[str, str], *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=check)
