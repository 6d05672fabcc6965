"""Suites: config files, any number of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import harness
from plumbline.specs import suites
from plumbline.specs.suites import Task, TaskSize, suite

MINE = {
    "suite": "mine",
    "average": "mine_avg",
    "tasks": {
        "piqa": {"yaml": "piqa/piqa.yaml", "choices": 2, "has_acc_norm": True},
        "lambada_openai": {"yaml": "lambada/lambada_openai.yaml", "choices": None, "chance": 0},
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a suite of its own."""
    write(tmp_path, MINE)
    return tmp_path


def write(root: Path, content: dict, name: str = "mine") -> None:
    path = root / "config" / "suites" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def test_a_suite_is_a_file(root: Path) -> None:
    mine = suite("mine", root)
    assert (mine.name, mine.average, mine.task_names) == ("mine", "mine_avg", ("piqa", "lambada_openai"))
    assert mine.task("piqa") == Task(name="piqa", yaml="piqa/piqa.yaml", choices=2, chance=0.5, has_acc_norm=True)
    assert mine.task("lambada_openai").chance == 0
    assert mine.task("piqa").size is None
    assert suite("mine", root) is mine
    write(root, MINE | {"suite": "second"}, "second")
    assert suites.known(root) == ["mine", "second"]


def test_the_suite_of_the_transfer_study() -> None:
    climb12 = suite("climb12")
    assert len(climb12.tasks) == 12
    assert climb12.average == "climb_avg"
    assert {task.name: task.chance for task in climb12 if task.chance != 1 / (task.choices or 4)} == {
        "lambada_openai": 0,
        "truthfulqa_mc2": 0.5,
    }
    assert sum(task.size.items for task in climb12 if task.size) == 43476
    assert climb12.task("mmlu").size == TaskSize(items=14042, rows=1, text=420)


def test_every_task_of_every_suite_is_the_harness_s() -> None:
    for name in suites.known():
        for task in suite(name):
            assert (harness.TASK_FOLDER / task.yaml).is_file()
            assert task.subjects is None or list(harness.TASK_FOLDER.glob(task.subjects))


def test_the_primary_metric_is_acc_norm_where_the_harness_has_it() -> None:
    normalised = {task.name for task in suite("climb12") if task.primary_metric("acc_norm_where_defined") == "acc_norm"}
    assert normalised == {"piqa", "arc_challenge", "arc_easy", "hellaswag", "openbookqa"}
    assert {task.primary_metric("acc") for task in suite("climb12")} == {"acc"}


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(PlumblineError, match="no suite 'climb13'; did you mean 'climb12'"):
        suite("climb13")
    with pytest.raises(PlumblineError, match=r"^study\.yaml: suite: there is no suite 'x'"):
        suite("x", where="study.yaml: suite: ")
    with pytest.raises(PlumblineError, match="'climb12' has no task 'hellaswg'; did you mean 'hellaswag'"):
        suite("climb12").task("hellaswg")
    with pytest.raises(PlumblineError, match="metric policy 'f1'"):
        suite("climb12").task("piqa").primary_metric("f1")  # type: ignore[arg-type]


PIQA = MINE["tasks"]["piqa"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "other"}, "suite: 'other' must be the file's name, 'mine'"),
        ({"average": "piqa"}, "average: 'piqa' is also the name of a task"),
        ({"tasks": {}}, "tasks: "),
        ({"mean": "x"}, "top level: unknown key 'mean'"),
        ({"tasks": {"piqa": PIQA | {"subject": "x"}}}, r"tasks\.piqa: unknown key 'subject'; did you mean 'subjects'"),
        ({"tasks": {"piqa": {"choices": 2}}}, r"tasks\.piqa: 'yaml' is a required property; add it"),
        ({"tasks": {"piqa": PIQA | {"choices": None}}}, r"tasks\.piqa: 'chance' is a required property; add it"),
        (
            {"tasks": {"piqa": PIQA | {"size": {"items": 3}}}},
            r"tasks\.piqa\.size: '(rows|text)' is a required property",
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(root: Path, change: dict, message: str) -> None:
    write(root, MINE | change)
    with pytest.raises(PlumblineError, match=rf"mine\.yaml: {message}"):
        suite("mine", root)


def test_reading_a_suite_imports_no_torch() -> None:
    script = (
        "import sys; from plumbline.specs.suites import suite; suite('climb12');"
        "print(sorted({'torch', 'lm_eval', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
