"""Every named function: its interval holds its value at the printed numbers, and at numbers that round to them."""

from __future__ import annotations

import contextlib
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.audit.paper.evaluate import load_function
from plumbline.core.errors import PlumblineError
from plumbline.published.expression import FUNCTIONS, Expression
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedNumber


def numbers_between(lowest: str, highest: str) -> st.SearchStrategy[PrintedNumber]:
    """Numbers of no digit after the point or of up to three."""
    return st.integers(0, 3).flatmap(
        lambda places: st.decimals(Decimal(lowest), Decimal(highest), places=places).map(
            lambda value: PrintedNumber(text=f"{value:f}")
        )
    )


ANY, SHARE = numbers_between("-9", "9"), numbers_between("0", "1")
WHOLE = st.integers(3, 40).map(lambda n: PrintedNumber(text=str(n)))
SPREAD, MANY = numbers_between("0.6", "9"), st.lists(numbers_between("-9", "9"), min_size=3, max_size=4)
SCORES = st.lists(numbers_between("-9", "9"), min_size=4, max_size=4)
SIGNED = numbers_between("-1", "1")

#: What each function is given.
GIVEN = {
    "sqrt": (SPREAD,), "exp": (ANY,), "log": (SPREAD,), "log10": (SPREAD,), "arccos": (SIGNED,),
    "cos": (numbers_between("0", "180"),), "two_sided_p": (ANY,), "one_sided_p": (ANY,),
    **dict.fromkeys(("total", "mean", "largest", "smallest", "rising", "falling", "sample_sd"), (MANY,)),
    "between": (ANY, ANY), "softmax": (SCORES, st.integers(0, 3).map(lambda n: PrintedNumber(text=str(n)))),
    "rank": (ANY, MANY), "in_same_order": (SCORES, SCORES), "spearman_rho": (SCORES, SCORES),
    "p_of_rho": (SIGNED, WHOLE), "nearest_possible_rho": (SIGNED, WHOLE), "t_two_sided_p": (ANY, WHOLE),
    "t_one_sided_p": (ANY, WHOLE), "bonferroni_survivors": (MANY, WHOLE, SHARE),
    "holm_survivors": (MANY, WHOLE, SHARE), "bh_survivors": (MANY, WHOLE, SHARE), "bh_from_bonferroni": (MANY, SHARE),
    "welch_p": (ANY, SPREAD, SPREAD, WHOLE), "welch_t_of_seeds": (MANY, MANY), "welch_p_of_seeds": (MANY, MANY),
    "share_of_overlap": (MANY, MANY), "f_p": (SPREAD, WHOLE, WHOLE), "chi_squared_p": (SPREAD, WHOLE),
}  # fmt: skip


def near(number: PrintedNumber, draw: random.Random) -> PrintedNumber:
    """An exact number that rounds to the printed one."""
    interval = number.interval()
    if Decimal(number.text) == Decimal(number.text).to_integral_value() and "." not in number.text:
        return number.exactly()  # a count is what it is
    return PrintedNumber(text=repr(draw.uniform(low(interval), high(interval))), exact=True)


def call_named(name: str, numbers: list[object]) -> Expression:
    return load_function(name)(*numbers)


def test_every_function_is_here() -> None:
    for of_each_module in ("t_two_sided_p", "f_p"):
        load_function(of_each_module)
    ours = {name for name, function in FUNCTIONS.items() if function.module.startswith("plumbline.audit")}
    assert ours == {*GIVEN, "count"}  # a count is a sum of comparisons: tests/audit/test_counting.py


@pytest.mark.parametrize("name", GIVEN)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_its_interval_holds_what_the_printed_numbers_give(name: str, data: st.DataObject, seed: int) -> None:
    numbers = [data.draw(strategy) for strategy in GIVEN[name]]
    try:
        value, ranges = call_named(name, numbers).one()
    except (PlumblineError, ArithmeticError):
        return  # refused, not answered
    draw = random.Random(seed)
    inputs = [[near(x, draw) for x in one] if isinstance(one, list) else near(one, draw) for one in numbers]
    values = [value]
    with contextlib.suppress(PlumblineError, ArithmeticError):
        values.append(call_named(name, inputs).one()[0])
    for one in values:
        middle = (low(one) + high(one)) / 2
        slack = 1e-9 * max(1.0, abs(middle))
        if middle == middle and abs(middle) != float("inf"):  # welch's t of two lists without spread is none
            assert low(ranges) - slack <= middle <= high(ranges) + slack, (value, ranges)
