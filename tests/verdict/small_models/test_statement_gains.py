"""Every statement comes out as what was drawn: a true gain is seen, its opposite reversed, and nothing is not seen."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from plumbline.results.runs.stated_values import RunValues, choose_rate
from plumbline.specs.small_file import Statement
from plumbline.specs.small_runs import StatedRun
from plumbline.stats.stated_tests import NOT_DECIDED, NOT_SEEN, REVERSED, SEEN
from plumbline.verdict.small_models.statement_gains import (
    NOT_RUN,
    OTHER_RATE,
    ContrastGain,
    compute_gains,
    join_verdicts,
)
from tests.verdict.small_models.small_worlds import World, draw, load

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")
STATEMENTS = [(study, statement) for study in STUDIES for statement in load(study)[0].statements]
BY_ID = {statement.id: (study, statement) for study, statement in STATEMENTS}


def judge(world: World) -> dict[str, list[ContrastGain]]:
    """Size -> the gains of a world's statement."""
    values = RunValues(world.load())
    return {
        size: compute_gains(world.small, world.statement, size, world.runs, values) for size in world.statement.sizes
    }


def list_verdicts(world: World) -> set[str]:
    return {join_verdicts(gains) for gains in judge(world).values()}


def draw_sided(study: str, statement: Statement, way: str) -> World:
    """A world of a statement's kind: `with`, `against` or `nothing`."""
    if statement.test == "order":
        return draw_order(study, statement, {"with": 1.0, "against": -1.0, "nothing": 0.0}[way])
    if statement.test == "sign":  # a step of the rates each way, or none
        step = {"with": 1.0, "against": -1.0, "nothing": 0.0}[way]
        return draw(study, statement, statement.minimum_gain + step, 0.01)
    width = statement.target_gain - statement.minimum_gain
    gain = {"with": statement.target_gain, "against": statement.minimum_gain - width, "nothing": statement.minimum_gain}
    return draw(study, statement, gain[way], 0.02 * width)


def draw_order(study: str, statement: Statement, way: float) -> World:
    """The methods in one order at the shared rate, and in the same, the opposite or another one when tuned.

    All are alike in the runs that choose a rate.
    """
    methods = [arm for arm in statement.arms if arm != "baseline"]
    assert statement.tuning is not None and statement.tuning.own_seeds is not None
    own_seeds = statement.tuning.own_seeds
    mixed = np.random.default_rng(1).permutation(len(methods))

    def measure(run: StatedRun) -> float:
        if run.arm == "baseline" or run.tuning:
            return 0.0
        place = methods.index(run.arm)
        tuned = place * way if way else float(mixed[place])
        return 0.1 * (place if run.spec.init_seed in own_seeds else tuned)

    return World(study, statement, measure)


@pytest.mark.parametrize(("study", "statement"), STATEMENTS, ids=list(BY_ID))
def test_every_statement_comes_out_both_ways(study: str, statement: Statement) -> None:
    assert list_verdicts(draw_sided(study, statement, "with")) == {SEEN}
    assert list_verdicts(draw_sided(study, statement, "against")) == {REVERSED}
    assert list_verdicts(draw_sided(study, statement, "nothing")) <= {NOT_SEEN, NOT_DECIDED}


@pytest.mark.parametrize(("study", "statement"), STATEMENTS, ids=list(BY_ID))
def test_gains_are_those_that_were_drawn(study: str, statement: Statement) -> None:
    """To within a few errors of the mean, in the statement's own unit, at each size and contrast."""
    world = draw_sided(study, statement, "with")
    for gains in judge(world).values():
        for gain in gains:
            assert gain.tested is not None and not gain.word and gain.n == gain.stated
            drawn = 1.0 if statement.test in ("order", "sign") else statement.target_gain
            width = 0.1 * (statement.target_gain - statement.minimum_gain)
            assert gain.tested.gain == pytest.approx(drawn, abs=width)
            assert {key.split("/")[1] for key in gain.runs} == {gain.size}


def test_noise_hides_a_gain() -> None:
    study, statement = BY_ID["queries_are_not_needed"]
    words = {word for seed in range(10) for word in list_verdicts(draw(study, statement, 0.0, 0.1, seed=seed))}
    assert NOT_DECIDED in words and NOT_SEEN not in words, "the target, no difference, is what is true"


def test_a_drawn_null_is_seen_about_as_often_as_the_level() -> None:
    """At the minimum, over 60 worlds at two sizes."""
    study, statement = BY_ID["slowing_lowers_the_loss"]
    words = [
        join_verdicts(gains)
        for seed in range(60)
        for gains in judge(draw(study, statement, statement.minimum_gain, 0.01, seed=seed)).values()
    ]
    assert words.count(SEEN) <= 9, "3 are expected of 120; more than 9 come once in 1,000 such draws"
    assert words.count(REVERSED) <= 9


