"""Counts, ranks and orders of printed numbers."""

import pytest

from plumbline.audit.counting import count, falling, in_same_order, rank, rising
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedNumber


def number(text):
    return PrintedNumber(text=text)


def several(*texts):
    return [number(text) for text in texts]


@pytest.mark.parametrize(
    ("expression", "printed", "rounded"),
    [
        # Printed as equal is not larger: 0.4779 lies 0.0050 from 0.4829, and binary fractions do not decide it.
        (count([number("0.4829") - x for x in several("0.4779", "0.4829")] < number("0.0050")), (1, 1), (1, 2)),
        (count(number("2.0") < several("1.0", "2.0", "3.0")), (1, 1), (1, 2)),
        (count(-number("2.0") > several("-3.0", "-2.0", "2")), (1, 1), (1, 2)),
        (rising(several("1.0", "1.0", "2.0")), (1, 1), (1, 2)),
        (falling(several("3.0", "2.0", "2.5")), (1, 1), (1, 1)),
        (count(number("2.0") / 2 < several("1.2", "0.9")), (1, 1), (1, 1)),
        (in_same_order(several("1.0", "2.0", "3.0"), several("1.0", "3.0", "2.0")), (2, 2), (2, 2)),
        (in_same_order(several("1.0", "1.0", "3.0"), several("1.0", "2.0", "3.0")), (2, 2), (2, 3)),
        (rank(number("2.0"), several("3.0", "2.0", "1.0")), (2, 2), (2, 3)),
    ],
)
def test_a_count_at_the_printed_numbers_is_whole(expression, printed, rounded):
    at, over = expression.one()
    assert (low(at), high(at)) == printed
    assert (low(over), high(over)) == rounded
