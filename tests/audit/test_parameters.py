"""Closed counts against the printed totals, and Theorem 2's ratio against its limits and simulation."""

import numpy as np
import pytest

from plumbline.audit.parameters import (
    KEY_NORMS,
    QUACK_MHA,
    TRANSFER_BASE,
    premature,
    quack_mla,
    query_free,
    sequence_flops,
    transfer_extra,
)
from plumbline.cli import PlumblineError
from plumbline.theory.gated_energy import energy_ratio, gelu, second_moment, silu


def test_totals_to_the_digit():
    assert TRANSFER_BASE.total() == 1_216_710_656
    assert TRANSFER_BASE.total() + transfer_extra("selective_attn") == 1_191_544_832
    assert premature().total() == 269_682_240 and premature("large").total() == 700_491_264
    assert premature(norm_vectors=1).total() == 269_642_880
    assert premature(biases=False).total() == 269_509_440
    assert premature(ffn_matrices=3, ffn_width=2560).total() == 269_707_840
    assert premature(norm_vectors=1, biases=False, ffn_matrices=3, ffn_width=2560).total() == 269_470_080
    small = query_free(744, 4 * 744, learned_query=True)
    assert (small.body(), small.total()) == (79_727_784, 117_915_816)
    assert query_free(768, 3456, learned_query=False).total() == query_free(768, 3072, learned_query=True).total()
    assert QUACK_MHA.total() == 1_040_246_784 and quack_mla() == 998_041_600
    assert KEY_NORMS.total() == 88_630_528


def test_flops_formula_by_hand():
    layer = 2 * 1024**2 * 2048 + 1024 * (4 * 2048**2 + 4 * 2048 * 512 + 6 * 2048 * 5632)
    assert sequence_flops(TRANSFER_BASE, 1024) == 3 * 24 * layer
    with pytest.raises(PlumblineError, match="unknown method 'softpik'"):
        transfer_extra("softpik")


def test_energy_ratio_has_its_closed_form_and_limits():
    # A gate with the branch's own activation leaves r nu / m.
    assert energy_ratio(3840, 2560, 0.384, gate="gelu") == pytest.approx(2 / 3 * 0.384, rel=1e-12)
    # Near 0 both activations are x / 2; far out both are relu: the ratio of second moments tends to 1.
    for nu in (1e-8, 1e8):
        assert energy_ratio(1, 1, nu, gate="silu") / nu == pytest.approx(1, rel=1e-3)
    with pytest.raises(PlumblineError, match="unknown gate"):
        energy_ratio(1, 1, 1, gate="relu")  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match="above 0"):
        energy_ratio(1, 1, 0, gate="silu")


@pytest.mark.parametrize("function", [gelu, silu])
def test_quadrature_agrees_with_simulation(function):
    draws = np.random.default_rng(0).normal(scale=0.384**0.5, size=400_000)
    assert second_moment(function, 0.384) == pytest.approx(np.mean(function(draws) ** 2), rel=0.02)