@pytest.mark.parametrize("name", ["slowing_lowers_the_loss", "gains_survive_tuning", "a_higher_rate_trains"])
def test_a_missing_run_is_said_and_nothing_is_judged(name: str) -> None:
    study, statement = BY_ID[name]
    world = draw_sided(study, statement, "with")
    gone = next(run for run in reversed(world.runs) if run.size == statement.sizes[0])
    some = World(study, statement, lambda run: 0.0, lambda run: "missing" if run is gone else "completed")
    first, second = (judge(some)[size] for size in statement.sizes[:2])
    assert join_verdicts(first) == NOT_RUN and "missing" in {gain.word for gain in first}
    assert join_verdicts(second) != NOT_RUN


def test_nothing_was_run() -> None:
    for study, statement in STATEMENTS:
        world = World(study, statement, lambda run: 0.0, lambda run: "missing")
        for gains in judge(world).values():
            assert join_verdicts(gains) == NOT_RUN and all(gain.tested is None for gain in gains)


def test_a_diverged_run_leaves_it_undecided_with_a_gain() -> None:
    study, statement = BY_ID["slowing_lowers_the_loss"]
    whole = draw(study, statement, 0.05, 0.001)
    outcome = {run.spec.key: "diverged" for run in whole.runs[:1]}
    offsets = {"gpt": 0.0, "gpt_slow": -0.05}
    world = World(study, statement, lambda run: offsets[run.arm], lambda run: outcome.get(run.spec.key, "completed"))
    (gain,) = judge(world)[whole.runs[0].size]
    stated = len(statement.seeds)
    assert (gain.verdict, gain.word, gain.n, gain.stated) == (NOT_DECIDED, "diverged", stated - 1, stated)
    assert gain.tested is not None and gain.tested.gain == pytest.approx(0.05)


def test_a_rate_at_which_a_run_diverges_did_not_train() -> None:
    """Where the largest rate that trains is asked for, to diverge is an answer."""
    study, statement = BY_ID["a_higher_rate_trains"]

    def end(run: StatedRun) -> str:
        return "diverged" if run.arm.startswith("default") and run.rate is not None and run.rate > 1 else "completed"

    world = World(study, statement, lambda run: 1.0, end)
    for (gain,) in judge(world).values():
        assert gain.verdict == SEEN and not gain.word and gain.tested is not None and gain.tested.gain == 1.0


def test_a_rate_that_diverges_is_not_the_lowest() -> None:
    study, statement = BY_ID["near_qk_norm"]
    whole = draw(study, statement, statement.target_gain, 0.001)
    lost = {run.spec.key for run in whole.runs if run.rate == 10 and run.spec.init_seed == 101}
    frames = whole.load()
    frames.runs.loc[list(lost), ["outcome", "validation_loss"]] = ["diverged", math.nan]
    values = RunValues(frames)
    for size in statement.sizes:
        (gain,) = compute_gains(whole.small, statement, size, whole.runs, values)
        assert (gain.word, gain.n) == ("", len(statement.seeds)) and gain.tested is not None
        assert gain.tested.gain == pytest.approx(statement.target_gain, abs=0.001)


@pytest.mark.parametrize("ended", ["diverged", "completed"])
@pytest.mark.parametrize(
    ("name", "arm", "expected"),
    [
        # Of the made-up world: 5, thrice 5.5, and the highest rate, which is 6 for QuacK.
        ("the_rate_matters_less", "default.eta_0.003", (math.log(1024) - 6) / 5),
        ("rates_must_follow_the_weights", "ablation.eta_0.03-tau_0.1", math.log(1024) - 5),
    ],
)
def test_a_run_that_diverges_counts_as_equal_chances_and_so_does_a_worse_one(
    name: str, arm: str, expected: float, ended: str
) -> None:
    study, statement = BY_ID[name]
    whole = draw(study, statement, 0.0, 0.0)
    lost = [run.spec.key for run in whole.runs if run.arm == arm and run.rate == max(statement.rates or [1.0])]
    frames = whole.load()
    loss = math.nan if ended == "diverged" else 50.0
    frames.runs.loc[lost, ["outcome", "validation_loss"]] = [ended, loss]
    values = RunValues(frames)
    for size in statement.sizes:
        (gain,) = compute_gains(whole.small, statement, size, whole.runs, values)
        assert (gain.word, gain.verdict) == ("", SEEN) and gain.tested is not None
        assert gain.tested.gain == pytest.approx(expected)


