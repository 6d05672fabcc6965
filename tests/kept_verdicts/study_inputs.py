"""Inputs of `plumbline try METHOD` and what follows it, in a project whose runs are made up: nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kept_verdicts.carry_out import Show, VerdictInput, words_of_page

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = 5.0


def _project(folder: Path) -> None:
    for name in ("studies", "config", "workflow", "profiles", "Snakefile"):
        (folder / name).symlink_to(REPOSITORY / name)


def _runs(gains: Mapping[str, float | None]) -> Callable[..., Iterator[Any]]:
    """What runs the arms: `BASE` less the arm's gain, and noise by the seed; None is an arm that diverges."""

    def run(self: Any, wanted: Sequence[tuple[str, int]]) -> Iterator[Any]:
        from plumbline.verdict.decision.experiment import DIVERGED, FINISHED, ArmRun

        for arm, seed in wanted:
            gain = gains.get(arm, 0.0)
            value = None if gain is None else round(BASE - gain + (seed * 41 % 101 - 50) / 5000, 4)
            yield ArmRun(
                arm=arm,
                seed=seed,
                value=value,
                outcome=DIVERGED if value is None else FINISHED,
                seconds=2.5,
                run_id=self.run_id(arm, seed),
                why="gradient norm is not finite" if value is None else "",
                fingerprint="made up",
            )

    return run


def _stand_ins(gains: Mapping[str, float | None]) -> dict[str, object]:
    from plumbline.operate.preflight.method_checks.finished_run_checks import TrainedCheck

    check = TrainedCheck(key="", text="held at 128 tokens")
    return {
        "plumbline.project.arms.StudyArms.run": _runs(gains),
        "plumbline.operate.experiments.study_verbs.StudySource.check": lambda self, question: ([], {}),
        "plumbline.operate.preflight.method_checks.finished_run_checks.check_arm": lambda *_: check,
    }


def _report(folder: Path) -> str:
    """The text of the report's pages; the whole report takes seconds."""
    from plumbline.report.workbench.change_pages import build_change_pages, sort_pages

    parts = []
    for page in sort_pages(build_change_pages(folder / "results/demo", {})):
        facts = {key: page.content[key] for key in ("title", "word", "kind", "says")}
        parts += [page.path, *(f"{key}: {value}" for key, value in facts.items()), words_of_page(page.content["body"])]
    return "\n".join(parts)


INPUTS = (
    VerdictInput(
        name="study_keep_and_confirm",
        build=_project,
        stand_ins=_stand_ins({"qknorm": 0.08}),
        steps=(
            "plumbline try qknorm --preset demo --quick",
            "plumbline try qknorm --preset demo --quick --json",
            "plumbline confirm --preset demo",
            "plumbline noise --preset demo",
            "plumbline log --preset demo",
            "plumbline log --preset demo --json",
            "plumbline page --preset demo --json",
            "plumbline board results/demo/experiment",
            Show("the report's pages", _report),
        ),
        shows=("results/demo/experiment/*.md", "results/demo/experiment/*.svg", "board/board.json"),
    ),
    VerdictInput(
        name="study_others",
        build=_project,
        stand_ins=_stand_ins({"qknorm": None, "softpick": -0.05, "baseline": 0.0}),
        steps=(
            "plumbline log --preset demo",
            "plumbline try softpick --preset demo --quick",
            "plumbline try qknorm --preset demo --quick --json",
            "plumbline confirm --preset demo",
            "plumbline try",
            "plumbline log --preset demo --forget softpick",
            "plumbline page softpik --preset demo",
        ),
    ),
)
