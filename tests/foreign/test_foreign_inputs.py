"""Inputs as other people have them, each with its right answer: a folder here, and its line of `answers.toml`.

A line has `run`, the command lines that are carried out in a copy of the folder, one after another: those of `plumbline`
and `python -m` in this process, others by a shell. The last one ends with `exit` (0 where the line does not say), the
others with 0; its console `says` words, and `lacks` others. The folder of a trainer becomes a git repository first.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests import run_in_process, warm_runs
from tests.kept_verdicts.carry_out import ENVIRONMENT, UNSET, run

HERE = Path(__file__).parent
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    f"{kind}/{name}": answer
    for kind, answers in tomllib.loads((HERE / "answers.toml").read_text()).items()
    for name, answer in answers.items()
}


@pytest.fixture(autouse=True, scope="module")
def warm() -> Iterator[None]:
    with warm_runs.start_warm():
        yield


def list_folders() -> Iterator[str]:
    for folder in HERE.glob("*/*/"):
        if any(path.is_file() for path in folder.rglob("*")) and folder.parent.name != "__pycache__":
            yield f"{folder.parent.name}/{folder.name}"


def test_each_folder_has_a_line_and_each_line_a_folder() -> None:
    assert sorted(list_folders()) == sorted(ANSWERS)
    for name, answer in ANSWERS.items():
        assert set(answer) <= {"run", "exit", "says", "lacks"} and answer["says"], name


def carry_out(step: str, folder: Path) -> tuple[int, str]:
    """Carry out a command line; its exit code and its console, in which lines are not folded."""
    if step.startswith("plumbline "):
        code, out, error = run(shlex.split(step))
    elif step.startswith("python -m "):
        module, *arguments = shlex.split(step)[2:]
        process = run_in_process.run(import_module(module).main, *arguments, cwd=folder)
        code, out, error = process.returncode, process.stdout, process.stderr
    else:
        shell = subprocess.run(["bash", "-c", step], cwd=folder, capture_output=True, text=True)
        code, out, error = shell.returncode, shell.stdout, shell.stderr
    return code, " ".join(f"{error} {out}".split())


@pytest.mark.parametrize("name", ANSWERS)
def test_a_foreign_input_gets_its_right_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, folder = ANSWERS[name], tmp_path / "here"
    shutil.copytree(HERE / name, folder)
    git = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
    path = {"PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"}
    for variable, value in (ENVIRONMENT | git | homes | path).items():
        monkeypatch.setenv(variable, value)
    for variable in UNSET:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(folder)
    if name.startswith("trainers/"):
        commit = "git init -q && git add -A && git -c commit.gpgsign=false commit -qm start"
        subprocess.run(commit, shell=True, check=True)
    *before, last = answer["run"]
    for step in before:
        code, console = carry_out(step, folder)
        assert code == 0, f"{step}\n{console}"
    code, console = carry_out(last, folder)
    lacking = [words for words in answer["says"] if words not in console]
    wrong = [words for words in answer.get("lacks", ()) if words in console]
    assert (code, lacking, wrong) == (answer.get("exit", 0), [], []), f"{last}\n{console}"
