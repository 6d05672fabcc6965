"""Initial scores: what is printed, what a LayerNorm makes of it, and what is drawn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.studies.query_free.theory.initial_scores import expect_spread, measure_spread

DOCUMENT = {"width": 768, "heads": 12, "init_std": 0.02}


def test_the_printed_numbers_are_those_of_inputs_of_length_one() -> None:
    spread = expect_spread(**DOCUMENT, length=1.0)
    assert (f"{spread.standard:.4f}", f"{spread.reduced:.4f}") == ("0.0032", "0.0058")
    assert (f"{spread.ratio:.1f}", f"{1 / spread.ratio:.2f}") == ("1.8", "0.55")


def test_scores_behind_a_layer_norm_grow_with_the_width() -> None:
    spread = expect_spread(**DOCUMENT, length=math.sqrt(768)).divide(8)
    assert (f"{spread.standard:.3f}", f"{spread.reduced:.3f}", f"{spread.divide(2).reduced:.3f}") == (
        "0.307", "0.554", "0.277",
    )  # fmt: skip


@pytest.mark.parametrize("length", [1.0, math.sqrt(768)])
def test_drawn_scores_spread_as_the_formulas_say(length: float) -> None:
    measured_spread, formula_spread = (
        measure_spread(**DOCUMENT, length=length),
        expect_spread(**DOCUMENT, length=length),
    )
    assert measured_spread.standard == pytest.approx(formula_spread.standard, rel=0.03)
    assert measured_spread.reduced == pytest.approx(formula_spread.reduced, rel=0.03)


@given(
    heads=st.integers(1, 16), head_width=st.integers(4, 64), init_std=st.floats(1e-3, 1.0), length=st.floats(0.1, 100.0)
)
def test_the_ratio_hangs_on_width_and_init_alone(heads: int, head_width: int, init_std: float, length: float) -> None:
    width = heads * head_width
    spread = expect_spread(width=width, heads=heads, init_std=init_std, length=length)
    assert spread.ratio == pytest.approx(1 / (init_std * math.sqrt(width)))
    assert spread.divide(2).ratio == pytest.approx(spread.ratio)


def test_a_width_that_cannot_be_cut_into_heads_is_refused() -> None:
    with pytest.raises(PlumblineError, match="12 heads"):
        expect_spread(width=760, heads=12, init_std=0.02, length=1.0)
