"""Means and standard deviations as papers print them: the tests that they allow, what is read, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.verdict.__main__ import arguments, main, make_request
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import Evidence, RunsSummary
from plumbline.verdict.judge import judge, judge_goal
from plumbline.verdict.numbers.numbers_verdict import judge_numbers
from plumbline.verdict.numbers.summary_comparison import compute_rounded_p, judge_summaries
from plumbline.verdict.sources.printed_spreads import PrintedSpread
from plumbline.verdict.sources.row_files import ColumnNames, read_rows
from plumbline.verdict.sources.run_rows import read_table

UP = ComparisonTerms(higher=True, minimum_gain=0.1)
FLAGS = ("--baseline", "baseline", "--metric", "acc", "--higher-is-better")
PRINTED = "method,acc,std,n\nours,55.2,0.4,3\nbaseline,54.2,0.6,3\n"


def summary(values: np.ndarray) -> RunsSummary:
    return RunsSummary(mean=float(values.mean()), std=float(values.std(ddof=1)), n=values.size)


def table(folder: Path, text: str, spread: PrintedSpread | None = None, suffix: str = ".csv") -> Evidence:
    path = folder / f"r{suffix}"
    path.write_text(text)
    return read_table(read_rows(path), ColumnNames(metric="acc"), spread_options=spread)


@pytest.mark.parametrize(("n", "m"), [(2, 5), (3, 3), (8, 2)])
def test_what_is_left_of_the_runs_gives_the_tests_of_the_runs(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    ours, theirs = rng.normal(1, 1, n), rng.normal(0, 2, m)
    by_seed = [{str(seed): float(value) for seed, value in enumerate(side)} for side in (ours, theirs)]
    runs, printed = judge("a", *by_seed, UP, tries=2), judge_summaries("a", summary(ours), summary(theirs), UP, tries=2)
    for key in ("gain", "sigma", "freedom", "t", "p", "low", "high", "resolved", "seeds_to_decide", "prediction"):
        assert getattr(printed, key) == pytest.approx(getattr(runs, key)), key
    assert printed.outcome is runs.outcome and printed.plan == "two" and printed.pairs is None
    assert (printed.welch.df, printed.welch.p_greater) == pytest.approx((runs.welch.df, runs.welch.p_greater))
    goal, by_hand = judge_summaries("a", summary(ours), 0.5, UP), judge_goal("a", by_seed[0], 0.5, UP)
    assert (goal.p, goal.high, goal.plan) == (pytest.approx(by_hand.p), pytest.approx(by_hand.high), "goal")
    assert math.isnan(goal.welch.p) and goal.prediction is None


TENTHS = st.integers(1, 30).map(lambda tenths: tenths / 10)


@given(gain=st.integers(-20, 40), stds=st.tuples(TENTHS, TENTHS), ns=st.tuples(st.integers(2, 9), st.integers(2, 9)))
def test_the_pages_range_of_p_holds_all_printed_numbers(gain: int, stds, ns) -> None:
    """By scipy, at the corners of the rounding intervals (one of them has each end) and within."""
    half, means = 0.05, (50 + gain / 10, 50.0)
    sides = [RunsSummary(mean=m, std=s, n=n, mean_rounding=half, std_rounding=half) for m, s, n in zip(means, stds, ns)]
    rounded = compute_rounded_p(judge_summaries("a", *sides, ComparisonTerms(higher=True)))
    assert rounded is not None
    rng, corners = np.random.default_rng(0), np.stack(np.meshgrid(*[[-1, 1]] * 4), axis=-1).reshape(-1, 4)
    ps = []
    for moved in half * np.concatenate([corners, rng.uniform(-1, 1, (20, 4))]):
        m, s = np.array(means) + moved[:2], np.array(stds) + moved[2:]
        test = stats.ttest_ind_from_stats(m[0], s[0], ns[0], m[1], s[1], ns[1], alternative="greater")
        ps.append(float(test.pvalue))
    assert (min(ps), max(ps)) == pytest.approx((rounded.low, rounded.high))


def test_the_means_of_three_are_not_taken_for_single_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.csv"
    path.write_text(PRINTED)
    assert main([str(path), *FLAGS, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    ours = report["methods"]["ours"]
    assert (round(ours["t"], 2), ours["freedom"], round(ours["p"], 3), ours["n"]) == (2.40, 4, 0.037, 3)
    assert ours["rounded"]["others"] == ["keep"], "p is 0.022 at one end: the digits do not say"
    facts = (
        "one-sided p = 0.037, two-sided 0.074; from printed means",
        "p between 0.022 and 0.06, and with it the verdict",
    )
    assert all(fact in report["sentence"] for fact in facts)
    page = (tmp_path / "r.verdict.md").read_text()
    path.write_text(PRINTED + "worse,52,0.4,3\n")
    apart = ["--ledger", str(tmp_path / "l.jsonl"), "--out", str(tmp_path / "two.md")]
    assert main([str(path), *FLAGS, *apart]) == 0, "p must be half as large for two tries, at either end"
    assert "`l.jsonl`, from printed means" in capsys.readouterr().out
    assert main([str(path), *FLAGS, *apart, "--alpha", "0.05"]) == 0
    assert "moves 1 verdict.\n" in capsys.readouterr().out
    assert "column `n`; the spread: column `std`" in page
    assert "divide by n and" in page and "p = 0.061." in page
    assert "from these: pairs of seeds" in page
    with pytest.raises(PlumblineError, match=r"--paired: 'ours' has a mean .* pairs"):
        main([str(path), *FLAGS, "--paired"])


@pytest.mark.parametrize(
    ("cell", "mean", "std", "off", "off_std"),
    [
        ("55.2 ± 0.4", 55.2, 0.4, 0.05, 0.05),
        ("55.20+-0.4", 55.2, 0.4, 0.005, 0.05),
        ("-55.2 +/- .40", -55.2, 0.4, 0.05, 0.005),
        (r"$55.2 \pm 0.4$", 55.2, 0.4, 0.05, 0.05),
        (r"$\mathbf{55.2}_{\pm 0.4}$", 55.2, 0.4, 0.05, 0.05),
        ("**55 ± 4**", 55, 4, 0.5, 0.5),
        ("55.2(4)", 55.2, 0.4, 0.05, 0.05),
        ("55.2 (0.4)", 55.2, 0.4, 0.05, 0.05),
        ("1.2e-2 ± 3e-3", 0.012, 0.003, 0.0005, 0.0005),
    ],
)
def test_cells_as_papers_write_them(tmp_path: Path, cell: str, mean, std, off, off_std) -> None:
    for spread, factor in (("std", 1), ("sem", math.sqrt(3))):
        read = table(tmp_path, f"method\tacc\na\t{cell}\nb\t1 ± 1\n", PrintedSpread(3, spread), ".tsv")
        row = read.summaries["a"]
        assert (row.mean, row.n, row.mean_rounding) == (pytest.approx(mean), 3, pytest.approx(off))
        assert (row.std, row.std_rounding) == pytest.approx((factor * std, factor * off_std))
    assert ("was read as 55.2 ± 0.4" in " ".join(read.notes)) == ("(" in cell)


def test_a_metric_s_own_columns_come_before_those_of_all(tmp_path: Path) -> None:
    text = "method,loss,loss_std,acc,acc_sd,n,acc_seeds\na,1,9,2.0,0.5,9,4\nb,1,9,1.0,0.5,9,5\n"
    read = table(tmp_path, text).summaries
    assert [(each.mean, each.std, each.n) for each in read.values()] == [(2.0, 0.5, 4), (1.0, 0.5, 5)]


def test_a_percent_sign_after_every_value_is_a_unit(tmp_path: Path) -> None:
    read = table(tmp_path, "method,seed,acc\na,1,55.2%\na,2,nan\nb,1,54.2 %\n")
    assert read.values == {"a": {"1": 55.2}, "b": {"1": 54.2}} and read.lost == {"a": {"2": "diverged"}}
    (note,) = read.notes
    assert "`acc`" in note and " %" in note
    read = table(tmp_path, "method,acc,std,n\na,5.5%,0.4%,3\nb,5.4%,0.5%,3\n")
    assert [each.std for each in read.summaries.values()] == [0.4, 0.5]
    read = table(tmp_path, "method,acc\na,5.5% ± 0.4%\nb,5.4 ± 0.5\\%\n", PrintedSpread(3, "std"))
    assert [each.mean for each in read.summaries.values()] == [5.5, 5.4]


def test_a_row_of_several_runs_among_single_ones_is_told(tmp_path: Path) -> None:
    read = table(tmp_path, "method,seed,acc,std,n\na,1,2,0.1,9\nb,1,1,0.1,9\n")
    assert read.values["a"] == {"1": 2} and "`std`, `n`" in read.notes[-1] and "row is one run" in read.notes[-1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("method,acc\na,55.2 ± 0.4\nb,54.2\n", (3, "std"), "3, column 'acc': '54.2' is no mean"),
        ("method,acc\na,55.2%\nb,54.2\n", (), "line 3.*'acc'.*'54.2'.*no %.*'55.2%'.*line 2"),
        ("method,acc\na,55.2 ± 0.4\nb,5 ± 1\n", (3, ""), r"say --spread std or --spread sem"),
        ("method,acc\na,55.2 ± 0.4\nb,5 ± 1\n", (None, "std"), "many runs: add --seeds"),
        ("method,acc,std\na,55.2,0.4\nb,5,1\n", (), "many runs: .* never assumed"),
        (PRINTED, (3, ""), "column 'n'; leave out --seeds"),
        (PRINTED, (None, "sem"), "'std'.*--spread"),
        (PRINTED.replace("0.4,3", "0.4,1"), (), "2, column 'n': '1' is no number"),
        (PRINTED.replace("0.4,3", "nan,3"), (), "2, column 'acc': '55.2' with the spread 'nan'"),
        (PRINTED.replace("0.4,3", ",3"), (), r"line 2, column 'std': is empty"),
        (PRINTED + "ours,55,1,3\n", (), "line 4, .*'ours'.*line 2"),
        ("method,acc,loss,std,n\na,1,1,1,3\nb,1,1,1,3\n", (), "'std'.*'acc'.*'acc_std'"),
        ("method,acc,std,sd,n\na,1,1,1,3\nb,1,1,1,3\n", (), r"columns \['std', 'sd'"),
        ("method,seed,acc\na,1,2 ± 1\nb,1,1 ± 1\n", (3, "std"), "column 'seed'"),
        ("method,acc,std,n\na,2 ± 1,1,3\nb,1 ± 1,1,3\n", (), "'2 ± 1'.*'std'"),
        ("method,acc\na,2\nb,1\n", (3, ""), "--seeds and --spread"),
        ("method,acc\na,55.2 (4)\nb,54.2 (6)\n", (), r"line 2, column 'acc': '55.2 \(4\)'"),
        ("method,step,acc,std,n\na,1,1,1,3\nb,1,1,1,3\n", (), "means.*spreads"),
    ],
)
def test_nothing_is_guessed(tmp_path: Path, text: str, options: tuple, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        table(tmp_path, text, PrintedSpread(*options))


def test_means_alone_lead_to_their_spreads(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for text, message in (
        (
            "method,acc,n\nours,55.2,3\nbaseline,54.2,3\n",
            "Means of several runs are no single runs: give columns std and",
        ),
        (PRINTED.replace("0.4", "0.0").replace("0.6", "0.0"), "the printed standard deviations are 0"),
    ):
        path.write_text(text)
        with pytest.raises(PlumblineError, match=message):
            judge_numbers(make_request(arguments().parse_args([str(path), *FLAGS]), ""))
    path.write_text("commit\tacc\tstatus\na\t1\tkeep\n")
    with pytest.raises(PlumblineError, match="read as search; --seeds and --spread"):
        main([str(path.rename(tmp_path / "r.tsv")), *FLAGS[2:], "--seeds", "3"])
