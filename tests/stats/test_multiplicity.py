"""Corrections against statsmodels and their definitions."""

import gc
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from plumbline.core.errors import PlumblineError
from plumbline.stats.multiplicity import adjust, family_wise_error_rate

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.fixture(autouse=True, scope="module")
def _look_for_no_garbage() -> Iterator[None]:
    """Each call of statsmodels has Python look for it: for seconds, among what all tests before these have left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


@settings(max_examples=8)
@given(P_VALUES)
def test_agrees_with_statsmodels_and_is_ordered(p):
    bonferroni, holm, bh = (adjust(p, name) for name in ("bonferroni", "holm", "bh"))
    for ours, name in ((bonferroni, "bonferroni"), (holm, "holm"), (bh, "fdr_bh")):
        np.testing.assert_allclose(ours, multipletests(p, method=name)[1])
    assert (bonferroni >= holm - 1e-12).all() and (holm >= bh - 1e-12).all() and (bh >= np.array(p) - 1e-12).all()


@settings(max_examples=8)
@given(P_VALUES, st.integers(0, 5))
def test_missing_tests_never_help_the_others(p, missing):
    for name in ("bonferroni", "holm", "bh"):
        alone, among = adjust(p, name), adjust([*p, *[math.nan] * missing], name, m=len(p) + missing)
        assert (among[: len(p)] >= alone - 1e-12).all() and np.isnan(among[len(p) :]).all()


def test_bad_input_is_named():
    with pytest.raises(PlumblineError, match="unknown correction 'sidak'"):
        adjust([0.1], "sidak")  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match="outside"):
        adjust([1.5], "holm")


def test_family_wise_error_rate():
    assert family_wise_error_rate(0.05, 19) == pytest.approx(1 - 0.95**19)
    assert family_wise_error_rate(0.05, 0) == 0 and family_wise_error_rate(1, 3) == 1
    with pytest.raises(PlumblineError, match="alpha"):
        family_wise_error_rate(1.5, 2)
