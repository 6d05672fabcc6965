"""The simulations of screens choose, for many sessions at once, what the code that decides chooses for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plumbline.verdict.screen.screen_effects import estimate_effects


@pytest.fixture(autouse=True)
def _benchmarks_by_name(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")


def test_many_sessions_at_once_choose_as_each_by_itself() -> None:
    from decision_rules.idea_worlds import IdeaWorld, choose_by_values, make_designs

    ((_, design), *_) = make_designs(IdeaWorld(name="small", ideas=10, runs=16), 1)
    rng = np.random.default_rng(3)
    values_SR = rng.standard_normal((40, 16)) + 1.2 * design.levels_NF[:, 0] + 0.9 * design.levels_NF[:, 1]
    past_SB = rng.standard_normal((40, 5))
    kept_SN = choose_by_values(design, values_SR, past_SB)
    assert 0 < kept_SN.sum() < kept_SN.size
    for values, past, kept in zip(values_SR, past_SB, kept_SN):
        effects = estimate_effects(design, values.tolist(), higher=True, past=past.tolist())
        assert [effect.selected for effect in effects.effects] == kept.tolist()


def test_ways_have_as_many_runs_and_count_what_is_true() -> None:
    from decision_rules.idea_worlds import IdeaWorld, run_greedy, run_try, screen_ideas

    world = IdeaWorld(name="small", ideas=10, runs=16, gain=4.0)
    truth = world.draw(30)
    screened = screen_ideas(truth)
    assert screened.true_S.mean() == pytest.approx(4.0, abs=0.5) and set(screened.runs_S) <= {21.0, 31.0}
    for ends in (run_greedy(truth, screened.runs_S), run_try(truth, screened.runs_S)):
        assert (ends.true_S == 4.0 * (ends.kept_SN & (truth.gains_SN > 0)).sum(axis=1)).all()
        assert 0 < ends.true_S.mean() <= 4.0


def test_a_course_of_crashing_ideas_is_simulated_run_by_run() -> None:
    from decision_rules.idea_worlds import IdeaWorld, screen_ideas

    ends = screen_ideas(IdeaWorld(name="crash", ideas=10, runs=16, gain=6.0, diverge=1, crash=0.05).draw(2))
    assert (ends.kept_SN & (ends.sessions.gains_SN > 0)).any(axis=1).all() and ends.confirmed_S.all()
    assert not (ends.kept_SN & ends.sessions.diverges_SN).any() and (ends.runs_S > 31).all()