@pytest.mark.parametrize("arm", ["default.eta_0.003", "quack.eta_0.003-tau_1"])
@pytest.mark.parametrize("ended", ["diverged", "completed"])
def test_an_arm_that_no_rate_trains_is_not_the_least_sensitive(arm: str, ended: str) -> None:
    study, statement = BY_ID["the_rate_matters_less"]
    whole = draw_sided(study, statement, "with")
    frames = whole.load()
    lost = list({run.spec.key for run in whole.runs if run.arm == arm})
    frames.runs.loc[lost, ["outcome", "validation_loss"]] = [ended, math.nan if ended == "diverged" else 50.0]
    for size in statement.sizes:
        (gain,) = compute_gains(whole.small, statement, size, whole.runs, RunValues(frames))
        assert (gain.verdict, gain.word, gain.tested) == (NOT_DECIDED, "diverged", None)


def test_arms_of_which_none_trains_tell_no_difference() -> None:
    study, statement = BY_ID["rates_must_follow_the_weights"]
    whole = draw_sided(study, statement, "with")
    frames = whole.load()
    frames.runs[["outcome", "validation_loss"]] = ["diverged", math.nan]
    for size in statement.sizes:
        (gain,) = compute_gains(whole.small, statement, size, whole.runs, RunValues(frames))
        assert (gain.verdict, gain.word, gain.tested) == (NOT_DECIDED, "diverged", None)


def test_an_arm_that_no_rate_trains_is_said_to_have_diverged() -> None:
    study, statement = BY_ID["hybrid_norm_trains_when_tuned"]
    world = World(
        study, statement, lambda run: 0.0, lambda run: "diverged" if run.arm == "hybrid_norm" else "completed"
    )
    for (gain,) in judge(world).values():
        assert (gain.verdict, gain.word) == (NOT_DECIDED, "diverged")


@pytest.mark.parametrize(("at", "word"), [("end", NOT_DECIDED), ("inside", NOT_SEEN)])
def test_arms_that_train_at_the_largest_rate_tried_are_not_known_to_be_alike(at: str, word: str) -> None:
    """The one could train at a higher rate than the other, which nobody tried."""
    study, statement = BY_ID["a_higher_rate_trains"]
    largest = math.log10(max(statement.rates or ())) if at == "end" else 0.0
    for gains in judge(World(study, statement, lambda run: largest)).values():
        assert join_verdicts(gains) == word


@pytest.mark.parametrize("name", ["slowing_lowers_the_loss", "gains_survive_tuning"])
def test_a_loss_that_is_no_finite_number_was_not_read(name: str) -> None:
    study, statement = BY_ID[name]
    whole = draw_sided(study, statement, "with")
    frames = whole.load()
    key = next(run.spec.key for run in whole.runs if run.arm == statement.arms[-1] and not run.tuning)
    frames.runs.loc[key, "validation_loss"] = math.inf
    gains = compute_gains(whole.small, statement, statement.sizes[0], whole.runs, RunValues(frames))
    assert join_verdicts(gains) == NOT_DECIDED and "not read" in {gain.word for gain in gains}


def test_the_pilot_of_a_tuned_statement_waits_for_the_choice() -> None:
    """While one tuning run is missing no rate is chosen, and nothing is read at several."""
    study, statement = BY_ID["gains_survive_tuning"]
    for lost, word in ((4, "missing"), (None, "")):
        ended = {run.spec.key: "missing" for run in load(study)[1] if run.rate == lost and run.tuning}
        world = World(study, statement, lambda run: 0.01 * run.spec.init_seed, partial(_read_end, ended))
        gains = compute_gains(world.small, statement, "base", world.runs, RunValues(world.load()), pilot=True)
        assert [gain.word for gain in gains] == [word] * 3
        assert [gain.tested is None for gain in gains] == [bool(word)] * 3


def _read_end(ended: dict[str, str], run: StatedRun) -> str:
    return ended.get(run.spec.key, "completed")


def test_a_probe_that_was_not_read_is_said() -> None:
    study, statement = BY_ID["early_norms_fall"]
    world = draw_sided(study, statement, "with")
    key = world.runs[0].spec.key
    world.probes = [row for row in world.probes if row["key"] != key or row["fraction"] != statement.measure.at]
    (gain,) = judge(world)[world.runs[0].size]
    assert (gain.verdict, gain.word, gain.n) == (NOT_DECIDED, "not read", len(statement.seeds) - 1)


def test_one_contrast_that_speaks_against_it_decides() -> None:
    """W_K = I as good as the baseline, W_V = I far worse."""
    study, statement = BY_ID["nor_keys_nor_values"]
    offsets, rng = {"baseline": 0.0, "wk_identity": 0.0, "wv_identity": 0.1}, np.random.default_rng(0)
    world = World(study, statement, lambda run: offsets[run.arm] + rng.normal(0, 0.001))
    for gains in judge(world).values():
        assert {gain.contrast: gain.verdict for gain in gains} == {"key": SEEN, "value": REVERSED}
        assert join_verdicts(gains) == REVERSED


