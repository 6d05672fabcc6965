"""LayerNorm and a change of basis: the lemma's construction, and what becomes of it without its premises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.studies.query_free.theory.norm_semiconjugacy import (
    Semiconjugacy,
    checks,
    gaussian_singular_values,
    invert_norm,
    least_residual,
    norm_on_zero_mean,
    normalise,
    relative_difference,
    semiconjugacy,
    transfer_norm,
)

#: Type -> relative error that it is good for here.
TYPES = {np.float64: 1e-9, np.float32: 2e-3}


def draw_matrix(width: int, seed: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng([width, seed])
    # Far from singular: float32 has seven digits.
    matrix_DD = draw.standard_normal((width, width)) / np.sqrt(width) + 2 * np.eye(width)
    return matrix_DD.astype(dtype), draw.standard_normal((20, width)).astype(dtype)


@given(
    width=st.integers(2, 48),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(list(TYPES)),
    eps=st.sampled_from([1e-5, 1e-3, 1.0]),
    share=st.sampled_from([1.0, 0.5, -1.0]),
)
def test_the_norm_of_f_is_the_matrix_times_the_norm(
    width: int, seed: int, dtype: type, eps: float, share: float
) -> None:
    matrix_DD, x_ND = draw_matrix(width, seed, dtype)
    conjugacy = semiconjugacy(matrix_DD, share)
    assert conjugacy.residual(x_ND, eps) < TYPES[dtype]
    assert conjugacy.residual(x_ND, eps, lambda x_ND: x_ND[:, :1] ** 2) < TYPES[dtype]
    assert norm_on_zero_mean(conjugacy.matrix_DD) == pytest.approx(abs(share), rel=TYPES[dtype])
    np.testing.assert_allclose(conjugacy.matrix_DD, conjugacy.diagonal_D[:, None] * matrix_DD)


@given(width=st.integers(2, 48), seed=st.integers(0, 10**6), eps=st.sampled_from([1e-5, 1e-2, 1.0]))
def test_the_inverse_undoes_the_norm_but_for_the_mean(width: int, seed: int, eps: float) -> None:
    x_ND = draw_matrix(width, seed, np.float64)[1]
    centred_ND = x_ND - x_ND.mean(axis=1, keepdims=True)
    assert relative_difference(invert_norm(normalise(x_ND, eps), eps), centred_ND) < 1e-8


def test_the_norm_is_that_of_torch() -> None:
    import torch

    x_ND = draw_matrix(9, 0, np.float64)[1]
    want = torch.nn.functional.layer_norm(torch.from_numpy(x_ND), (9,), eps=1e-3).numpy()
    np.testing.assert_allclose(normalise(x_ND, 1e-3), want, atol=1e-12)


@given(width=st.integers(3, 40), seed=st.integers(0, 10**6), eps=st.sampled_from([1e-5, 1e-2, 1.0]))
def test_theorem_8_3_moves_a_basis_through_gain_and_norm(width: int, seed: int, eps: float) -> None:
    basis_DD, x_ND = draw_matrix(width, seed, np.float64)
    draw = np.random.default_rng(seed)
    gain_D, weight_DD = draw.uniform(0.3, 3.0, width), draw.standard_normal((width, width)) / width

    def mlp(x_ND: np.ndarray) -> np.ndarray:
        return np.tanh(x_ND) @ weight_DD

    moved_basis = transfer_norm(basis_DD, gain_D, mlp, eps, field=lambda x_ND: np.cos(x_ND[:, :1]))
    stated_ND = (normalise(x_ND + mlp(x_ND), eps) * gain_D) @ basis_DD.T
    # D' has entries 1 / v, and v may come near to zero: what rounds in L is seen through it.
    assert relative_difference(normalise(x_ND + moved_basis.mlp(x_ND), eps) * moved_basis.gain_D, stated_ND) < 1e-8


def test_without_the_diagonal_no_f_at_all_will_do() -> None:
    matrix_DD, x_ND = draw_matrix(12, 3, np.float64)
    bare_DD = matrix_DD / norm_on_zero_mean(matrix_DD)
    bound = least_residual(x_ND, bare_DD, 1e-5)
    wanted_ND = normalise(x_ND, 1e-5) @ bare_DD.T
    assert bound > 0.02
    for tried in (x_ND, x_ND @ matrix_DD.T, semiconjugacy(matrix_DD).apply(x_ND, 1e-5)):
        assert relative_difference(normalise(tried, 1e-5), wanted_ND) >= bound


def test_beyond_lambda_0_some_points_have_no_image() -> None:
    matrix_DD, x_ND = draw_matrix(12, 4, np.float64)
    over = semiconjugacy(matrix_DD, 5.0)
    assert np.isnan(over.apply(1e3 * x_ND, 1e-5)).any()
    assert least_residual(1e3 * x_ND, over.matrix_DD, 1e-5) > 1e-2
    assert least_residual(1e3 * x_ND, semiconjugacy(matrix_DD).matrix_DD, 1e-5) < 1e-12


def test_without_eps_only_an_isometry_passes() -> None:
    matrix_DD, x_ND = draw_matrix(12, 5, np.float64)
    assert least_residual(x_ND, semiconjugacy(matrix_DD).matrix_DD, 0.0) > 1e-2
    assert least_residual(x_ND, np.eye(12)[::-1], 0.0) < 1e-12


def test_theorem_8_3_needs_a_v_without_a_zero() -> None:
    """A^t e = 1 for an e with a zero: the lemma holds, the theorem's D' does not exist."""
    draw = np.random.default_rng(0)
    e_D = np.array([0.0, 1.0, 1.0, 2.0, 1.0])
    basis_DD = draw.standard_normal((5, 5))
    basis_DD += np.outer(e_D, 1 - basis_DD.T @ e_D) / (e_D @ e_D)
    x_ND = draw.standard_normal((20, 5))
    assert semiconjugacy(basis_DD).residual(x_ND, 1e-5) < 1e-9
    with pytest.raises(PlumblineError, match="entry 0"):
        transfer_norm(basis_DD, np.ones(5), lambda x_ND: 0 * x_ND, 1e-5)


def test_f_is_a_scale_times_the_matrix_as_equation_9_says() -> None:
    singular_D = np.array([0.2, 0.5, 0.9, 1.0])
    y_ND = np.random.default_rng(1).standard_normal((30, 4))
    y_ND -= y_ND.mean(axis=1, keepdims=True)
    basis_DD = np.linalg.qr(np.stack([np.ones(4), *np.eye(4)[:3]]).T)[0]
    inside_DD = basis_DD[:, 1:] @ np.diag(singular_D[:3]) @ basis_DD[:, 1:].T
    conjugacy = Semiconjugacy(diagonal_D=np.ones(4), matrix_DD=inside_DD)
    inner_NR = y_ND @ basis_DD[:, 1:]
    padded_ND = np.concatenate([inner_NR, np.zeros((30, 1))], axis=1)
    scale_N = (1 + padded_ND**2 @ (1 - singular_D**2) / (4 * 0.1)) ** -0.5
    want = scale_N[:, None] * (y_ND @ inside_DD.T)
    np.testing.assert_allclose(conjugacy.apply(y_ND, 0.1), want, atol=1e-12)


@pytest.mark.parametrize("width", [64, 512])
def test_largest_singular_value_of_random_matrix_is_two_not_one(width: int) -> None:
    """Appendix 8.3.1 states 1 + O(d^-1/2); clamping at 1 then costs as much as the matrix itself has."""
    assert gaussian_singular_values(width, 0)[0] == pytest.approx(2.0, abs=3 * width**-0.5)


def test_the_rows_of_the_table_hold_and_each_premise_is_needed() -> None:
    check_by_id = {check.id: check for check in checks(widths=(3, 17), seeds=range(2))}
    assert set(check_by_id) == {"lemma_8_2", "thm_8_3", "thm_8_3_must_false"}
    assert all(check.holds and check.section == "8.3" for check in check_by_id.values())
    assert len(check_by_id["lemma_8_2"].broken) == 3 and "2 widths x 2 seeds" in check_by_id["thm_8_3"].tried


def test_a_wrong_diagonal_is_seen() -> None:
    """The residual is not a formality: a construction that is off by one part in a thousand has a larger one."""
    matrix_DD, x_ND = draw_matrix(12, 6, np.float64)
    conjugacy = semiconjugacy(matrix_DD)
    off_D = conjugacy.diagonal_D * (1 + 1e-3 * np.arange(12))
    off = Semiconjugacy(diagonal_D=off_D, matrix_DD=off_D[:, None] * matrix_DD)
    assert off.residual(x_ND, 1e-5) > 1e-5
