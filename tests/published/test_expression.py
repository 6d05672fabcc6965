"""Numbers with operators: the text states what was computed, and the range holds whatever the roundings allow."""

import operator
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from plumbline.audit.math_functions import between, largest, mean, sqrt, total
from plumbline.core.errors import PlumblineError
from plumbline.published.expression import ExpressionInput, collect_cells, select_named_inputs
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedColumn, PrintedNumber, exact

BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
TEXTS = st.decimals(min_value=-30, max_value=30, places=2).map(str)

#: Half a unit of their last digit.
HALF = Fraction(5, 1000)

#: Where a number lies in its rounding.
SHARES = st.fractions(0, 1, max_denominator=97)


def none_of(*signs):
    """Whether a tree ends in none of these: (a ** 2) ** 2 happens to be a ** 2 ** 2, and --(a + b) to be --a + b."""
    return lambda tree: not isinstance(tree, tuple) or tree[0] not in signs


#: Trees of operations over the names a to d and constants.
TREES = st.recursive(
    st.sampled_from("abcd") | st.integers(2, 4),
    lambda parts: st.one_of(
        st.tuples(st.sampled_from(list(BINARY)), parts, parts),
        st.tuples(st.just("**"), parts.filter(none_of("**", "neg")), st.sampled_from([2, -2])),
        st.tuples(st.just("neg"), parts.filter(none_of("neg", "+", "-"))),
        st.tuples(st.just("abs"), parts),
    ),
    max_leaves=7,
)


def evaluate_tree(tree, names, constant):
    """A tree's operations applied to whatever stands for its names: numbers with operators, or fractions."""
    if isinstance(tree, str):
        return names[tree]
    if isinstance(tree, int):
        return constant(tree)
    sign, first, *rest = tree
    if sign in ("neg", "abs"):
        return getattr(operator, sign)(evaluate_tree(first, names, constant))
    if sign == "**":
        return evaluate_tree(first, names, constant) ** rest[0]
    return BINARY[sign](evaluate_tree(first, names, constant), evaluate_tree(rest[0], names, constant))


def evaluate_text(text, values):
    """What a text gives as Python reads it, in exact fractions."""
    return eval(text, {"abs": abs}, dict(values))


def without_a_pair(text):
    """The text without one of its pairs of brackets, for each pair that is not a call."""
    open_at = []
    for place, letter in enumerate(text):
        if letter == "(":
            open_at.append(place)
        elif letter == ")":
            start = open_at.pop()
            if not text[:start].endswith("abs"):
                yield text[:start] + text[start + 1 : place] + text[place + 1 :]


def with_names_of_their_own(tree, names):
    """The tree with the next of `names` for each leaf: where one stands twice, needed brackets can look needless."""
    if isinstance(tree, str | int):
        return next(names)
    sign, *parts = tree
    span = slice(1) if sign == "**" else slice(None)
    return (sign, *(with_names_of_their_own(part, names) for part in parts[span]), *parts[len(parts[span]) :])


NAMES = "abcdefgh"
NAMED = {name: PrintedNumber(text="1.5", name=name) for name in NAMES}

#: Points at which two different expressions do not give the same by accident.
POINTS = [
    dict(zip(NAMES, (Fraction(-1) ** place * Fraction(a, b) for place, (a, b) in enumerate(pairs)), strict=True))
    for pairs in (
        [(7, 3), (5, 2), (11, 7), (13, 5), (19, 11), (41, 3), (23, 17), (2, 29)],
        [(17, 11), (3, 13), (23, 3), (29, 7), (5, 19), (37, 2), (31, 23), (43, 5)],
    )
]


@given(TREES)
@example(("*", "a", ("*", "b", "c")))
@example(("/", "a", ("neg", ("*", "b", "c"))))
def test_the_text_is_what_was_computed_with_no_bracket_too_many(shape):
    tree = with_names_of_their_own(shape, iter(NAMES))
    text = evaluate_tree(tree, NAMED, exact).expression().text
    exactly = [evaluate_tree(tree, point, Fraction) for point in POINTS]
    assert [evaluate_text(text, point) for point in POINTS] == exactly
    for shorter in without_a_pair(text):
        assert [evaluate_text(shorter, point) for point in POINTS] != exactly, f"{text} says the same as {shorter}"


