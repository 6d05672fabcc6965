"""What a set-up names as fixed: what measures and nothing that a change is made in."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.operate.experiments import setup_trainer
from plumbline.operate.experiments.guess_fixed_files import guess
from plumbline.verdict.own_trainer.trainer_file import load
from tests import run_in_process
from tests.operate.experiments.trainer_folder import git, repository_of

TRAINS = """\
import argparse, random
import model
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
open("data/train.txt").read()
open("state", "w").write(str(random.Random(given.seed).gauss(3, 0.01)))
"""
MEASURES = """\
import model, scoring
open("data/held.txt").read()
print("val_loss:", open("state").read())
"""


def test_program_that_measures_is_fixed_with_what_it_alone_reads(tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", TRAINS)
    for name, text in (("evaluate.py", MEASURES), ("model.py", ""), ("scoring.py", "")):
        (folder / name).write_text(text)
    for name in ("train.txt", "held.txt"):
        (folder / "data" / name).write_text("text")
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "measures")
    command = "python train.py {flags} && python evaluate.py"
    process = run_in_process.run(setup_trainer.main, command, "--share", "data", cwd=folder)
    assert process.returncode == 0, process.stderr
    assert load(folder).metric.fixed == ("evaluate.py", "scoring.py", "data/held.txt")
    assert "evaluate.py measures, and reads" in process.stderr
    assert "(fixed = [] says that none is)" in process.stderr


@pytest.mark.parametrize(
    ("readers", "written", "patterns"),
    [
        ({"train.py": ["data/train.bin", "data/val.bin", "model.py"]}, [], ["data/val.bin"]),
        ({"train.py": ["evaluate.py", "model.py", "evaluation.md"]}, ["evaluation.md"], ["evaluate.py"]),
        ({"evaluate.py": ["model.py", "data/x.bin"]}, [], []),  # one program that trains and measures
        ({"train.py": ["data/values.bin", "latest.py", "interval.py"]}, [], []),
        ({"train.py": [f"d/val_{n}" for n in range(9)]}, [], ["d/val_*"]),
        ({"train.py": ["__pycache__/evaluate.pyc", ".cache/val"]}, [], []),
    ],
    ids=["data", "a module", "one program", "like names", "many", "caches"],
)
def test_where_one_program_does_all_the_name_alone_tells(
    readers: dict[str, list[str]], written: list[str], patterns: list[str]
) -> None:
    assert guess(readers, written, "")[0] == patterns
    below = {f"in/{program}": [f"in/{file}" for file in files] for program, files in readers.items()}
    assert guess(below, [f"in/{file}" for file in written], "in")[0] == patterns
