"""A search over noise against known laws of the largest of n, a real gain in a log, and what a log says of itself."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import SearchLogEntry
from plumbline.verdict.numbers.search import SearchJudgement, judge_search
from plumbline.verdict.numbers.search_noise import simulate_null_searches
from plumbline.verdict.numbers.search_verdict import list_limits, write_search_sentence, write_sections
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome

LOG = Path("log.tsv")
UP = ComparisonTerms(higher=True)


def log(*runs: tuple[str, float | None, str]) -> list[SearchLogEntry]:
    return [
        SearchLogEntry(line=line, commit=commit, value=value, status=status, description=f"try {commit}")
        for line, (commit, value, status) in enumerate(runs, start=2)
    ]


def greedy(
    rng: np.random.Generator, *, repeats: int, steps: int, gain: float = 0.0, sigma: float = 1.0
) -> list[SearchLogEntry]:
    """A search over noise, better upwards; from the first change on all runs are better by `gain`."""
    start = [("s", sigma * rng.normal(), "keep") for _ in range(repeats)]
    best, changes = start[0][1], []
    for number in range(steps):
        value = gain + sigma * rng.normal()
        changes.append((f"c{number}", value, "keep" if value > best else "discard"))
        best = max(best, value)
    return log(*start, *changes)


def largest_of(n: int) -> float:
    """Expectation of the largest of n standard normal draws."""
    return integrate.quad(lambda x: x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1), -8, 8)[0]


@pytest.mark.parametrize("steps", [1, 10, 100])
def test_selection_alone_gives_the_largest_of_so_many_draws(steps: int) -> None:
    null = simulate_null_searches(steps, 1, 0.0, sigma_freedom=math.inf)
    best = null.total_W  # of one run of the start, the gain is over that very run
    assert best.mean() == pytest.approx(largest_of(steps + 1), abs=0.03)
    assert null.mean_S[-1] == pytest.approx(best.mean())
    assert (np.diff(null.mean_S) > 0).all() and null.mean_S[0] == 0
    assert null.jump_W.max() <= best.max() and (null.jump_W <= best + 1e-12).all()


def test_a_rule_that_asks_for_more_keeps_less() -> None:
    totals = [simulate_null_searches(50, 3, 0.0, threshold=ask).total_W.mean() for ask in (0.0, 1.0, 4.0)]
    assert totals == sorted(totals, reverse=True) and totals[2] < 0.3 * totals[0]


@pytest.mark.parametrize("repeats", [2, 3, 6])
def test_p_of_searches_over_noise_is_uniform(repeats: int) -> None:
    rng = np.random.default_rng(repeats)
    p = [judge_search(LOG, greedy(rng, repeats=repeats, steps=20, sigma=0.01), UP).p for _ in range(150)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_gain_that_page_calls_resolved_is_found_with_its_chance() -> None:
    rng = np.random.default_rng(1)
    terms = ComparisonTerms(higher=True, sigma=1.0)
    resolved = judge_search(LOG, greedy(rng, repeats=3, steps=20), terms).resolved
    hits = [judge_search(LOG, greedy(rng, repeats=3, steps=20, gain=resolved), terms).p <= 0.025 for _ in range(200)]
    assert np.mean(hits) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 200))


def test_what_is_counted_in_a_log() -> None:
    judgement = judge_search(
        LOG,
        log(
            ("s", 1.0, "keep"), ("s", 3.0, "discard"), ("x", None, "crash"), ("a", 2.5, "keep"), ("b", 2.6, "discard"),
            ("c", 2.4, "keep"), ("d", 9.0, "keep"),
        ),
        UP,
        tries=3,
    )  # fmt: skip
    assert (judgement.steps, judgement.crashes, judgement.start_runs) == (4, 1, (1.0, 3.0))
    assert (judgement.sigma, judgement.freedom, judgement.total) == (pytest.approx(math.sqrt(2)), 1, 7.0)
    assert [(each.step.commit, each.number) for each in judgement.kept] == [("a", 1), ("c", 3), ("d", 4)]
    assert [each.gain for each in judgement.kept] == pytest.approx([0.5, 0.4, 7.0])
    assert [each.jump for each in judgement.kept] == pytest.approx([1.5, -0.1, 6.6])
    assert [step.line for step in judgement.against_rule] == [6, 7]
    assert judgement.p_corrected == min(1, 3 * judgement.p)
    assert any("lines 6 and 7" in limit for limit in list_limits(judgement))


def test_of_a_kept_change_the_selected_run_is_no_repeat() -> None:
    """The first run of `a` was chosen for being high: it would inflate sigma, and the gain of its repeats."""
    steps = log(
        ("s", 0.0, "keep"), ("s", 1.0, "discard"), ("a", 50.0, "keep"), ("a", 2.0, "discard"), ("a", 0.0, "discard")
    )  # fmt: skip
    judgement = judge_search(LOG, steps, UP)
    assert judgement.freedom == 2 and judgement.sigma == pytest.approx(math.sqrt((0.5 + 2.0) / 2))
    again = judgement.decided_by
    assert again is not None and (again.n, again.n_baseline, again.gain) == (2, 2, 0.5)
    assert judgement.outcome is again.outcome is Outcome.UNDECIDED
    sentence = write_search_sentence(judgement, "loss")
    assert sentence.startswith("The last kept change, ") and ": `a` is not decided" in sentence


def outcome(repeats: list[float], last: float) -> tuple[SearchJudgement, str]:
    rng = np.random.default_rng(0)
    changes = [(f"c{number}", float(value), "discard") for number, value in enumerate(rng.normal(-3, 0.3, size=30))]
    judgement = judge_search(LOG, log(*(("s", value, "keep") for value in repeats), *changes, ("z", last, "keep")), UP)
    return judgement, write_search_sentence(judgement, "loss")


def test_first_sentences() -> None:
    many = list(np.linspace(-1.5, 1.5, 12))
    for repeats, last, verdict, begins in (
        (many, 9.0, Outcome.KEEP, "The search improves `loss` beyond selection (one-sided p = "),
        (many, -4.0, Outcome.DISCARD, "The search: a gain in `loss` is ruled out: -4.00 was seen (one-sided"),
        (
            [-1.0, 1.0, 0.0],
            6.0,
            Outcome.UNDECIDED,
            "The search's gain of 6.0 in `loss` is not decided: 7 more runs of `z` and as many of `s` in all would "
            "find a gain of 2 sigma with 80 % chance (one-sided p = ",
        ),
    ):
        judgement, sentence = outcome(repeats, last)
        assert judgement.outcome is verdict and sentence.startswith(begins)
        assert "31 changes" in sentence


def test_the_change_that_does_something_is_marked() -> None:
    judgement, _ = outcome(list(np.linspace(-1.5, 1.5, 12)), 9.0)
    assert [each.p_jump <= 0.05 and each.p_gain <= 0.05 for each in judgement.kept] == [True]
    page = " ".join(write_sections(judgement, "loss", source_text=""))
    assert "`z` and `s`, 3 runs of each" in page and "try z" in page


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            [("s", 1.0, "keep"), ("a", 2.0, "keep")],
            "no noise.*no configuration.*'s'.*<= 0.36",
        ),
        ([("s", 1.0, "keep"), ("s", 1.0, "keep"), ("a", 2.0, "keep")], "all repeats are equal"),
        ([("s", 1.0, "discard"), ("a", 2.0, "keep")], "line 2"),
        ([("s", None, "crash")], "first.*start"),
        ([("s", 1.0, "keep"), ("s", 2.0, "keep")], "no change.*judge"),
    ],
)
def test_a_log_that_cannot_be_judged_says_why(runs, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        judge_search(LOG, log(*runs), UP)


def test_a_given_sigma_makes_up_for_missing_repeats() -> None:
    steps = log(("s", 1.0, "keep"), ("a", 9.0, "keep"))
    assert judge_search(LOG, steps, ComparisonTerms(higher=True, sigma=0.5)).outcome is Outcome.KEEP
    weak = judge_search(LOG, steps, ComparisonTerms(higher=True, sigma=0.5, sigma_runs=2))
    assert weak.freedom == 1 and weak.p > judge_search(LOG, steps, ComparisonTerms(higher=True, sigma=0.5)).p


def test_change_that_was_run_again_until_it_was_kept_is_refused() -> None:
    steps = log(
        ("s", 1.0, "keep"), ("s", 1.1, "discard"), ("b", 0.9, "discard"), ("b", 0.8, "discard"), ("b", 1.5, "keep")
    )  # fmt: skip
    with pytest.raises(PlumblineError, match=r"log.tsv, line 6: 'b' .* line 4"):
        judge_search(LOG, steps, UP)


def test_four_descriptions_are_not_one_configuration() -> None:
    rows = [("s", 1.0, "keep", "start"), ("s", 1.4, "keep", "wider"), ("s", 1.1, "discard", "deeper")]
    rows += [("s", 1.2, "discard", "start"), ("s", 0.9, "discard", " start ")]
    steps = [
        SearchLogEntry(line=line, commit=commit, value=value, status=status, description=description)
        for line, (commit, value, status, description) in enumerate(rows, start=2)
    ]
    judgement = judge_search(LOG, steps, UP)
    assert (judgement.steps, judgement.start_runs, judgement.freedom) == (2, (1.0, 1.2, 0.9), 2)
    with pytest.raises(CannotBeJudgedError, match=r"'s'.*descriptions"):
        judge_search(LOG, steps[:3], UP)


def test_run_of_last_kept_change_that_diverged_is_its_outcome() -> None:
    rows = [("s", 1.0, "keep"), ("s", 1.1, "discard"), ("a", 9.0, "keep"), ("a", 9.1, "discard"), ("a", None, "crash")]
    judgement = judge_search(LOG, log(*rows), UP)
    assert judgement.outcome is Outcome.CRASHED
    assert write_search_sentence(judgement, "loss").startswith("`a`, the last kept change, crashed or diverged")
    lost = [*rows, ("s", None, "crash")]
    with pytest.raises(CannotBeJudgedError, match=r"line 7.*'s'"):
        judge_search(LOG, log(*lost), UP)
    allowed = judge_search(LOG, log(*lost), ComparisonTerms(higher=True, allow_diverged=1))
    assert allowed.outcome is Outcome.KEEP
