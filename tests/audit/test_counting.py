"""Counts, ranks and orders of printed numbers."""

import pytest

from plumbline.audit import counting
from plumbline.audit.formulas import FORMULAS
from plumbline.audit.interval import Number, high, low


def both(name, *texts, method):
    """Ends of a counting formula over texts, taken as printed (`middle`) or as intervals."""
    given = [
        [getattr(Number(text=one), method)() for one in text]
        if isinstance(text, list)
        else getattr(Number(text=text), method)()
        for text in texts
    ]
    result = FORMULAS[name].function(*given)
    return low(result), high(result)


@pytest.mark.parametrize(
    ("name", "texts", "printed", "rounded"),
    [
        # Printed as equal is not larger: 0.4779 lies 0.0050 from 0.4829, and binary fractions do not decide it.
        ("count near", (["0.4779", "0.4829"], "0.4829", "0.0050"), (1, 1), (1, 2)),
        ("count above", (["1.0", "2.0", "3.0"], "2.0"), (1, 1), (1, 2)),
        ("count below minus", (["-3.0", "-2.0", "2"], "2.0"), (1, 1), (1, 2)),
        ("count rising", (["1.0", "1.0", "2.0"],), (1, 1), (1, 2)),
        ("count falling", (["3.0", "2.0", "2.5"],), (1, 1), (1, 1)),
        ("count larger", (["3.0", "1.0"], ["2.0", "2.0"]), (1, 1), (1, 1)),
        ("count above half", (["1.2", "0.9"], "2.0"), (1, 1), (1, 1)),
        ("count in same order", (["1.0", "2.0", "3.0"], ["1.0", "3.0", "2.0"]), (2, 2), (2, 2)),
        ("count in same order", (["1.0", "1.0", "3.0"], ["1.0", "2.0", "3.0"]), (2, 2), (2, 3)),
        ("rank", ("2.0", ["3.0", "2.0", "1.0"]), (2, 2), (2, 3)),
    ],
)
def test_a_count_at_the_printed_numbers_is_whole_and_lies_in_its_range(name, texts, printed, rounded):
    assert FORMULAS[name].whole and FORMULAS[name].function.__module__ == counting.__name__
    assert both(name, *texts, method="middle") == printed
    assert both(name, *texts, method="interval") == rounded
