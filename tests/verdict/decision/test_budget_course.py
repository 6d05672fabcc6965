"""What is decided of a gain at several budgets: word, sentence, exit code, page, and the same from its numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.verdict.decision import budget_page
from plumbline.verdict.decision.budget_course import BudgetTerms, RunsAtBudget, decide_course
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.outcome import Outcome

TERMS = BudgetTerms(
    higher=False,
    name="warmup",
    baseline="start",
    candidate="warmup",
    metric="val_loss",
    labels=("1x", "2x", "4x"),
    budgets=("--steps 10", "--steps 20", "--steps 40"),
    doublings=(0.0, 1.0, 2.0),
    runs=4,
    size="2 layers, 10 steps",
)
NOISE = (-0.03, -0.01, 0.01, 0.03)


def runs_at(gain: float, noise: tuple[float, ...] = NOISE) -> RunsAtBudget:
    runs = [
        ArmRun(arm=arm, seed=2 * place + (arm != BASELINE), value=3.0 - shift + each, seconds=1.0, fingerprint="a")
        for place, each in enumerate(noise)
        for arm, shift in ((BASELINE, 0.0), ("warmup", gain))
    ]
    return RunsAtBudget(runs=tuple(runs))


@pytest.mark.parametrize(
    ("gains", "verdict", "code", "text"),
    [
        ((0.2, 0.2, 0.2), Outcome.HOLDS, 0, "With 2 layers, 10 steps as 1x, the gain of `warmup` in `val_loss` holds"),
        ((0.2, 0.1, 0.0), Outcome.SHRINKS, 10, "shrinks: +0.200 at 1x (90 % interval 0.165 to 0.235)"),
        ((0.2, 0.0, -0.2), Outcome.TURNS, 10, "turns into a loss: +0.200 at 1x"),
        ((0.2, 0.1, 0.06), Outcome.SHRINKS, 10, "it changes by -0.070 with each"),
        ((0.03, 0.03, 0.03), Outcome.UNDECIDED, 11, "not decided by 4 fresh runs"),
    ],
)
def test_each_word_has_its_code_and_sentence(
    gains: tuple[float, ...], verdict: Outcome, code: int, text: str, tmp_path: Path
) -> None:
    decision = decide_course(TERMS, [runs_at(gain) for gain in gains])
    assert (decision.verdict, decision.verdict.exit_code) == (verdict, code)
    assert text in decision.sentence, decision.sentence
    budget_page.write(decision, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert decision.sentence in page and "## At each budget" in page and page.count("| 4x |") >= 1
    assert "at 4x: gain" in (tmp_path / "page.svg").read_text()
    numbers, again = budget_page.decision_to_json(decision), budget_page.read(tmp_path / "page.json")
    assert budget_page.make_page(again).markdown("page.svg") == page
    assert budget_page.decision_to_json(again) == numbers
    assert (numbers["verdict"], numbers["exit_code"]) == (str(verdict), code)
    assert [gain["at"] for gain in numbers["course"]["gains"]] == list(TERMS.labels)
    assert numbers["course"]["gains"][0]["value"] == pytest.approx(gains[0])


def test_an_undecided_one_names_runs_that_would_decide() -> None:
    decision = decide_course(TERMS, [runs_at(0.03) for _ in range(3)])
    assert decision.more is not None and f"(--max-runs {decision.more})" in decision.sentence
    noise = NOISE * (decision.more // 4 + 1)
    with_more = decide_course(replace(TERMS, runs=len(noise)), [runs_at(0.03, noise) for _ in range(3)])
    assert with_more.verdict == Outcome.HOLDS
    assert decide_course(TERMS, [runs_at(0.0) for _ in range(3)]).more is None


@pytest.mark.parametrize(("arm", "verdict"), [("warmup", Outcome.CRASHED), (BASELINE, Outcome.CANNOT_BE_JUDGED)])
def test_a_lost_run_decides_by_whose_it_is(arm: str, verdict: Outcome) -> None:
    whole = runs_at(0.2)
    runs = [replace(run, value=None, outcome="crashed", why="killed") if run.arm == arm else run for run in whole.runs]
    decision = decide_course(TERMS, [whole, RunsAtBudget(runs=tuple(runs))])
    assert decision.verdict == verdict and decision.gain is None
    assert "at 2x seed" in decision.sentence and "killed" in decision.sentence


def test_no_budget_mixes_machines_and_a_refusal_is_no_word() -> None:
    other = runs_at(0.2)
    mixed = RunsAtBudget(runs=(*other.runs[:-1], replace(other.runs[-1], fingerprint="b")))
    assert decide_course(TERMS, [other, other, mixed]).verdict == Outcome.CANNOT_BE_JUDGED
    moved = RunsAtBudget(runs=tuple(replace(run, fingerprint="b") for run in other.runs))
    assert decide_course(TERMS, [other, other, moved]).verdict == Outcome.HOLDS  # means do not cross budgets
    refused = decide_course(TERMS, [other] * 3, refusal="at 4x: a trend; make them anew")
    assert refused.verdict == Outcome.CANNOT_BE_JUDGED and "a trend" in refused.sentence
