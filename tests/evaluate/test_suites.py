"""Suites: config files, any number of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import harness_tasks
from plumbline.specs import suites, tasks
from plumbline.specs.suites import suite
from plumbline.specs.tasks import Task, TaskWorkload

MINE = {"suite": "mine", "average": "mine_avg", "tasks": ["piqa", "last"]}
PIQA = {"task": "piqa", "harness": "piqa/piqa.yaml", "choices": 2, "metric": "acc_norm", "fields": {"goal": "text"}}
HUB = {"path": "a/b", "split": "test", "revision": "0" * 40, "licence": "MIT"}
LAST = PIQA | {"task": "last", "choices": None, "chance": 0, "metric": "acc"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with its own suite, and two tasks."""
    write(tmp_path, MINE)
    for content in (PIQA, LAST):
        write(tmp_path, content, str(content["task"]), "tasks")
    return tmp_path


def write(root: Path, content: dict, name: str = "mine", folder: str = "suites") -> None:
    path = root / "config" / folder / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def test_a_suite_is_a_file_that_names_tasks(root: Path) -> None:
    mine = suite("mine", root)
    assert (mine.name, mine.average, mine.task_names) == ("mine", "mine_avg", ("piqa", "last"))
    assert mine.task("piqa") == Task(
        name="piqa", harness="piqa/piqa.yaml", choices=2, chance=0.5, metric="acc_norm", fields={"goal": "text"}
    )
    assert mine.task("last").chance == 0
    assert suite("mine", root) is mine and hash(mine)
    write(root, MINE | {"suite": "second"}, "second")
    assert suites.list_suites(root) == ["mine", "second"]


def test_a_task_is_a_suite_of_itself(root: Path) -> None:
    alone = suite("piqa", root)
    assert (alone.name, alone.average, alone.task_names) == ("piqa", "piqa_avg", ("piqa",))
    write(root, MINE | {"suite": "piqa"}, "piqa")
    with pytest.raises(PlumblineError, match=r"'piqa'.*config/suites.*config/tasks"):
        suite("piqa", root)


def test_the_suite_of_the_transfer_study() -> None:
    climb12 = suite("climb12")
    assert len(climb12.tasks) == 12
    assert climb12.average == "climb_avg"
    assert {task.name: task.chance for task in climb12 if task.chance != 1 / (task.choices or 4)} == {
        "lambada_openai": 0,
        "truthfulqa_mc2": 0.5,
    }
    assert sum(task.workload.items for task in climb12 if task.workload) == 43476
    assert climb12.task("mmlu").workload == TaskWorkload(items=14042, passes_per_item=1, bytes_per_pass=420)


def test_every_task_of_every_suite_is_the_harness_s() -> None:
    for name in tasks.list_tasks():
        task = tasks.task(name)
        assert harness_tasks.configuration(task, harness_tasks.TASK_FOLDER / task.harness)["task"] == name
        assert task.subjects is None or list(harness_tasks.TASK_FOLDER.glob(task.subjects))


def test_the_primary_metric_is_acc_norm_where_the_harness_has_it() -> None:
    normalised = {task.name for task in suite("climb12") if task.primary_metric("acc_norm_where_defined") == "acc_norm"}
    assert normalised == {"piqa", "arc_challenge", "arc_easy", "hellaswag", "openbookqa"}
    assert {task.primary_metric("acc") for task in suite("climb12")} == {"acc"}


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(PlumblineError, match="suite 'climb13'; did you mean 'climb12'"):
        suite("climb13")
    with pytest.raises(PlumblineError, match=r"^study\.yaml:.*suite.*'x'"):
        suite("x", where="study.yaml: suite: ")
    with pytest.raises(PlumblineError, match=r"'climb12'.*no task 'hellaswg'.*'hellaswag'"):
        suite("climb12").task("hellaswg")
    with pytest.raises(PlumblineError, match="metric policy 'f1'"):
        suite("climb12").task("piqa").primary_metric("f1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "other"}, "suite: 'other' .* 'mine'"),
        ({"average": "piqa"}, "average: 'piqa' is also"),
        ({"tasks": []}, "tasks: "),
        ({"mean": "x"}, "top level: unknown key 'mean'"),
        ({"tasks": ["piqua"]}, "tasks: .* 'piqua'; .* 'piqa'.*config/tasks/piqua.yaml"),
    ],
)
def test_a_suite_that_cannot_be_meant_is_refused(root: Path, change: dict, message: str) -> None:
    write(root, MINE | change)
    with pytest.raises(PlumblineError, match=rf"mine\.yaml: {message}"):
        suite("mine", root)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "other"}, "task: 'other' .* 'piqa'"),
        ({"subject": "x"}, "top level: unknown key 'subject'; did you mean 'subjects'"),
        ({"harness": ""}, "harness: "),
        ({"choices": None}, "top level: 'chance' is missing"),
        ({"workload": {"items": 3}}, "workload: .(passes_per_item|bytes_per_pass). is missing"),
        ({"fields": {"goal": "txt"}}, r"fields\.goal: 'txt' .*; .* 'text'"),
        ({"fields": {"goal": []}}, r"fields\.goal: "),
        ({"right": "goals"}, r"right: 'goals' .* `fields`"),
        (
            {"few_shot": {"number": 1, "split": "test"}, "hub": HUB},
            r"few_shot\.split: 'test' is the split",
        ),
        (
            {"proxy": {"maker": "blank", "fields": {"gaol": "sentence"}}},
            r"proxy\.fields: 'goal' is missing; did you mean 'gaol'\?",
        ),
        ({"proxy": {"maker": "next_word", "fields": {"goal": "text"}}}, "proxy.maker: 'next_word'"),
        ({"released": {"fields": {"goal": {"of": "x", "us": 1}}}}, r"released\.fields\.goal: unknown key 'us'"),
    ],
)
def test_a_task_that_cannot_be_meant_is_refused(root: Path, change: dict, message: str) -> None:
    write(root, PIQA | change, "piqa", "tasks")
    with pytest.raises(PlumblineError, match=rf"piqa\.yaml: {message}"):
        suite("mine", root)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"harness": "piqa/pika.yaml"}, "harness: .* piqa/pika.yaml"),
        ({"harness": "gsm8k/gsm8k.yaml"}, "harness: gsm8k/gsm8k.yaml .*'generate_until'"),
        ({"harness": "winogrande/default.yaml"}, "metric: winogrande/default.yaml has no acc_norm"),
    ],
)
def test_a_task_that_does_not_go_with_the_harness_is_refused(change: dict, message: str) -> None:
    task = structs.replace(tasks.task("piqa"), **change)
    with pytest.raises(PlumblineError, match=rf"^config/tasks/piqa\.yaml: {message}"):
        harness_tasks.configuration(task, harness_tasks.TASK_FOLDER / task.harness)


def test_reading_a_suite_imports_no_torch() -> None:
    script = (
        "import sys; from plumbline.specs.suites import suite; suite('climb12');"
        "print(sorted({'torch', 'lm_eval', 'datasets', 'numpy'} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
