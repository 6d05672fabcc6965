"""The theory's formulas against computations that know nothing of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.studies.premature import theorem_numbers
from plumbline.studies.premature.gated_energy import energy_ratio, gelu, second_moment, silu
from plumbline.studies.premature.gradient_step_on_scores import (
    DirectedHead,
    causal_adjoint,
    frobenius,
    power,
    random_head,
    sharp_head,
)
from plumbline.studies.premature.theorem_numbers import least_range, slack

SHAPE = {"tokens": 12, "width": 20, "head_width": 6, "rank": 4, "init_std": 0.2}


def test_the_adjoint_is_the_gradient_through_a_causal_softmax():
    draw = np.random.default_rng(1)
    scores, upstream = draw.standard_normal((9, 9)), draw.standard_normal((9, 9))
    z = torch.tensor(scores, requires_grad=True)
    weights = z.masked_fill(torch.ones(9, 9, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
    (weights * torch.tensor(upstream)).sum().backward()
    assert np.allclose(causal_adjoint(scores, upstream), z.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_are_autograds(seed):
    head = random_head(seed, **SHAPE)
    x, query, key = (torch.tensor(array) for array in (head.x_TD, head.query_DW, head.key_DW))
    query.requires_grad_(), key.requires_grad_()
    z = (x @ query) @ (x @ key).T / math.sqrt(head.width)
    (z * torch.tensor(head.adjoint_TT)).sum().backward()
    for ours, theirs in zip(head.gradients, (query.grad, key.grad), strict=True):
        assert np.allclose(ours, theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rate", [1e-3, 1.0, 100.0])
def test_bounds_are_in_order_and_hold(seed, rate):
    head = random_head(seed, **SHAPE, sharpness=1.0 + seed)
    moved = frobenius(head.score_change(rate, 2 * rate))
    assert moved <= head.bound(rate, 2 * rate) <= head.unconditional_bound(rate, 2 * rate)
    assert head.bound(rate, 2 * rate) <= head.bound_by_localisation(rate, 2 * rate)


def test_the_step_is_measured_on_the_chosen_directions():
    head = random_head(3, **SHAPE)
    p = head.basis_DR @ head.basis_DR.T
    query, key = head.gradients
    change = (head.query_DW - 0.1 * query) @ (head.key_DW - 0.2 * key).T - head.query_DW @ head.key_DW.T
    plain = head.x_TD @ p @ change @ p @ head.x_TD.T / math.sqrt(head.width)
    assert np.allclose(head.score_change(0.1, 0.2), plain, atol=1e-12)
    assert head.landing(head.key_DW) == pytest.approx(np.linalg.norm(head.x_TD @ head.key_DW @ head.key_DW.T @ p))
    assert head.energy == pytest.approx(np.linalg.norm(head.x_TD @ p) ** 2)


def test_the_bound_is_met_by_an_aligned_head():
    head = sharp_head(16, 20, 6)
    assert frobenius(head.score_change(1e-8, 1e-8)) / head.bound(1e-8, 1e-8) == pytest.approx(1.0, abs=1e-5)
    assert frobenius(head.score_change(1e-8, 0.0)) / head.bound(1e-8, 0.0) == pytest.approx(1.0, abs=1e-5)


def test_locality_of_known_heads():
    """Orthonormal columns and a projector onto them: one. The whole space: at most one."""
    draw = np.random.default_rng(2)
    weight = np.linalg.qr(draw.standard_normal((20, 6)))[0]
    x = draw.standard_normal((12, 20))
    head = DirectedHead(x_TD=x, query_DW=weight, key_DW=weight, adjoint_TT=np.eye(12), basis_DR=weight)
    assert head.locality(weight) == pytest.approx(1.0)
    whole = DirectedHead(x_TD=x, query_DW=weight, key_DW=weight, adjoint_TT=np.eye(12), basis_DR=np.eye(20))
    assert whole.locality(weight) <= 1.0
    assert whole.locality(3.0 * weight) == pytest.approx(whole.locality(weight))


def test_the_square_is_of_a_stream_that_is_all_immature():
    head = random_head(0, tokens=64, width=200, head_width=16, rank=20, init_std=0.044)
    assert power(head.restrict_to_chosen(), 0.5, 1e-4) == pytest.approx(2.0, abs=1e-3)
    assert power(head, 0.5, 1e-4) < 1.8
    assert head.weaken(0.25).energy == pytest.approx(0.25 * head.energy)
    rest = head.x_TD - head.restrict_to_chosen().x_TD
    assert np.allclose(head.weaken(0.25).x_TD - head.weaken(0.25).restrict_to_chosen().x_TD, rest)


def test_rho_of_the_papers_widths_and_of_random_networks():
    these = theorem_numbers.sizes("premature")
    assert these.variance == pytest.approx(0.384)
    assert theorem_numbers.rho(these, "gelu") == pytest.approx(2 / 3 * 0.384)
    assert theorem_numbers.rho(these, "silu") == pytest.approx(0.2163, abs=5e-5)
    for gate in ("gelu", "silu"):
        single, gated, with_single, with_gated = theorem_numbers.draw_energies(these, gate, seed=5)
        assert gated / single == pytest.approx(theorem_numbers.rho(these, gate), rel=0.05)
        assert with_gated < with_single
    assert energy_ratio(3840, 2560, 0.384, gate="silu") == theorem_numbers.rho(these, "silu")


def test_the_write_where_training_starts_is_the_dossiers():
    """Root of the mean square of a drawn network's output at full width (tokens with norm sqrt(960))."""
    these = theorem_numbers.sizes("premature")
    per_channel = theorem_numbers.TOKENS * these.single.width
    single, swiglu, *_ = theorem_numbers.draw_energies(these, "silu")
    _, geglu, *_ = theorem_numbers.draw_energies(these, "gelu")
    write_sizes = [math.sqrt(energy / per_channel) for energy in (single, swiglu, geglu)]
    assert write_sizes == [
        pytest.approx(0.0730, rel=0.02),
        pytest.approx(0.0339, rel=0.02),
        pytest.approx(0.0369, rel=0.02),
    ]


def test_the_range_is_met_by_a_row_of_equals_and_nothing_less():
    scores = np.concatenate([[least_range(50, math.log(0.98 / 0.02))], np.zeros(49)])
    weights = np.exp(scores) / np.exp(scores).sum()
    assert weights[0] == pytest.approx(0.98) and slack(scores) == pytest.approx(0.0, abs=1e-9)
    assert slack(scores + 7.0) == pytest.approx(0.0, abs=1e-9)
    scores[1] -= 1.0
    assert slack(scores) > 0.9
    assert slack(np.array([800.0, 0.0, 0.0])) == pytest.approx(0.0, abs=1e-9)


def test_a_range_of_one_key_is_refused():
    with pytest.raises(PlumblineError, match="two keys"):
        least_range(1, 0.0)
    with pytest.raises(PlumblineError, match="two keys"):
        slack(np.array([1.0]))


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
