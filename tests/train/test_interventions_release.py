"""The release rule on the paper's grid of evaluations: 4,768 steps, one every 0.5 %."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs import components
from plumbline.train.interventions._release_rule import ReleaseRule, apply_rule, find_release_step, ramp_share

STEPS = 4768
NULL = 0.0036


def rule(**options: Any) -> ReleaseRule:
    return ReleaseRule(**({"release": "online"} | options))


def scores(chosen: ReleaseRule, **reached: int) -> list[tuple[int, float, float]]:
    """Scores at the rule's evaluations: 0.004 at first, then what each keyword states from that evaluation on (its
    number on the grid), as ``at_0_006=6``."""
    rows = []
    for number, step in enumerate(chosen.evaluations(STEPS)):
        score = 0.004
        for name, first in reached.items():
            if number >= first:
                score = float(name.removeprefix("at_").replace("_", ".", 1))
        rows.append((step, score, NULL))
    return rows


def percent(step: int | None) -> str:
    return f"{100 * step / STEPS:.2f}"


@pytest.mark.parametrize("name", ["slow_query_key", "entropy_floor", "learning_rate_factor"])
def test_a_rule_and_what_follows_one_have_the_same_defaults(name: str) -> None:
    options = components.options("intervention", name)
    default = ReleaseRule(release=options["release"].default)
    own = {field.name for field in dataclasses.fields(ReleaseRule)} - {"context"}
    assert {key: options[key].default for key in own} == {key: getattr(default, key) for key in own}


def test_the_grid_is_that_of_the_printed_releases() -> None:
    grid = rule().evaluations(STEPS)
    assert [grid[number] for number in (0, 6, 8, 10, 11)] == [0, 143, 191, 238, 262]
    assert len(grid) == 25 and grid[-1] == 572 == round(0.12 * STEPS)


@pytest.mark.parametrize("patience, printed", [(1, "3.00"), (3, "4.01"), (5, "4.99")])
def test_the_counter_counts_inside_the_window_only(patience: int, printed: str) -> None:
    """A threshold that is met from step 0 on still needs its patience after 3 % (table 8, "lower threshold")."""
    chosen = rule(threshold=0.003, patience=patience)
    logged = scores(chosen)
    assert all(score >= 0.003 for _, score, _ in logged)
    assert percent(find_release_step(logged, chosen, STEPS)) == printed
    counters = [row.counter for row in apply_rule(logged, chosen, STEPS)]
    assert counters[:8] == [0] * 6 + [1, 2]


@pytest.mark.parametrize("patience", [1, 3, 5])
def test_counter_from_start_would_release_at_windows_start(patience: int) -> None:
    chosen = rule(threshold=0.003, patience=patience, patience_counts_before_window=True)
    assert percent(find_release_step(scores(chosen), chosen, STEPS)) == "3.00"
    # Even so, the score must still be up there at the start.
    fallen = [(step, score if step < 100 else 0.0, null) for step, score, null in scores(chosen)]
    assert find_release_step(fallen, chosen, STEPS) == 572


def test_the_six_rules_of_table_8_on_one_log() -> None:
    """The score crosses 0.005 at 3.0 % and 0.007 at 4.5 %, as the printed releases imply."""
    logged = scores(rule(), at_0_006=6, at_0_008=9)
    variants: list[tuple[dict[str, Any], str]] = [
        ({}, "4.01"),
        ({"threshold": 0.003}, "4.01"),
        ({"threshold": 0.007}, "5.49"),
        ({"patience": 1}, "3.00"),
        ({"patience": 5}, "4.99"),
        ({"window_end": 0.08}, "4.01"),
    ]
    for options, printed in variants:
        assert percent(find_release_step(logged, rule(**options), STEPS)) == printed, options


def test_forced_at_the_end_of_the_window_and_not_before() -> None:
    logged = [(step, 0.0, NULL) for step in rule().evaluations(STEPS)]
    assert percent(find_release_step(logged, rule(), STEPS)) == "12.00"
    assert find_release_step(logged[:-1], rule(), STEPS) is None
    assert percent(find_release_step(logged, rule(window_end=0.08), STEPS)) == "7.99"
    # An end that is not an evaluation of the log's: at the end all the same.
    assert find_release_step(logged, rule(window_end=0.0826), STEPS) == round(0.0826 * STEPS) == 394
    assert 394 not in [step for step, _, _ in logged] and 394 in rule(window_end=0.0826).evaluations(STEPS)


def test_one_evaluation_below_begins_the_count_anew() -> None:
    chosen = rule()
    logged = scores(chosen, at_0_006=6)
    logged[7] = (logged[7][0], 0.0049, NULL)
    assert percent(find_release_step(logged, chosen, STEPS)) == "4.99"
    logged[7] = (logged[7][0], math.nan, NULL)
    assert percent(find_release_step(logged, chosen, STEPS)) == "4.99"
    assert [row.counter for row in apply_rule(logged, chosen, STEPS)][6:11] == [1, 0, 1, 2, 3]


def test_at_another_context_the_limit_goes_by_the_null() -> None:
    short = rule(context=256)
    logged = [(step, 0.006 + 0.0002 * number, 0.0115 / 2) for number, step in enumerate(short.evaluations(STEPS))]
    assert not rule().relative and rule().limit(0.0115) == 0.005 and "0.005 (absolute" in rule().describe()
    assert short.relative and short.limit(0.0115) == pytest.approx(0.0161) and "1.4 times its null" in short.describe()
    # 1.4 x 0.00575 = 0.00805 is reached at number 11 (0.0082), so the third in a row is number 13.
    assert find_release_step(logged, short, STEPS) == round(0.005 * 13 * STEPS)
    assert find_release_step(logged, rule(), STEPS) == round(0.005 * 8 * STEPS)


def test_fixed_and_never_need_no_scores() -> None:
    assert find_release_step([], rule(release="fixed", release_at=0.06), STEPS) == 286
    assert find_release_step([], rule(release="never"), STEPS) is None
    assert rule(release="fixed").evaluations(STEPS) == rule(release="never").evaluations(STEPS) == []


def test_the_ramp_is_linear_in_steps_and_ends_at_exactly_one() -> None:
    chosen = rule()  # 1 % of 4,768 steps are 48
    shares = [ramp_share(step, 191, chosen, STEPS) for step in range(1, STEPS + 1)]
    assert shares[:191] == [0.0] * 191, "the release governs the steps after it"
    assert shares[191:239] == [number / 48 for number in range(1, 49)] and set(shares[238:]) == {1.0}
    assert ramp_share(192, 191, rule(ramp=0.0), STEPS) == 1.0 and ramp_share(191, 191, rule(ramp=0.0), STEPS) == 0.0
    assert ramp_share(STEPS, None, chosen, STEPS) == 0.0


def test_a_run_of_few_steps_is_evaluated_once_a_step() -> None:
    assert rule().evaluations(100) == list(range(13))
    assert find_release_step([(step, 1.0, NULL) for step in range(13)], rule(), 100) == 5


@pytest.mark.parametrize(
    "options, message",
    [
        ({"window_start": 0.2}, r"window_start \(0.2\) and window_end \(0.12\)"),
        ({"window_end": 1.2}, "fractions.*training"),
        ({"release_at": 3.0}, r"release_at \(3\) must be a fraction"),
        ({"every": 0.0}, r"every \(0\)"),
        ({"ramp": -0.1}, r"ramp \(-0.1\)"),
        ({"patience": 0}, r"patience \(0\) must be"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        rule(**options)


def test_run_that_is_released_online_goes_by_code_of_probe() -> None:
    """Another lower-copy score would be another run."""
    from pathlib import Path

    from plumbline.specs.code_hash import component_files
    from plumbline.specs.components import available

    for name in ("slow_query_key", "entropy_floor", "learning_rate_factor"):
        files = {path.name for path in component_files(Path(available("intervention")[name]))}
        assert {"lower_copy.py", "_scores.py", "_release_rule.py", "_until_release.py"} <= files