@given(TREES, st.tuples(*[TEXTS] * 4), st.tuples(*[SHARES] * 4))
def test_what_rounds_to_the_inputs_stays_in_the_range(tree, texts, shares):
    numbers = {name: PrintedNumber(text=text, name=name) for name, text in zip("abcd", texts, strict=True)}
    printed = dict(zip("abcd", map(Fraction, texts), strict=True))
    near = {name: printed[name] + (2 * share - 1) * HALF for name, share in zip("abcd", shares, strict=True)}
    try:
        at_printed, at_near = evaluate_tree(tree, printed, Fraction), evaluate_tree(tree, near, Fraction)
    except ZeroDivisionError:
        assume(False)
    middle, ranges = evaluate_tree(tree, numbers, exact).expression().one()
    assert low(middle) <= at_printed <= high(middle)
    assert low(ranges) <= at_near <= high(ranges) and low(ranges) <= at_printed <= high(ranges)


@given(TEXTS, TEXTS, SHARES, SHARES)
def test_a_comparison_is_open_exactly_where_roundings_decide(first, second, one, other):
    a, b = PrintedNumber(text=first), PrintedNumber(text=second)
    _, ranges = (a > b).one()
    apart = Fraction(first) - Fraction(second)
    assert (low(ranges), high(ranges)) == (apart > Fraction(1, 100), apart > -Fraction(1, 100))
    x, y = (Fraction(text) + (2 * share - 1) * HALF for text, share in ((first, one), (second, other)))
    assert low(ranges) <= (x > y) <= high(ranges)
    assert [(b < a).one()[0]] == [(a > b).one()[0]] and low((a > b).one()[0]) == (apart > 0)


def test_an_input_used_twice_never_narrows_the_range():
    x = PrintedNumber(text="1.0", name="x")
    middle, ranges = (x - x).one()
    assert low(middle) == high(middle) == 0
    assert (low(ranges), high(ranges)) == pytest.approx((-0.1, 0.1))
    assert select_named_inputs(x - x) == [ExpressionInput("x", "1.0")]


def test_text_inputs_and_cells_of_a_row():
    score, best = (
        PrintedNumber(text=text, name=f"t.{row}.z", cells=(("t", row, "z"),)) for row, text in (("a", "2"), ("b", "-3"))
    )
    column = PrintedColumn(name="t[:].z", numbers=(score, best))
    expression = 100 * (mean(column) - -best) / sqrt(exact(4, "n")) ** -1 - largest([score, abs(best)])
    assert expression.text == "100 * (mean(t[:].z) - -t.b.z) / sqrt(n) ** -1 - largest([t.a.z, abs(t.b.z)])"
    assert [(entry.name, entry.shown) for entry in select_named_inputs(expression)] == [
        ("t[:].z", "2 -3"), ("t.b.z", "-3"), ("n", "4"), ("t.a.z", "2"),
    ]  # fmt: skip
    assert collect_cells(expression) == {("t", "a", "z"), ("t", "b", "z")}
    assert (2 ** (score > 1)).text == "2 ** (t.a.z > 1)" and (-(score * best)).text == "-t.a.z * t.b.z"
    assert ((score**2) ** 3).text == "(t.a.z ** 2) ** 3" and (score ** (best**3)).text == "t.a.z ** t.b.z ** 3"
    assert ((-score) ** 2).text == "(-t.a.z) ** 2" and (-(score**2)).text == "-t.a.z ** 2"
    assert (-(score + best)).text == "-(t.a.z + t.b.z)"


def test_lists_go_through_operators_one_by_one():
    column = PrintedColumn(name="x", numbers=(exact(1), exact(2), exact(3)))
    assert [low(value) for value in (10 * column - [1, 0, exact(5)]).printed] == [9, 20, 25]
    assert low(total(column * column).one()[0]) == 14
    with pytest.raises(PlumblineError, match="2 and 3 numbers"):
        column * [1, 2]
    with pytest.raises(PlumblineError, match="x \\* 2 is a list"):
        (column * 2).one()


def test_what_lies_between_is_marked_through_operators():
    assert (1 + 100 * between(1, 2)).spans and not (1 + exact(2, "n")).spans


def test_expressions_need_neither_pandas_nor_torch():
    code = (
        "import sys, plumbline.audit.counting, plumbline.audit.math_functions, plumbline.published.printed_number\n"
        "assert not {'numpy', 'pandas', 'scipy', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
