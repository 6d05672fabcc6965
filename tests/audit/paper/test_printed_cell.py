"""Cells as papers print them: a number only where all of the text is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.audit.paper.printed_cell import apply_unit, mark_text, read_cell


@pytest.mark.parametrize(
    ("text", "number", "rest"),
    [
        ("0.4829", "0.4829", {}),
        ("−2.07", "-2.07", {}),
        ("+1.2", "1.2", {}),
        ("1,234,567", "1234567", {}),
        ("48.2%", "48.2", {"unit": "%"}),
        ("1.5e-4", "1.5e-4", {}),
        ("1.2×10^{-4}", "1.2e-4", {}),
        ("48.2 ± 0.3", "48.2", {"sd": "0.3"}),
        ("48.2 (0.3)", "48.2", {"bracket": "0.3"}),
        ("48.2 (±0.3)", "48.2", {"sd": "0.3"}),
        ("48.2 (+1.4%)", "48.2", {"bracket": "1.4"}),
        ("**48.2**", "48.2", {"bold": True}),
        ("**_48.2_**", "48.2", {"bold": True, "underlined": True}),
        ("48.2†", "48.2", {}),
        ("48.2**", "48.2", {}),
        ("<0.001", "0.001", {"bound": True}),
        ("124M", "124", {"unit": "M"}),
        ("48.2 ↑", "48.2", {"arrow": 1, "leading": False}),
        ("▼ 0.3%", "0.3", {"arrow": -1, "leading": True, "unit": "%", "signed": True}),
        ("(↓0.3)", "0.3", {"arrow": -1}),
        ("81.7 (↓0.3)", "81.7", {"bracket": "-0.3", "arrow": 0}),
        ("81↓3", "81", {"bracket": "-3"}),
        ("81.7_+0.3", "81.7", {"bracket": "0.3"}),
        ("55.4^(c)", "55.4", {}),
        ("55.4^1", "55.4", {}),
        ("224^2", None, {}),
        ("~3", "3", {"relation": "~", "bound": True}),
        ("≥ 99", "99", {"relation": ">"}),
        ("~10^3", "1e3", {"relation": "~"}),
        ("$5.328M", "5.328", {"unit": "M"}),
        ("60 million", "60", {"unit": "M"}),
        ("60 Million", "60", {"unit": "M"}),
        ("US$ 990", "990", {}),
        ("12 345", "12345", {}),
        ("3.5 hours", "3.5", {"unit": "hours"}),
        ("54.5 (+19.0%)", "54.5", {"bracket": "19.0", "bracket_unit": "%", "bracket_signed": True}),
        ("50.1 [49.0, 51.2]", "50.1", {"bracket": None}),
        ("50.1 (49.0–51.2)", "50.1", {"bracket": None}),
        ("0.03**", "0.03", {"stars": 2}),
        ("p < 0.001", "0.001", {"relation": "<"}),
        ("81.7^+0.3", "81.7", {"bracket": "0.3", "bracket_signed": True}),
        ("81.7^-0.3", "81.7", {"bracket": "-0.3"}),
        ("53.3^+0.3_-0.2", "53.3", {"bracket": None, "sd": None}),
        ("53.3_{-0.2}^{+0.3}", "53.3", {"bracket": None, "sd": None}),
        ("53.3^0.3_0.2", None, {}),
        ("3^-2", None, {"bracket": None}),
        ("81.7_0.3", "81.7", {"bracket": "0.3", "bracket_signed": False}),
        ("82.1 ± 0.3%", "82.1", {"sd": "0.3", "unit": "%"}),
        ("0.58 (+/- 0.03)", "0.58", {"sd": "0.03"}),
        ("5.0 (std 0.3)", "5.0", {"sd": "0.3"}),
        ("81.7† ± 0.2", "81.7", {"sd": "0.2"}),
        ("71.67 ± 4.71 (N=12)", "71.67", {"sd": "4.71"}),
        ("50.1 / +49.2 / -51.0", None, {"values": ("50.1", "49.2", "-51.0")}),
        # No number in full, so none:
        ("50.1 [12, 13]", None, {}),
        ("2, 4, 8", None, {"values": ()}),
        ("12 34", None, {}),
        ("GPT-2", None, {}),
        ("1,23", None, {}),
        ("12.3.4", None, {}),
        ("1e999999999", None, {}),
        ("9" * 60, None, {}),
        ("nan", None, {}),
        ("Infinity", None, {}),
        ("٣", None, {}),
        ("", None, {"empty": True}),
        ("--", None, {"empty": True}),
    ],
)
def test_a_cell(text: str, number: str | None, rest: dict[str, object]) -> None:
    cell = read_cell(text)
    assert cell.number == number
    for name, value in rest.items():
        assert getattr(cell, name) == value, name


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-10000, max_value=10000), st.booleans())
def test_a_number_with_marks_is_read_back(value: object, bold: bool) -> None:
    cell = read_cell(mark_text(f"{value:f}", bold=bold, underlined=not bold))
    assert cell.number == f"{value:f}" and (cell.bold, cell.underlined) == (bold, not bold)


def test_units_keep_the_digits() -> None:
    assert apply_unit("1.3", "B") == "1.3E+9"
