"""The small table of what a verdict stands on has the numbers of the checks, and lists what none of them knows."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence


def examine(*runs: tuple[str, RunEvidence], **more: Any) -> dict[str, every_check.CheckAnswer]:
    by_arm: dict[str, dict[str, RunEvidence]] = {"base": {}, "new": {}}
    for seed, (arm, run) in enumerate(runs):
        by_arm[arm][str(seed)] = run
    evidence = Evidence(metric="loss", runs=by_arm)
    return every_check.examine(ComparedArms(evidence=evidence, baseline="base", candidate="new", **more))


def read_rows(page: str) -> dict[str, list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {label: rest for label, *rest in cells}


def test_the_table_has_the_numbers_of_the_checks() -> None:
    curves = [{step: 1 / step + 0.01 * (seed * step % 7) for step in range(1, 10)} for seed in range(1, 7)]
    arms = [("base", 3.0, 10.0), ("base", 3.2, 11.0), ("base", 3.1, 12.0), ("new", 2.0, 24.0), ("new", 2.6, None)]
    answers = examine(
        *(
            (arm, RunEvidence(value=value, order=place, seconds=seconds, curve=curves[place]))
            for place, (arm, value, seconds) in enumerate(arms)
        ),
        ("base", RunEvidence(value=None, seconds=99.0)),
    )
    page = every_check.write_answers(answers)
    rows, order = read_rows(page), answers["runs are independent"].numbers
    assert rows["time, median"] == ["11 s", "24 s", "2.18 times"], "a run without a value moves no median"
    assert rows["standard deviation"] == ["0.1", "0.424", f"4.24 times, p = {answers['one sigma'].numbers['p']:.2g}"]
    trend = f"rank correlation {order['correlation']:+.2f}, p = {order['p']:.2g}"
    assert rows["trend with their order"] == ["", "", trend]
    nearest = f"{order['nearest_curves']:.2g} of the median distance"
    assert rows["distance of the nearest curves"] == ["", "", nearest]
    assert ": last step, " in page and " and peak memory." in page
    assert "tokens, median" not in rows and "whole model" not in rows
    assert page.index("time, median") < page.index("what it says") < page.index("Not known here: ")
    assert every_check.write_answers({}) == ""


@pytest.mark.parametrize(("seconds", "both"), [(10.0, "equal"), (10.01, "+0.1 %")])
def test_arms_of_nearly_equal_time_have_no_ratio(seconds: float, both: str) -> None:
    runs = [(arm, RunEvidence(value=1.0, seconds=each)) for arm, each in (("base", 10.0), ("new", seconds))]
    assert read_rows(every_check.write_answers(examine(*runs)))["time, median"][2] == both


def test_a_paired_test_has_no_spread_of_an_arm() -> None:
    runs = [("base", RunEvidence(value=each, seconds=5.0)) for each in (1.0, 2.0)]
    page = every_check.write_answers(examine(*runs, *(("new", RunEvidence(value=each)) for each in (1.0, 2.0))))
    assert read_rows(page)["time, median"] == ["5 s", "not known", "not known"]
    paired = every_check.write_answers(examine(*runs, paired=True)).partition("what it says")[0]
    assert "standard deviation" not in paired and "trend with their order" in paired


def test_of_many_methods_each_has_a_line() -> None:
    by_n = (2, 3, 4, 5)
    by_method = {
        f"m{factor}": examine(
            *(("base", RunEvidence(value=each, seconds=5.0)) for each in (1.0, 2.0)),
            ("new", RunEvidence(value=1.0, seconds=5.0 * factor)),
        )
        for factor in by_n
    }
    page = every_check.write_answers_of_methods(by_method)
    assert "time, median" in page and "standard deviation" not in page
    lines = [line for line in page.splitlines() if "equal budget" not in line]
    assert [sum(f"{5 * n} s ({n} times)" in line and f"`m{n}`" in line for line in lines) for n in by_n] == [1] * 4
