"""Fifty changes of the kinds that people make: none is refused, and nothing is told of what measures."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from plumbline.core.files import atomic_write_text
from plumbline.operate.experiments import arm_evidence
from plumbline.operate.experiments.folder_arguments import open_baseline
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.experiment import BASELINE, ExperimentQuestion
from plumbline.verdict.own_trainer.snapshot import Arm
from plumbline.verdict.own_trainer.trainer_file import load
from tests.operate.experiments.trainer_folder import git
from tests.verdict.attacks.attacked_folder import edit

#: A line of a file -> what it becomes.
EDITS = {
    **{f"learning rate {rate}": ("train.py", "LR = given.lr", f"LR = {rate}") for rate in (0.01, 0.03, 0.3, 1.0)},
    **{
        f"schedule {name}": ("train.py", '"constant"', f'"{name}"')
        for name in ("cosine", "linear", "wsd", "exponential", "one cycle")
    },
    **{f"warmup of {steps}": ("train.py", "WARMUP = 0", f"WARMUP = {steps}") for steps in (1, 3)},
    **{
        f"optimizer {name}": ("train.py", '"sgd"', f'"{name}"')
        for name in ("adamw", "muon", "lion", "adafactor", "sgd with momentum")
    },
    **{f"weight decay {size}": ("train.py", "DECAY = 0.0", f"DECAY = {size}") for size in (0.01, 0.1)},
    **{f"dropout {rate}": ("train.py", "DROPOUT = 0.0", f"DROPOUT = {rate}") for rate in (0.1, 0.2)},
    **{f"dtype {name}": ("train.py", '"float32"', f'"{name}"') for name in ("bfloat16", "float16")},
    **{f"batch of {size}": ("train.py", "BATCH = 8", f"BATCH = {size}") for size in (4, 16)},
    **{f"order {name}": ("train.py", '"shuffled"', f'"{name}"') for name in ("sorted", "by length", "as it is")},
    **{f"initial scale {size}": ("train.py", "INIT = 0.02", f"INIT = {size}") for size in (0.01, 0.05)},
    **{f"clip {size}": ("train.py", "CLIP = 1.0", f"CLIP = {size}") for size in (0.5, 10.0)},
    **{f"width {size}": ("model.py", "WIDTH = 64", f"WIDTH = {size}") for size in (32, 128)},
    **{f"depth {size}": ("model.py", "DEPTH = 2", f"DEPTH = {size}") for size in (1, 4)},
    "more training text": ("shards/train.txt", "a b c", "a b c d e f"),
    "less training text": ("shards/train.txt", "a b c", "a b"),
    "a comment": ("train.py", "LR =", "# what the paper has\nLR ="),
    "a new dependency": ("train.py", "import argparse", "import argparse, statistics"),
    "more is printed": ("train.py", "weight, began", "print('words', len(words))\nweight, began"),
    "a log that is written": ("train.py", "weight, began", "open('train.log', 'w').write('begin')\nweight, began"),
    "a checkpoint that is written": ("train.py", "weight, began", "open('last.pt', 'w').write('x')\nweight, began"),
    "training text read twice": ("train.py", "weight, began", "open('shards/train.txt').read()\nweight, began"),
    "a temporary folder": ("train.py", "weight, began", "import tempfile; tempfile.mkdtemp()\nweight, began"),
}
#: New files, and what imports them.
NEW = {
    "a new module": {"layers.py": "GATED = True\n"},
    "a package": {"blocks/__init__.py": "", "blocks/types.py": "GATED = True\n"},
    "notes and a figure": {"notes.md": "# What was tried\n", "loss.svg": "<svg/>"},
    "a recipe": {"configs/wide.yaml": "width: 256\n"},
}
FLAGS = {"a flag": ("--lr", "0.2")}
NAMES = [*EDITS, *NEW, "a refactoring", *FLAGS]
#: Those that have a run too: what others change is a number in the same code.
RUN = ("schedule cosine", "a new dependency", "a checkpoint that is written", "a package", "a refactoring", "a flag")


@dataclass
class Tried:
    """A change, why it may not be run, and what the checks say of one run of it."""

    refusals: list[str]
    outcome: str
    answers: Mapping[str, every_check.CheckAnswer]


def change(folder: Path, name: str) -> None:
    if name in EDITS:
        edit(folder, *EDITS[name])
    for file, text in NEW.get(name, {}).items():
        (folder / file).parent.mkdir(exist_ok=True)
        atomic_write_text(folder / file, text)
        if file.endswith(".py") and text:
            edit(folder, "train.py", "import argparse", f"import {file[:-3].replace('/', '.')}\nimport argparse")
    if name == "a refactoring":
        text = (folder / "train.py").read_text()
        (folder / "training.py").write_text(text)
        (folder / "train.py").write_text("import training\n")


@pytest.fixture(scope="module")
def tried(set_up_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tried]:
    """Every change, some of them with a run."""
    folder = shutil.copytree(set_up_folder, tmp_path_factory.mktemp("honest") / "own")
    toml = folder / "plumbline.toml"
    toml.write_text(f"{toml.read_text()}\n[where]\nat_once = 2\n")
    baseline = open_baseline(load(folder))
    arms: dict[str, Arm] = {}
    for name in NAMES:
        change(folder, name)
        arms[name] = baseline.repository.candidate(FLAGS.get(name, ()), name)
        git(folder, "checkout", "-q", "--", ".")
        git(folder, "clean", "-fdq", "-e", "plumbline.toml")
    trainer = baseline.trainer()
    trainer.arms = {BASELINE: baseline.arm, **arms}
    seeds = [(BASELINE, 42), *((name, 1042) for name in RUN)]
    with baseline.folder.hold("a test"):
        runs = {run.arm: run for run in trainer.run(seeds)}
    question = ExperimentQuestion(name="x", baseline="baseline", candidate="x", metric="val_loss", higher=False)
    results = {}
    for name, arm in arms.items():
        evidence = arm_evidence.gather(baseline, arm, baseline.arm, question, "try")
        both = {each: {"1": trainer.evidence(runs[each])} for each in (BASELINE, name) if each in runs}
        refusals = arm_evidence.list_refusals(evidence, arm, baseline)
        evidence = replace(evidence, runs=both)
        compared = ComparedArms(evidence=evidence, baseline=BASELINE, candidate=name)
        results[name] = Tried(
            refusals, runs[name].outcome if name in RUN else "finished", every_check.examine(compared)
        )
    return results


@pytest.mark.parametrize("name", NAMES)
def test_no_check_refuses_an_honest_change(name: str, tried: dict[str, Tried]) -> None:
    result = tried[name]
    assert not result.refusals and result.outcome == "finished", result
    assert all(each.answer != Answer.REFUSES for each in result.answers.values()), result
    for check in ("fixed files", "arm files"):
        assert result.answers[check].answer == Answer.HOLDS, result.answers[check]


def test_they_are_fifty() -> None:
    assert len({*NAMES}) == len(NAMES) == 50
