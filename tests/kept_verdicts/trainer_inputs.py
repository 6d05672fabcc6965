"""Inputs of `plumbline try`, `confirm`, `noise`, `log` and `page` in a folder with a trainer of milliseconds.

The trainer is a shell script, whose start costs less than Python's, and whose numbers no processor changes. Its noise
follows from its seed. The folder is set up once a process, with three runs of the baseline, and copied. A run costs a
third of a second: where only numbers matter, made-up runs stand in.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.kept_verdicts.carry_out import Edit, VerdictInput, replace, run

#: Numbers are whole, in millionths.
TRAINER = """\
worse=0
while [ $# -gt 0 ]; do case $1 in --seed) seed=$2 ;; --worse) worse=$2 ;; esac; shift 2; done
GAIN=0
noise=$(( (seed * 41 % 101 - 50) * 200 ))
echo "step 10: train loss 3.$(( seed % 7 ))"
value=$(( 3000000 + worse - GAIN + noise ))
echo "val_loss: $(( value / 1000000 )).$(printf %06d $(( value % 1000000 )))"
"""
TOML = """\
[run]
command = "sh train.sh {flags}"
seed = "--seed {seed}"
[metric]
pattern = '^val_loss:\\s*(\\S+)'
direction = "lower"
[decide]
baseline_runs = 3
max_runs = 3
"""
#: A commit's hash is of its author and its date too.
AUTHOR = {f"GIT_{who}_{what}": "kept" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
AUTHOR |= {f"GIT_{who}_DATE": "1700000000 +0000" for who in ("AUTHOR", "COMMITTER")}


def _git(folder: Path, *arguments: str, text: str = "") -> None:
    environment = os.environ | AUTHOR | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, env=environment, input=text, text=True
    )


def _repository(folder: Path, trainer: str = TRAINER) -> None:
    (folder / "train.sh").write_text(trainer)
    (folder / "plumbline.toml").write_text(TOML)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "train.sh", "plumbline.toml")
    _git(folder, "commit", "-qm", "start")


@cache
def _set_up() -> Path:
    """The folder after `plumbline setup-trainer`."""
    folder = Path(tempfile.mkdtemp(prefix="kept_", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _repository(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        code, _, error = run(["plumbline", "setup-trainer", "--trust"])
    finally:
        os.chdir(before)
    assert code == 0, error
    return folder


def _copy(folder: Path) -> None:
    shutil.copytree(_set_up(), folder, dirs_exist_ok=True)


def _as_it_was(folder: Path) -> None:
    """A folder as an earlier version left it, with a keep and a discard: its commits, its bank, ledger and pages."""
    data = Path(__file__).with_name("data") / "folder"
    (folder / "plumbline.toml").write_text(TOML)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "fast-import", "--quiet", text=(data / "history.txt").read_text())
    _git(folder, "reset", "-q", "main")
    shutil.copytree(
        data, folder / ".plumbline", ignore=shutil.ignore_patterns("train.sh", "results.tsv", "history.txt")
    )
    for name in ("train.sh", "results.tsv"):
        shutil.copy(data / name, folder)


def _gain(millionths: object) -> Edit:
    return replace("train.sh", "GAIN=0", f"GAIN={millionths}")


def _stand_in_trainer(gain: Callable[[str, int], float]) -> dict[str, object]:
    """What stands in for the trainer where only its numbers matter: gains by the label of an arm, and the seed."""

    def run(self: Any, wanted: Sequence[tuple[str, int]]) -> Iterator[Any]:
        from plumbline.verdict.decision.experiment import FINISHED, ArmRun

        runs = self.folder.bank().runs
        for arm, seed in wanted:
            value = round(3 - gain(self.arms[arm].words, seed) + (seed * 41 % 101 - 50) / 5000, 6)
            yield ArmRun(
                arm=arm,
                seed=seed,
                value=value,
                outcome=FINISHED,
                seconds=2.5,
                run_id=self.run_id(arm, seed),
                fingerprint=runs[0].run.fingerprint if runs else "made up",
            )

    return {"plumbline.verdict.own_trainer.command_trainer.CommandTrainer.run": run}


def _on_folder(
    name: str, *steps: str | Edit, shows: tuple[str, ...] = (), gain: Callable[[str, int], float] | None = None
) -> VerdictInput:
    """An input on the folder that is set up; `gain`: of made-up runs."""
    stand_ins = {} if gain is None else _stand_in_trainer(gain)
    return VerdictInput(name=name, build=_copy, steps=steps, shows=shows, trains=True, stand_ins=stand_ins)


def _together(change: str, seed: int) -> float:
    gains = {"halve the batch": 0.1, "lr 3e-3": 0.13, "halve the batch + lr 3e-3": 0.13}
    return gains.get(change, 0.0)


INPUTS = (
    VerdictInput(
        name="try_set_up",
        build=_repository,
        trains=True,
        steps=(
            "plumbline noise",
            "plumbline log",
            "plumbline try -m worse -- --worse 1",
            "plumbline setup-trainer --trust",
            "plumbline setup-trainer 'sh train.sh' --metric train_loss",
            "plumbline noise --json",
            "plumbline try -n -m worse -- --worse 1",
            "plumbline try -n -m worse --json --session fwer --planned-tries 5 --minimum-gain 0.002 -- --worse 1",
        ),
    ),
    _on_folder(
        "try_keep_and_confirm",
        _gain(100000),
        "plumbline try --trust -m 'halve the batch'",
        "plumbline try -m 'the same again'",
        "plumbline noise",
        "plumbline page --json",
        "plumbline confirm --json",
        "plumbline try -m 'lr 3e-3' --json -- --worse -30000",
        "plumbline confirm",
        "plumbline log",
        "plumbline log --long",
        "plumbline log --json",
        "plumbline page 'halve the batch'",
        shows=("results.tsv", ".plumbline/pages/*.confirmed.*"),
        gain=_together,
    ),
    _on_folder(
        "try_discard",
        "plumbline try --trust -m worse --json -- --worse 50000",
        "plumbline try -m worse -- --worse 50000",
        "plumbline log --json",
        "plumbline log --forget worse",
        "plumbline confirm",
        shows=("results.tsv", ".plumbline/pages/*.md"),
    ),
    _on_folder(
        "try_undecided",
        _gain(1),
        "plumbline try --trust -m 'a little' --max-runs 2",
        "plumbline page 'a little'",
        "plumbline page 'a litle'",
        shows=("results.tsv",),
        gain=lambda change, seed: 0.02 * (change == "a little"),
    ),
    _on_folder(
        "try_crashed",
        replace("train.sh", "GAIN=0", "echo 'no such layer' >&2; exit 3"),
        "plumbline try --trust -m broken --json",
        "plumbline page",
        shows=("results.tsv",),
    ),
    _on_folder(
        "try_diverged",
        replace("train.sh", 'echo "val_loss: ', 'echo "val_loss: nan" #'),
        "plumbline try --trust -m broken",
        shows=("results.tsv",),
    ),
    _on_folder(
        "try_implausible",
        _gain(1),
        "plumbline try --trust -m 'too good'",
        "plumbline log --json",
        "plumbline page --json",
        "plumbline try --trust -m 'too good' --accept-implausible",
        shows=("results.tsv", ".plumbline/pages/*.md"),
        gain=lambda change, seed: change == "too good",
    ),
    _on_folder(
        "try_unconfirmed",
        _gain(1),
        "plumbline try --trust -m lucky --json",
        "plumbline try -m lucky",
        "plumbline try -m again --first-seed 9000",
        "plumbline log",
        shows=("results.tsv", ".plumbline/pages/*.md"),
        gain=lambda change, seed: 0.1 * (seed in (1042, 1043)),
    ),
    _on_folder(
        "try_paired",
        _gain(1),
        "plumbline try --trust -m pairs --paired --max-runs 2 --baseline HEAD",
        shows=(".plumbline/pages/*.md",),
        gain=lambda change, seed: (change == "pairs") * (0.1 + seed % 7 * 0.003),
    ),
    VerdictInput(
        name="try_without_a_baseline",
        build=lambda folder: _repository(folder, TRAINER.replace("GAIN=0", "GAIN=0; [ $seed -ne 43 ] || exit 7")),
        trains=True,
        steps=(
            "plumbline try --trust -m better --json -- --worse -100000",
            "plumbline try -m better -- --worse -100000",
            "plumbline log --json",
        ),
        shows=(".plumbline/pages/*.md",),
    ),
    VerdictInput(
        name="try_folder_of_before",
        build=_as_it_was,
        trains=True,
        steps=(
            "plumbline log",
            "plumbline log --json",
            "plumbline noise --json",
            "plumbline page",
            "plumbline page 1",
            "plumbline try --trust -m 'halve the batch'",
            "plumbline try -n -m 'another' -- --worse 3",
            "plumbline verify .plumbline",
            "plumbline log --forget 'halve the batch'",
            "plumbline log",
            replace(".plumbline/runs.jsonl", '"schema":1', '"schema":3'),
            "plumbline noise",
            replace(".plumbline/session.json", '"first_seed": 42', '"first_seed": "a"'),
            "plumbline confirm --json",
        ),
        shows=("results.tsv",),
    ),
    VerdictInput(
        name="try_usage",
        build=_repository,
        steps=(
            "plumbline try",
            "plumbline try qknorm -m x",
            "plumbline try --trust -m x",
            "plumbline try --trust -m x --json --baseline nosuch",
            "plumbline try -m x --quick",
            "plumbline try -m x --lr 3",
            "plumbline try 'twice the lr'",
            "plumbline try -m x --alpha 0.7 -- --worse 1",
            "plumbline confirm --json",
            "plumbline page",
            replace("plumbline.toml", "max_runs", "max_run"),
            "plumbline try -m x -- --worse 1",
        ),
    ),
)
