"""The picture of a table's runs has them in the order of time, or says that this is not known."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plumbline.verdict.__main__ import main
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.picture import DecisionPicture, PicturedArm
from plumbline.verdict.runs_picture import describe_order, picture_runs

#: Seed, value of the baseline and of the candidate.
VALUES = [(1, 3.21, 3.11), (2, 3.19, 3.10), (3, 3.20, 3.12), (4, 3.22, 3.09)]
#: The order in which the runs of VALUES were made.
MOMENTS = ["03:00", "09:00", "01:00", "08:00", "07:00", "04:00", "02:00", "05:00"]


def judge(folder: Path, moments: list[str]) -> tuple[str, str]:
    """The page of a table with this column of times, and its picture's description."""
    runs = [(arm, seed, value) for seed, *values in VALUES for arm, value in zip(("base", "new"), values)]
    rows = [f"{arm},{seed},{value},{moment}" for (arm, seed, value), moment in zip(runs, moments)]
    (folder / "r.csv").write_text("\n".join(["method,seed,loss,Created", *rows]))
    assert main([str(folder / "r.csv"), "--baseline", "base", "--metric", "loss", "--lower-is-better"]) == 0
    page, root = (folder / "r.verdict.md").read_text(), ElementTree.parse(folder / "r.verdict.svg").getroot()
    assert "](r.verdict.svg)\n\n## Ledger" in page, "the picture stands where the verdict's evidence does"
    return page, next(each.text or "" for each in root.iter() if each.tag.endswith("desc"))


def test_runs_stand_in_the_order_of_time_where_it_is_known(tmp_path: Path) -> None:
    times = [f"2026-10-01T{moment}Z" for moment in MOMENTS]
    page, description = judge(tmp_path, times)
    assert "these were made." in page
    in_time = "base 3.190, 3.220, 3.210; new 3.120, 3.090; base 3.200; new 3.100, 3.110."
    assert f"made: {in_time}" in description
    days = ["2026-10-01"] * 8
    for unknown in ([""] * 8, days, [times[0]] * 8, [*times[:7], ""]):
        page, description = judge(tmp_path, unknown)
        assert " made is not known" in page
        assert "not known: base 3.210; new 3.110" in description


def test_a_trend_in_the_times_of_a_table_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{arm},{seed},{mean - seed / 100},2026-10-01 {10 + seed}:00:00"
        for arm, mean in (("base", 3.2), ("new", 3.1))
        for seed in range(8)
    ]
    (tmp_path / "r.csv").write_text("\n".join(["method,seed,loss,start_time", *rows]))
    flags = ["--baseline", "base", "--metric", "loss", "--lower-is-better"]
    assert main([str(tmp_path / "r.csv"), *flags]) == 13
    assert "better than earlier ones" in capsys.readouterr().err


def test_a_picture_of_more_arms_than_are_drawn_says_so() -> None:
    runs = {f"m{arm}": {str(seed): RunEvidence(value=arm + seed / 10) for seed in range(2)} for arm in range(50)}
    evidence = Evidence(metric="loss", runs=runs)
    picture = picture_runs(evidence, ["m0"], list(runs)[1:], {}, title="t", higher=False, listed_by="rows")
    assert len(picture.arms) == 40 and describe_order(picture, 50).endswith("It has the first 40 of 50.")


@pytest.mark.parametrize(("first", "count"), [(0, 2), (0, 15), (139, 24), (95, 10), (990, 30), (0, 200)])
def test_numbers_of_runs_stand_apart(first: int, count: int) -> None:
    values = [(str(number), 1 + number / 1000) for number in range(count)]
    arm = PicturedArm(name="a", values=values, places=range(first, first + count))
    root = ElementTree.fromstring(DecisionPicture(title="t", metric="loss", higher=False, arms=[arm]).svg())
    texts = [each for each in root.iter() if each.tag.endswith("text")]
    height = next(each.get("y") for each in texts if each.text == "run")
    marks = [(float(each.get("x", "")), each.text or "") for each in texts if each.get("y") == height]
    numbers = [(x, text) for x, text in marks if text.isdecimal()]
    assert numbers and numbers[0][1] == str(first + 1)
    for (left, text), (right, other) in pairwise(numbers):
        assert right - left > 3.3 * (len(text) + len(other)) + 5, (text, other)
