"""A session of `plumbline try` itself, driven as a loop would: by the exit codes of examples/loop/decide.sh alone.

The trainer is examples/loop/train.py, whose noise is known. A proposal adds an entry to its CHANGES, which is what it
takes off the loss: nothing, or a gain that the driver does not look at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOP = Path(__file__).parents[1] / "examples" / "loop"
#: Spread of one run of the trainer.
SIGMA = 0.01
KEPT, NOT_KEPT = 0, (10, 11, 12)


@dataclass(frozen=True)
class DrivenSession:
    """How a session goes.

    Attributes:
        codes: the exit code of each proposal so far.
        changes: what train.py has now, as it was committed.
        runs: all that were made.
        seconds: of the whole session.
        ending: after the last proposal what `plumbline confirm` says, or why nothing was decided.
    """

    codes: list[int]
    changes: list[float]
    runs: int
    seconds: float
    ending: str = ""


def drive(folder: Path, gains: Sequence[float]) -> Iterator[DrivenSession]:
    """Go through a session in a new folder, and tell after each proposal how it went; `gains` in sigma.

    A command that ends without a decision is repeated once, as `decide.sh` asks for; the session ends where that is not
    enough.
    """
    environment = set_up(folder)
    began, codes = time.monotonic(), list[int]()
    for number, gain in enumerate(gains, start=1):
        done = propose(folder, number, gain * SIGMA, environment)
        codes.append(done.returncode)
        seconds = time.monotonic() - began
        bank = folder / ".plumbline/runs.jsonl"
        runs = bank.read_text().count("\n") if bank.exists() else 0
        decided, ending = done.returncode in (KEPT, *NOT_KEPT), ""
        if not decided:
            message = done.stderr.strip().splitlines() or ["no word"]
            ending = f" It ended there, without a decision: {message[-1]}"
        elif number == len(gains):
            ending = f" `plumbline confirm` afterwards: {claim(folder, environment)}"
        text = call(["git", "show", "HEAD:train.py"], folder, environment).stdout
        yield DrivenSession(list(codes), changes_of(text), runs, seconds, ending)
        if not decided:
            return


def claim(folder: Path, environment: dict[str, str]) -> str:
    """The sentence of a claim, whatever it says; or why there is none."""
    done = call(["plumbline", "confirm", "--json"], folder, environment, check=False)
    return str(json.loads(done.stdout)["sentence"]) if done.stdout else done.stderr.strip()


def set_up(folder: Path, decide: str = "") -> dict[str, str]:
    """Make a repository with the trainer as examples/loop/README.md says; returns an environment in which `plumbline`
    and `python` are this Python's. `decide`: the part of plumbline.toml that says what decides.
    """
    folder.mkdir(parents=True)
    for name in ("train.py", "decide.sh"):
        shutil.copy(LOOP / name, folder)
    (block,) = re.findall(r"```toml\n(.*?)```", (LOOP / "README.md").read_text(), flags=re.S)
    block = block.replace(".venv/bin/python", "python").replace('share = [".venv"]\n', "")
    (folder / "plumbline.toml").write_text(block + decide)
    own = folder.parent / "bin"
    own.mkdir(exist_ok=True)
    for name, arguments in (("plumbline", "-m plumbline"), ("python", "")):
        (own / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        (own / name).chmod(0o755)
    author = {f"GIT_{who}_{field}": f"{field}@loop" for who in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    paths = {"PATH": f"{own}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(LOOP.parents[1] / "src")}
    environment = {**os.environ, **author, **paths, "XDG_STATE_HOME": str(folder.parent / "state")}
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "start")):
        call(["git", *arguments], folder, environment)
    return environment


def propose(folder: Path, number: int, gain: float, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Propose a change, and have it decided."""
    script = folder / "train.py"
    text = script.read_text()
    entry = gain + 1e-12 * number  # no two proposals are the same text
    script.write_text(text.replace("CHANGES = [", f"CHANGES = [{entry!r}, ", 1))
    command = ["sh", "decide.sh", f"change {number}", *([] if number > 1 else ["--trust"])]
    done = call(command, folder, environment, check=False)
    if done.returncode in (KEPT, *NOT_KEPT):
        return done
    print(done.stderr, flush=True)
    return call(command, folder, environment, check=False)


def changes_of(text: str) -> list[float]:
    line = next(line for line in text.splitlines() if line.startswith("CHANGES = ["))
    return [float(word) for word in line.partition("[")[2].rstrip("]").split(",") if word.strip()]


def call(
    command: Sequence[str], folder: Path, environment: dict[str, str], *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=check)
