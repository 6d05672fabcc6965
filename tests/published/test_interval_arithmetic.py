"""Printed numbers as intervals: what a text stands for, and how verdicts follow."""

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.audit.audit_rows import EDGE, MATCH, MISMATCH, WITHIN, verdict
from plumbline.core.errors import PlumblineError
from plumbline.published.interval_arithmetic import high, low, meet, monotone, over_corners, span
from plumbline.published.printed_number import PrintedNumber, exact

TEXTS = st.decimals(min_value=-1000, max_value=1000, places=4).map(str)


@pytest.mark.parametrize(
    ("text", "ends"),
    [("0.4829", (0.48285, 0.48295)), ("23", (22.5, 23.5)), ("-2.07", (-2.075, -2.065)), ("1.5e-4", (1.45e-4, 1.55e-4))],
)
def test_the_printed_text_decides_the_rounding(text, ends):
    interval = PrintedNumber(text=text).interval()
    assert (low(interval), high(interval)) == pytest.approx(ends, rel=1e-12)
    assert low(interval) <= PrintedNumber(text=text).value <= high(interval)


def test_trailing_zeros_counts_and_bounds():
    assert high(PrintedNumber(text="0.4820").interval()) < high(PrintedNumber(text="0.482").interval())
    assert low(exact(44000).interval()) == high(exact(44000).interval()) == 44000
    bound = PrintedNumber(text="1e-7", relation="<").interval()
    assert low(bound) == 0 and high(bound) == pytest.approx(1e-7)
    with pytest.raises(PlumblineError, match=r"'about 3' \(sec 1\)"):
        PrintedNumber(text="about 3", where="sec 1")


@given(TEXTS, st.floats(0, 1))
def test_everything_inside_rounds_to_the_text(text, share):
    interval = PrintedNumber(text=text).interval()
    inside = Decimal(low(interval) + share * (high(interval) - low(interval)))
    unit = Decimal("0.0001")
    rounded = {(inside + nudge).quantize(unit, mode) for mode in (ROUND_HALF_EVEN, ROUND_HALF_UP)
               for nudge in (Decimal("1e-11"), Decimal("-1e-11"))}  # fmt: skip
    assert Decimal(text) in rounded
    assert not meet(interval, span(high(interval) + 1e-6, high(interval) + 1))


def test_verdicts():
    printed = PrintedNumber(text="0.30")
    assert verdict(printed, span(0.304, 0.304), span(0.29, 0.31)) == MATCH
    assert verdict(printed, span(0.305, 0.305), span(0.3, 0.31)) == MATCH  # a half may round either way
    assert verdict(printed, span(0.31, 0.31), span(0.304, 0.32)) == WITHIN
    assert verdict(printed, span(0.31, 0.31), span(0.306, 0.32)) == MISMATCH
    assert verdict(printed, span(0.31, 0.31), span(0.305, 0.32)) == EDGE
    # A count, or a result without rounding, has no end to lie on.
    assert verdict(exact(3), span(4, 4), span(3, 4)) == WITHIN
    assert verdict(printed, span(0.31, 0.31), span(0.305, 0.305)) == WITHIN


def test_monotone_and_corners():
    square = monotone(lambda x: -x * x, span(1, 2))
    assert (low(square), high(square)) == (-4, -1)
    product = over_corners(lambda x, y: x * y, span(-1, 2), span(3, 4))
    assert (low(product), high(product)) == (-4, 8)
