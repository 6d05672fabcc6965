"""The course of a screen on made-up ideas: what it keeps, what crashes, what is lost, and how it goes on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.verdict.decision.experiment import CRASHED, FINISHED, ArmRun
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen import screen_page, screen_plan
from plumbline.verdict.screen.screen_course import ScreenDecision, advance, end_without_verdict, withhold
from plumbline.verdict.screen.screen_design import (
    WITH,
    Factor,
    ScreenDesign,
    describe_aliases,
    make_design,
    name_level,
    predict_errors,
)
from plumbline.verdict.screen.screen_runs import DESIGN, FRESH, LEFT_OUT, Request, ScreenRun, Step
from plumbline.verdict.screen.screen_terms import ScreenTerms

TERMS = ScreenTerms(name="s", baseline="b", metric="loss", higher=False, runs=32, first_seed=100, unit="nats")
#: The baseline's other runs.
PAST = (3.0, 3.1, 2.95, 3.05, 2.9)


@dataclass
class MadeUpTrainer:
    """Ideas whose truth is known; noise is told by the seed, so that a run that is made again gives the same.

    Attributes:
        gains: how much an idea lowers the loss.
        crashes: whether a run with these ideas and this seed crashes.
    """

    gains: Mapping[str, float]
    crashes: Callable[[set[str], int], bool] = lambda names, seed: False
    sigma: float = 0.1
    steps: list[Step] = field(default_factory=list)

    def run(self, request: Request) -> ScreenRun:
        names = {name for name, level in request.settings.items() if level == WITH}
        value = 3.0 - sum(self.gains.get(name, 0.0) for name in names)
        value += self.sigma * float(np.random.default_rng(request.seed).standard_normal())
        lost = self.crashes(names, request.seed)
        outcome = CRASHED if lost else FINISHED
        return ScreenRun(
            request, ArmRun(arm="a", seed=request.seed, value=None if lost else value, outcome=outcome, seconds=2.0)
        )

    def screen(self, terms: ScreenTerms, design: ScreenDesign) -> ScreenDecision:
        runs: list[ScreenRun] = []
        while isinstance(step := advance(terms, design, PAST, runs), Step):
            assert step.requests and len(runs) < 200
            self.steps.append(step)
            runs += map(self.run, step.requests)
        again = advance(terms, design, PAST, random.Random(1).sample(runs, len(runs)))  # in any order
        assert repr(again) == repr(step)  # which holds of NaN too
        return step


def ideas(count: int = 12) -> list[Factor]:
    return [Factor(f"i{number}") for number in range(count)]


DESIGN_OF_12 = make_design(ideas(), runs=32, seed=1)


def count_parts(decision: ScreenDecision) -> dict[str, int]:
    return {part: sum(run.request.part == part for run in decision.runs) for part in (DESIGN, FRESH, LEFT_OUT)}


def test_what_gains_is_chosen_and_confirmed() -> None:
    trainer = MadeUpTrainer({"i0": 0.3, "i5": 0.2})
    decision = trainer.screen(replace(TERMS, leave_one_out=True), DESIGN_OF_12)
    assert decision.verdict == Outcome.KEEP and decision.exit_code == 0
    assert decision.chosen == (("i0", WITH), ("i5", WITH)) and count_parts(decision) == {
        DESIGN: 32,
        FRESH: 10,
        LEFT_OUT: 10,
    }
    assert decision.confirmation is not None and decision.confirmation.gain == pytest.approx(0.5, abs=0.2)
    left_out = {each.level[0]: each.difference.gain for each in decision.left_out}
    assert left_out == pytest.approx({"i0": 0.3, "i5": 0.2}, abs=0.2)
    seeds = [run.request.seed for run in decision.runs]
    assert seeds == list(range(100, 100 + len(seeds)))
    assert [len(step.requests) for step in trainer.steps] == [16, 16, 20]
    turns = [request.part for request in trainer.steps[-1].requests]
    assert turns == [FRESH, FRESH, LEFT_OUT, LEFT_OUT] * 5, "what drifts meanwhile moves all of them alike"
    assert "`i0` and `i5`" in decision.sentence and "confirmed" in decision.sentence
    assert decision.verdict_of(("i0", WITH)) == Outcome.KEEP and decision.verdict_of(("i1", WITH)) == Outcome.DISCARD
    assert "not chosen" in decision.sentence_of(("i1", WITH), "i1")


def test_nothing_is_kept_where_nothing_gains() -> None:
    decision = MadeUpTrainer({}).screen(TERMS, DESIGN_OF_12)
    assert (decision.verdict, decision.exit_code, decision.chosen) == (Outcome.DISCARD, 10, ())
    assert count_parts(decision)[FRESH] == 0 and "none gains" in decision.sentence


def test_the_set_must_gain_what_a_try_must() -> None:
    trainer = MadeUpTrainer({"i0": 0.3, "i5": 0.2})
    kept, less = (trainer.screen(replace(TERMS, minimum_gain=least), DESIGN_OF_12) for least in (0.2, 0.6))
    assert kept.verdict == Outcome.KEEP and less.verdict == Outcome.DISCARD and kept.chosen == less.chosen
    assert less.confirmation is not None and less.confirmation.p > 0.5 and "0.6" in less.sentence
    assert kept.confirmation is not None and kept.confirmation.p < TERMS.alpha


def test_a_set_that_fresh_runs_do_not_confirm_is_discarded() -> None:
    class Lucky(MadeUpTrainer):
        def run(self, request: Request) -> ScreenRun:
            gains = {"i3": 0.5} if request.part == DESIGN else {}
            return MadeUpTrainer(gains).run(request)

    decision = Lucky({}).screen(TERMS, DESIGN_OF_12)
    assert decision.chosen == (("i3", WITH),) and decision.verdict == Outcome.DISCARD
    assert "not confirmed" in decision.sentence and decision.verdict_of(("i3", WITH)) == Outcome.DISCARD


def test_a_crashing_idea_is_named_and_others_are_judged() -> None:
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: "i7" in names)
    decision = trainer.screen(TERMS, DESIGN_OF_12)
    assert decision.dropped == (("i7", WITH),) and decision.chosen == (("i0", WITH),)
    assert decision.verdict_of(("i7", WITH)) == Outcome.CRASHED and "i7" in decision.notes[0]
    finished = [run for run in decision.runs if run.request.part == DESIGN and run.run.has_value]
    assert len(finished) == 32 and decision.effects is not None
    errors = {effect.level[0]: effect.error for effect in decision.effects.effects}
    assert np.isnan(errors.pop("i7")) and max(errors.values()) == pytest.approx(min(errors.values()))


def test_two_that_crash_together_are_kept_apart() -> None:
    decision = MadeUpTrainer({"i0": 0.3, "i4": 0.3}, crashes=lambda names, seed: {"i0", "i4"} <= names).screen(
        TERMS, DESIGN_OF_12
    )
    assert decision.clashing == ((("i0", WITH), ("i4", WITH)),) and not decision.dropped
    assert len(decision.chosen) == 1 and decision.verdict == Outcome.KEEP


DESIGN_OF_64 = make_design(ideas(), runs=64, seed=1)
TERMS_OF_64 = replace(TERMS, runs=64)
CLASH = (("i0", WITH), ("i4", WITH))


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_is_told_beside_a_level_that_always_crashes(seed: int) -> None:
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, _: {"i0", "i4"} <= names or "i7" in names)
    decision = trainer.screen(TERMS_OF_64, make_design(ideas(), runs=64, seed=seed))
    assert (decision.dropped, decision.clashing) == ((("i7", WITH),), (CLASH,))
    assert ("i0", WITH) in decision.chosen and decision.verdict_of(("i0", WITH)) == Outcome.KEEP


def test_a_level_is_told_beside_a_pair_that_crashes() -> None:
    trainer = MadeUpTrainer(
        {"i2": 0.3}, crashes=lambda names, seed: {"i0", "i4"} <= names or ("i7" in names and seed >= 132)
    )
    decision = trainer.screen(TERMS_OF_64, DESIGN_OF_64)
    assert (decision.dropped, decision.clashing) == ((("i7", WITH),), (CLASH,))
    assert sum(not run.run.has_value for run in decision.runs) < 32 and decision.chosen == (("i2", WITH),)


def test_a_level_that_was_dropped_is_in_no_set() -> None:
    lost_by_chance = (100, 117)
    trainer = MadeUpTrainer(
        {"i0": 0.6, "i2": 0.5, "i4": 0.6}, crashes=lambda names, seed: {"i0", "i4"} <= names or seed in lost_by_chance
    )
    decision = trainer.screen(TERMS_OF_64, DESIGN_OF_64)
    assert decision.effects is not None and not decision.clashing
    (own,) = (effect for effect in decision.effects.effects if effect.level in decision.dropped)
    assert own.level in CLASH and own.selected and own.level not in decision.chosen
    assert len({*CLASH} & {*decision.chosen}) == 1
    assert decision.verdict_of(own.level) == Outcome.CRASHED
    lines = screen_page.make_page(decision).sections["Effects"].splitlines()
    assert "crashes" in next(line for line in lines if name_level(own.level) in line)


def test_levels_that_make_most_runs_crash_are_run_alone() -> None:
    bad = {"i2", "i6", "i9", "i11"}
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: bool(bad & names))
    decision = trainer.screen(replace(TERMS, runs=40), make_design(ideas(20), runs=40, seed=4))
    assert {name for name, _ in decision.dropped} == bad and decision.chosen == (("i0", WITH),)
    assert decision.verdict == Outcome.KEEP and any("alone" in note for note in decision.notes)
    for effect in decision.effects.effects if decision.effects else ():
        assert np.isnan(effect.error) == (effect.level[0] in bad)


def test_runs_that_are_lost_by_chance_are_made_up_for() -> None:
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: seed in (103, 120, 132))
    decision = trainer.screen(TERMS, DESIGN_OF_12)
    assert not decision.dropped and decision.chosen == (("i0", WITH),)
    parts = count_parts(decision)
    assert parts[DESIGN] == 35 and sum(run.run.has_value for run in decision.runs) == 32 + parts[FRESH]


def test_a_screen_of_which_no_run_ends_cannot_be_judged() -> None:
    """Rows of which most crash are not run again; each level is run alone, and where all of those crash too it ends."""
    decision = MadeUpTrainer({}, crashes=lambda names, seed: True).screen(TERMS, DESIGN_OF_12)
    assert decision.exit_code == 13 and len(decision.runs) == TERMS.runs + 12
    assert decision.verdict_of(("i0", WITH)) == Outcome.CANNOT_BE_JUDGED
    assert CRASHED in decision.sentence and "--first-seed" in decision.sentence
    assert screen_page.make_page(decision).sections["Design"].count("\n| ") >= TERMS.runs + 12
    pairs = MadeUpTrainer({"i0": 0.5}, crashes=lambda names, seed: len(names) > 1).screen(TERMS, DESIGN_OF_12)
    assert pairs.exit_code == 13 and len(pairs.runs) == TERMS.runs + 12 and not pairs.dropped


def test_one_that_ends_alone_is_judged_where_all_others_crash() -> None:
    decision = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: bool(names - {"i0"})).screen(TERMS, DESIGN_OF_12)
    assert len(decision.dropped) == 11 and decision.chosen == (("i0", WITH),) and decision.verdict == Outcome.KEEP


def test_what_needs_another_one_is_said_to() -> None:
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: "i4" in names and "i7" not in names)
    decision = trainer.screen(TERMS, DESIGN_OF_12)
    assert decision.dropped == (("i4", WITH),)
    (note,) = [note for note in decision.notes if "`i4`" in note]
    assert "without `i7`" in note
    alone = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: "i4" in names).screen(TERMS, DESIGN_OF_12)
    lost = sum(not run.run.has_value for run in alone.runs)
    assert any(f"`i4`: {lost} of its {lost} runs {CRASHED}" in note for note in alone.notes)


def test_a_level_without_which_the_set_crashes_is_named() -> None:
    trainer = MadeUpTrainer({"i0": 0.3, "i5": 0.3}, crashes=lambda names, seed: names == {"i5"} and seed > 131)
    decision = trainer.screen(replace(TERMS, leave_one_out=True), DESIGN_OF_12)
    assert decision.verdict == Outcome.KEEP and [each.level[0] for each in decision.left_out] == ["i5"]
    assert any("`i0`" in note for note in decision.notes)


def test_a_set_whose_fresh_runs_crash_is_undecided() -> None:
    trainer = MadeUpTrainer({"i0": 0.3, "i5": 0.3}, crashes=lambda names, seed: names == {"i0", "i5"} and seed > 131)
    decision = trainer.screen(TERMS, DESIGN_OF_12)
    assert decision.exit_code == 11 and decision.chosen and decision.confirmation is None
    lost = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: not names and seed > 131).screen(TERMS, DESIGN_OF_12)
    assert lost.exit_code == 13 and "baseline" in lost.sentence


def test_a_clear_design_ends_halfway_for_half_of_the_level() -> None:
    design = make_design(ideas(), runs=64, seed=2)
    terms = replace(TERMS, runs=64, halfway=True)
    assert design.looks == (32, 64)
    early = MadeUpTrainer({"i0": 0.5, "i5": 0.5}).screen(terms, design)
    assert early.stopped_at == 32 and count_parts(early)[DESIGN] == 32 and early.verdict == Outcome.KEEP
    assert early.effects is not None and early.effects.level == TERMS.level / 2
    half = replace(design, rows=design.rows[:32])
    text = screen_page.make_page(early).sections["Design"]
    assert "32 of them were made" in text and all(line in text for line in describe_aliases(half))
    assert f"{predict_errors(half)['i0', WITH]:.2f} sigma" in text
    for crashes in (lambda names, seed: seed == 105, lambda names, seed: "i7" in names):
        lost = MadeUpTrainer({"i0": 0.5}, crashes=crashes).screen(terms, design)
        assert lost.stopped_at == 32 and lost.chosen == (("i0", WITH),)
    late = MadeUpTrainer({"i0": 0.06}).screen(terms, design)
    assert late.stopped_at == 0 and count_parts(late)[DESIGN] == 64
    assert late.effects is not None and late.effects.level == TERMS.level / 2
    whole = MadeUpTrainer({"i0": 0.5}).screen(replace(terms, halfway=False), design)
    assert count_parts(whole)[DESIGN] == 64 and whole.effects is not None and whole.effects.level == TERMS.level


def test_a_screen_that_was_killed_goes_on_where_it_was() -> None:
    trainer = MadeUpTrainer({"i0": 0.3}, crashes=lambda names, seed: {"i0", "i4"} <= names or "i7" in names)
    decision = trainer.screen(TERMS_OF_64, DESIGN_OF_64)
    assert decision.dropped and decision.clashing
    for there in (1, 15, 17, 33, 65, len(decision.runs) - 1):
        step = advance(TERMS_OF_64, DESIGN_OF_64, PAST, decision.runs[:there])
        assert isinstance(step, Step)
        assert step.requests[0] == decision.runs[there].request


def test_a_study_of_several_levels_is_screened_too() -> None:
    factors = [Factor("mixer", tuple("abc")), Factor("norm"), Factor("ffn", ("glu", "relu2", "moe"))]
    forbidden = ((("mixer", "c"), ("norm", WITH)),)
    design = make_design(factors, forbidden=forbidden, runs=24, seed=1)

    def run(request: Request) -> ScreenRun:
        value = 3.0 - {"a": 0, "b": 0.3, "c": 0.4}[request.settings["mixer"]]
        value += 0.1 * float(np.random.default_rng(request.seed).standard_normal())
        return ScreenRun(request, ArmRun(arm="a", seed=request.seed, value=value))

    runs: list[ScreenRun] = []
    while isinstance(step := advance(replace(TERMS, runs=24), design, (), runs), Step):
        runs += map(run, step.requests)
    assert [screen_page.describe_try(step, name)["gain"] != "" for name in ("c", "c.mixer", "mixer")] == [1, 1, 0]
    assert step.chosen == (("mixer", "c"),) and "6 levels" not in step.sentence and "5 levels" in step.sentence


def test_the_page_is_whole_and_made_again_from_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decision = MadeUpTrainer({"i0": 0.3, "i5": 0.2}, crashes=lambda names, seed: "i7" in names).screen(
        replace(TERMS, leave_one_out=True, changes={"i0": "--warmup 200"}), DESIGN_OF_12
    )
    decision = replace(decision, ledger="12 tries", to_keep="git apply it", changed_files={"train.py": "+1"})
    page = tmp_path / "s.md"
    screen_page.write(decision, page)
    text, picture = page.read_text(), (tmp_path / "s.svg").read_text()
    for heading in ("Effects", "The chosen set", "Together", "Design", "Runs", "Ledger", "Limits"):
        assert f"\n## {heading}\n" in text
    for fact in (decision.sentence, "--warmup 200", "git apply it", "train.py", "crashes", "taken out", "s.svg"):
        assert fact in text
    assert "i0" in picture and "half-normal" in picture and "nan" not in picture
    numbers = read_json(tmp_path / "s.json")
    assert numbers["exit_code"] == 0 and numbers["confirmation"]["p"] < 0.025
    again = tmp_path / "again"
    again.mkdir()
    screen_page.write(screen_page.read(tmp_path / "s.json"), again / "s.md")
    for name in ("s.md", "s.svg", "s.json"):
        assert (again / name).read_text() == (tmp_path / name).read_text()
    screen_page.print_decision(decision, "s.md")
    printed = capsys.readouterr().out
    assert "chosen" in printed and printed.endswith("s.md\n")
    assert screen_page.describe_try(decision, "i0")["gain"]
    assert not screen_page.describe_try(decision, WITH)["gain"]


def test_the_page_of_what_cannot_be_judged_says_why(tmp_path: Path) -> None:
    ended = end_without_verdict(TERMS, DESIGN_OF_12, (), "the disk is full.")
    screen_page.write(ended, tmp_path / "s.md")
    assert "the disk is full." in (tmp_path / "s.md").read_text()
    assert screen_page.read(tmp_path / "s.json").exit_code == 13
    kept = withhold(MadeUpTrainer({"i0": 0.3}).screen(TERMS, DESIGN_OF_12), "a check refuses it")
    assert kept.exit_code == 13 and "`i0`" in kept.sentence and kept.effects is not None
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(PlumblineError, match=r"s\.json"):
        screen_page.read(tmp_path / "s.json")


def test_the_plan_states_the_design_before_the_first_run(tmp_path: Path) -> None:
    screen_plan.write_plan(TERMS, DESIGN_OF_12, tmp_path / "s.md")
    text = (tmp_path / "s.md").read_text()
    assert text.count("\n| ") >= 32 and "0.35 sigma" in text and "clear" in text
    assert "0.35 sigma" in screen_plan.describe_plan(TERMS, DESIGN_OF_12)
    numbers = screen_plan.plan_to_json(TERMS, DESIGN_OF_12)
    assert len(numbers["design"]["rows"]) == 32 and len(numbers["standard_errors"]) == 12


def test_crashes_of_bad_fresh_runs_confirm_nothing_more_often() -> None:
    class Aborting(MadeUpTrainer):
        """Its idea does nothing but to crash each fresh run that is worse than the baseline's mean."""

        def run(self, request: Request) -> ScreenRun:
            made = MadeUpTrainer({"i3": 0.5} if request.part == DESIGN else {}).run(request)
            bad = request.part == FRESH and request.settings["i3"] == WITH and (made.run.value or 0) > 3.02
            return replace(made, run=replace(made.run, value=None, outcome=CRASHED)) if bad else made

    terms = replace(TERMS, rule="bonferroni", level=0.001)
    screens = [Aborting({}).screen(replace(terms, first_seed=seed), DESIGN_OF_12) for seed in range(0, 30_000, 100)]
    assert all(("i3", WITH) in decision.chosen for decision in screens)
    assert sum(decision.verdict == Outcome.KEEP for decision in screens) <= 12  # .025 of 300 are 7.5
    trainer = MadeUpTrainer({"i0": 1.2}, crashes=lambda names, seed: names == {"i0"} and seed in (133, 137))
    decision = trainer.screen(TERMS, DESIGN_OF_12)
    assert decision.verdict == Outcome.KEEP and "6 of 10 runs" in decision.sentence
    assert any(note.startswith("2 of 5 fresh runs") for note in decision.notes)
