"""The expressions of an audit file: what they mean, and that bad or hostile ones are refused with their place."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.audit.paper.evaluate import Evaluation, Names, Work
from plumbline.audit.paper.grammar import parse_check
from plumbline.audit.paper.paper_table import PaperTable, quote_name, read_tables
from plumbline.core.errors import UsageError
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedNumber


@pytest.fixture
def table(tmp_path: Path) -> PaperTable:
    (tmp_path / "t.csv").write_text("name,a,b c,d\none,1.0,2.0,\ntwo,3.0,4.0,**5.0 ± 0.1**\nbase,0.50,0.5,1\n")
    (read,) = read_tables(tmp_path)
    return read


def results(table: PaperTable, check: str) -> dict[str, tuple[float, float, float, float]]:
    """Name of each row -> ends of the left and of the right side."""
    left, _, right = parse_check(check, "audit.toml: checks.x")
    names = Names(tables={"t": table}, numbers={"n": PrintedNumber(text="7", exact=True, name="n")})
    sides = {}
    for row in Evaluation(names, "audit.toml: checks.x", Work()).rows(left, right):
        first, second = row.left.expression().ranges[0], row.right.ranges[0]
        sides[row.name] = (low(first), high(first), low(second), high(second))
    return sides


LEAVES = st.sampled_from(("2", "0.5", "7", "3.25", "10"))
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("+", "-", "*", "/")), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        st.tuples(inner, st.sampled_from(("+", "-", "*", "/")), inner).map(" ".join),
        inner.map(lambda x: f"-{x}" if not x.startswith("-") else x),
        inner.map(lambda x: f"({x}) ** 2"),
    ),
    max_leaves=7,
)


@given(FORMULAS)
def test_a_formula_of_numbers_is_what_python_computes(formula: str) -> None:
    left, _, right = parse_check(f"1 = {formula}", "x")
    try:
        expected = eval(formula)  # the oracle, of texts that the test itself makes
    except ZeroDivisionError:
        return
    if abs(expected) > 1e200:
        return
    try:
        (row,) = Evaluation(Names(tables={}, numbers={}), "x", Work()).rows(left, right)
    except UsageError as error:
        assert "divisor can be zero" in str(error)
        return
    value = row.right.printed[0]
    assert low(value) - 1e-6 * abs(expected) - 1e-9 <= expected <= high(value) + 1e-6 * abs(expected) + 1e-9


def test_a_function_of_several_columns_is_one_of_each_row(table: PaperTable) -> None:
    sides = results(table, 't[one, two].a = sample_sd(t[one, two].a, t[one, two]."b c")')
    assert sides["two"][2] <= 0.5**0.5 <= sides["two"][3] and list(sides) == ["one", "two"]


def test_rows_pair_by_name_and_lists_stay_whole(table: PaperTable) -> None:
    sides = results(table, 't[not base].a = t[not base]."b c" - mean(t[:].a) * 0')
    assert list(sides) == ["one", "two"]
    assert sides["two"][:2] == pytest.approx((2.95, 3.05)) and sides["two"][2:] == pytest.approx((3.95, 4.05))


def test_rows_without_a_number_are_left_out_and_counted(table: PaperTable) -> None:
    for check, left_out in (("t[:].a = t[:].d", 1), ("t[:].d = t[:].a", 0)):  # a dash on the left is nothing to check
        left, _, right = parse_check(check, "x")
        evaluation = Evaluation(Names(tables={"t": table}, numbers={}), "x", Work())
        assert [row.name for row in evaluation.rows(left, right)] == ["two", "base"]
        assert evaluation.left_out == left_out


def test_a_cell_has_its_spread_and_a_line_its_columns(table: PaperTable) -> None:
    assert list(results(table, "t[ not base ].a = 1")) == ["one", "two"]
    assert results(table, "t.two.d.sd = 0.1")[""][:2] == pytest.approx((0.05, 0.15))
    assert list(results(table, 't.two[a, "b c"] = t.two[a, "b c"]')) == ["a", "b c"]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("t.two.a", "character 8"),
        ("t.two.a = ", "character 11"),
        ("t.twoo.a = 1", "'twoo'; did you mean 'two'"),
        ("1 = t.two.e", "character 5: t.csv"),
        ("t.two.a = meen(t[:].a)", "function 'meen'; did you mean 'mean'"),
        ("t.two.a = mean(t.two.a)", "character 16: mean takes"),
        ("t.two.a = exp(exp(exp(100)))", "exp takes numbers"),
        ("t.two.a = 9 ** 9 ** 9 ** 9", "exponent may be"),
        ("t.two.a = 1 / (t.two.a - 3)", "divisor can be zero"),
        ("t.two.a = sqrt(-1)", "no finite value"),
        ("t.two.a = log(0)", "no finite"),
        ("t.two.a = " + "(" * 60 + "1" + ")" * 60, "nest deeper than 40"),
        ("t.two.a = " + "-" * 60 + "1", "nest deeper than 40"),
        ("t.two.a = 1" + " + 1" * 900, "most 2000"),
        ("t.two.a = __import__('os')", "function '__import__'"),
        ("t.two.a = t.two.a.__class__", "parts sd and brackets"),
        ("t.two.a = welch_p(1, 2, 3)", "character 11: write welch_p(t, sd_a, sd_b"),
        ("t.two.a = rank(t[:].a, 3)", "here: rank(x, others[:])"),
        (
            't[:].a = sample_sd(t[:]["Seed 1", "Seed 2"])',
            'sample_sd(t[:]."Seed 1", t[:]."Seed 2")',
        ),
        ("t.two.Δ = 1", "character 7: 'Δ' has no meaning"),
        ("t.two.b c (%) = 1", "stands in quotes"),
        ("t.two.a = 1; 2", "character 12: ';' has no meaning"),
        ("t.two.a = 1) + (2", "follow here, and ')'"),
        ("t.two.a = (1", "character 13"),
        ("t.two.a = 1 = 1", "character 13: nothing may follow here"),
        ("t.two.a = 0x10", "character 11: '0x10' is neither"),
        ("t.two.a = mean(x=1)", "character 17: nothing may follow here"),
        ("t.two.a = [1, 2][0]", "character 18"),
        ("t.two.a = [1, 2]", "character 11"),
        ("t.two.a = (1 < 2)", "a number, a cell"),
        ("t.two.a = 7 // 2", "a number, a cell"),
        ("t.two.a = t[0:9].a", "a name is expected"),
        ("t.two.a = mean(*t)", "a number, a cell"),
        ('t.two.a = f"t.two.a"', "sign is expected"),
        ("t.two.a = 1" + "+1" * 300, "200 signs"),
        ("t[one, two].a = t[one].a", "the sides name 2 and 1 rows"),
        ("t[one, two].d = 5", "'one', 'd' is empty: no number"),
    ],
)
def test_a_bad_expression_is_refused_with_its_place(table: PaperTable, check: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        results(table, check)
    assert str(error.value).startswith("audit.toml: checks.x") and message in str(error.value)


def test_work_is_bounded(tmp_path: Path) -> None:
    rows = "".join(f"r{n},{n}\n" for n in range(1900))
    (tmp_path / "t.csv").write_text("name,a\n" + rows)
    (table,) = read_tables(tmp_path)
    began = time.process_time()
    with pytest.raises(UsageError, match="compute too many numbers"):
        results(table, "t[:].a = " + " + ".join(["mean(t[:].a)", "t[:].a"] * 70))
    assert time.process_time() - began < 20


TOKENS = st.sampled_from(
    ["t", ".", "two", '"b c"', "'is'", "[", "]", "(", ")", "+", "-", "**", "/", "//", "=", "<", ">=", ",", "1", ".5",
     "1e", ":", ":=", "others", "not", "mean", "if", "lambda", "None", "f", " ", "\n", "#", "\\", "é", "@", "0x", "_"]
)  # fmt: skip


@given(st.lists(TOKENS, max_size=30).map("".join))
def test_any_soup_is_a_check_or_refused_with_its_place(soup: str) -> None:
    for text in (soup, f"t.two.a = {soup}"):
        try:
            _, sign, _ = parse_check(text, "x")
        except UsageError as error:
            assert re.match(r"x, character \d+: ", str(error))
        else:
            assert sign in text


@pytest.mark.parametrize("row", ["is", "None", "lambda", "others", "not"])
def test_a_word_of_pythons_is_a_name_like_any_other(row: str) -> None:
    left, _, right = parse_check(f't.{row}.a = t["{row}"].a', "x")
    assert left.row == row  # type: ignore[attr-defined]
    assert (right.row.kind, right.row.names) == ("these", (row,))  # type: ignore[attr-defined]


@given(st.text(min_size=1, max_size=12))
def test_any_name_can_be_written_in_quotes(name: str) -> None:
    left, _, _ = parse_check(f"t.{quote_name(name)}.a = 1", "x")
    assert left.row == name  # type: ignore[attr-defined]