def test_the_lowest_mean_loss_chooses_among_trained_rates() -> None:
    study, statement = BY_ID["gains_survive_tuning"]
    losses = {0.25: 0.3, 0.5: 0.2, 1: 0.1, 2: 0.0, 4: -1.0}

    def end(run: StatedRun) -> str:
        return "diverged" if run.rate == 4 and run.spec.init_seed == 203 else "completed"

    world = World(study, statement, lambda run: losses.get(run.rate or 1, 0.0), end)
    runs = [run for run in world.runs if run.tuning and (run.size, run.arm) == ("base", "softpick")]
    assert choose_rate(runs, RunValues(world.load())) == 2
    missing = World(study, statement, lambda run: 0.0, lambda run: "missing" if run.rate == 1 else "completed")
    assert choose_rate(runs, RunValues(missing.load())) is None


def test_rates_are_chosen_by_loss_whatever_is_measured() -> None:
    """The least likely right answers are not what tuning looks for."""
    study, statement = BY_ID["right_answers_agree_with_the_loss"]
    world = World(study, statement, lambda run: -(run.rate or 1.0))
    frames = world.load()
    for key, run in {run.spec.key: run for run in world.runs if run.tuning}.items():
        frames.runs.loc[key, "validation_loss"] = 5 + abs(math.log2(run.rate or 1) - 1)
    runs = [run for run in world.runs if run.tuning and (run.size, run.arm) == ("base", "softpick")]
    assert choose_rate(runs, RunValues(frames)) == 2


def test_nothing_is_tested_of_some_of_the_runs() -> None:
    """A gain by the runs made first would tell whether seeds are worth adding; of them the noise alone is told."""
    for name in (
        "slowing_lowers_the_loss",
        "gains_survive_tuning",
        "a_higher_rate_trains",
        "the_order_survives_tuning",
    ):
        study, statement = BY_ID[name]
        world = World(study, statement, lambda run: 0.0, lambda run: "completed" if run.pilot else "missing")
        for gains in judge(world).values():
            assert join_verdicts(gains) == NOT_RUN
            assert all(gain.tested is None and math.isnan(gain.power) for gain in gains)
    study, statement = BY_ID["nor_keys_nor_values"]
    world = World(study, statement, lambda run: 0.0, lambda run: "missing" if run.arm == "wv_identity" else "completed")
    for gains in judge(world).values():
        assert [gain.verdict for gain in gains] == [NOT_RUN] * 2 and all(gain.tested is None for gain in gains)


def test_a_run_that_lacks_decides_for_all_contrasts() -> None:
    """One contrast is reversed; of the other a run diverged, and the statement is of both."""
    study, statement = BY_ID["nor_keys_nor_values"]
    offsets, rng = {"baseline": 0.0, "wk_identity": 0.1, "wv_identity": 0.0}, np.random.default_rng(0)
    lost = next(run.spec.key for run in load(study)[1] if run.arm == "wv_identity")
    world = World(
        study,
        statement,
        lambda run: offsets[run.arm] + rng.normal(0, 0.001),
        lambda run: "diverged" if run.spec.key == lost else "completed",
    )
    shallow, deep = (judge(world)[size] for size in statement.sizes)
    assert {gain.contrast: gain.verdict for gain in shallow} == {"key": REVERSED, "value": NOT_DECIDED}
    assert join_verdicts(shallow) == NOT_DECIDED and join_verdicts(deep) == REVERSED


@pytest.mark.parametrize("name", ["queries_are_not_needed_when_both_are_tuned", "the_order_survives_tuning"])
@pytest.mark.parametrize("change", ["missing", "diverged", "lower elsewhere"])
def test_a_rate_is_the_one_that_the_tuning_runs_choose(name: str, change: str) -> None:
    """The file's is the first; a run is lost that chose it or did not, or another rate has a lower loss."""
    study, statement = BY_ID[name]
    assert statement.rates is not None
    size, last = statement.sizes[0], statement.rates[-1]
    whole = draw_sided(study, statement, "with")
    frames = whole.load()
    changed = statement.rates[0] if change == "diverged" else last
    keys = [
        run.spec.key
        for run in whole.runs
        if run.tuning and (run.size, run.arm, run.rate) == (size, statement.arms[0], changed)
    ]
    if change == "lower elsewhere":
        frames.runs.loc[keys, "validation_loss"] -= 0.01
    else:
        frames.runs.loc[keys[:1], ["outcome", "validation_loss"]] = [change, math.nan]
    first, second = (
        compute_gains(whole.small, statement, each, whole.runs, RunValues(frames)) for each in statement.sizes
    )
    assert join_verdicts(second) == SEEN
    expected = (NOT_RUN, "missing") if change == "missing" else (NOT_DECIDED, OTHER_RATE)
    assert (join_verdicts(first), first[0].word) == expected and set(keys) <= set(first[0].runs)
