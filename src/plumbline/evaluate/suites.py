"""Suites of tasks as data: which harness task, which metric is primary, what guessing would score. Imports no torch.

A task names the harness's own YAML; prompts, choices, metrics and versions stay the harness's. What is written down
here is only what the harness does not say: chance level, the number of choices, and whether accuracy normalised by
answer length exists, which decides the primary metric (design/studies.md, "transfer").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from plumbline.cli import PlumblineError

MetricPolicy = Literal["acc_norm_where_defined", "acc"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of a suite.

    `yaml` is relative to the harness's task folder. `choices` is the number of answers to choose from, None where it
    varies or there is none. `chance` is the accuracy of guessing. `has_acc_norm` says that the harness also reports
    accuracy by log-probability per character. `subjects` is a glob of YAMLs, one a subject, that the task is a
    group of; the harness weights subjects by their size.
    """

    name: str
    yaml: str
    choices: int | None
    chance: float
    has_acc_norm: bool = False
    subjects: str | None = None

    def primary_metric(self, policy: MetricPolicy) -> str:
        """The metric that enters a suite's average under `policy`."""
        if policy not in get_args(MetricPolicy):
            raise PlumblineError(f"metric policy {policy!r} is none of {list(get_args(MetricPolicy))}")
        return "acc_norm" if self.has_acc_norm and policy == "acc_norm_where_defined" else "acc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """Tasks whose primary metrics are averaged, each with the same weight, under the name `average`."""

    name: str
    average: str
    tasks: tuple[str, ...]

    def __iter__(self):
        return (TASKS[name] for name in self.tasks)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(name="piqa", yaml="piqa/piqa.yaml", choices=2, chance=1 / 2, has_acc_norm=True),
        Task(name="arc_challenge", yaml="arc/arc_challenge.yaml", choices=4, chance=1 / 4, has_acc_norm=True),
        Task(name="arc_easy", yaml="arc/arc_easy.yaml", choices=4, chance=1 / 4, has_acc_norm=True),
        Task(name="hellaswag", yaml="hellaswag/hellaswag.yaml", choices=4, chance=1 / 4, has_acc_norm=True),
        Task(name="winogrande", yaml="winogrande/default.yaml", choices=2, chance=1 / 2),
        Task(name="social_iqa", yaml="siqa/siqa.yaml", choices=3, chance=1 / 3),
        Task(
            name="mmlu",
            yaml="mmlu/default/_default_template_yaml",
            choices=4,
            chance=1 / 4,
            subjects="mmlu/default/mmlu_*.yaml",
        ),
        Task(name="openbookqa", yaml="openbookqa/openbookqa.yaml", choices=4, chance=1 / 4, has_acc_norm=True),
        Task(name="boolq", yaml="super_glue/boolq/default.yaml", choices=2, chance=1 / 2),
        Task(name="race", yaml="race/race.yaml", choices=4, chance=1 / 4),
        Task(name="lambada_openai", yaml="lambada/lambada_openai.yaml", choices=None, chance=0.0),
        # The score is the probability mass on true answers; a guesser gets the mean share of true answers among an
        # item's choices, about one half in the published set.
        Task(name="truthfulqa_mc2", yaml="truthfulqa/truthfulqa_mc2.yaml", choices=None, chance=1 / 2),
    )
}

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="climb12",
            average="climb_avg",
            tasks=(
                "piqa",
                "arc_challenge",
                "arc_easy",
                "hellaswag",
                "winogrande",
                "social_iqa",
                "mmlu",
                "openbookqa",
                "boolq",
                "race",
                "lambada_openai",
                "truthfulqa_mc2",
            ),
        ),
    )
}


def suite(name: str) -> Suite:
    """The suite called `name`.

    Raises:
        PlumblineError: there is no such suite.
    """
    if name not in SUITES:
        raise PlumblineError(f"--suite: {name!r} is none of {sorted(SUITES)}")
    return SUITES[name]


def task(name: str) -> Task:
    """The task called `name`.

    Raises:
        PlumblineError: there is no such task.
    """
    if name not in TASKS:
        raise PlumblineError(f"unknown task {name!r}; known: {', '.join(sorted(TASKS))}")
    return TASKS[name]
