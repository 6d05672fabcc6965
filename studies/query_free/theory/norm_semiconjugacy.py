"""Checks when a change of basis passes through LayerNorm: L(f(x)) = (D A) L(x), with f = L^-1 M0 L and M0 = D A.

Source: query_free study, appendix 8.3 (Eqs. 6 to 12: Lemma 8.2, Theorem 8.3 and the discussion of 8.3.1). The norm is
L(x) = (x - mean(x) 1) / sqrt(var(x) + eps), without gain or bias; its image is B = {z : 1^t z = 0, |z| < sqrt(d)}.
Points are rows here; matrices act on them as columns, as in the paper.

Two things that the paper does not say. Any lambda with 0 < |lambda| <= lambda0 works as well as the lambda0 that
Theorem 8.3 says "must" be. And its D' = (lambda0 Diag(v))^-1 needs a v without a zero, which Lemma 8.2 does not.

Shapes: N points, D width. Everything is computed in the type of the points and matrices that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from plumbline.core.errors import PlumblineError

from .theorem_check import ResidualWithoutPremise, TheoremCheck

#: A map of points (N, D) to points.
Mlp = Callable[[np.ndarray], np.ndarray]
#: A number for each point, (N, D) -> (N, 1): what the norm does not see.
Field = Callable[[np.ndarray], np.ndarray]


def normalise(x_ND: np.ndarray, eps: float) -> np.ndarray:
    """Apply the norm L to each point (Eq. 7)."""
    centred_ND = x_ND - x_ND.mean(axis=1, keepdims=True)
    return centred_ND / np.sqrt((centred_ND**2).mean(axis=1, keepdims=True) + eps)


def invert_norm(z_ND: np.ndarray, eps: float) -> np.ndarray:
    """Apply L^-1 to each point (Eq. 12): the pre-image of mean zero, NaN for a point without one (outside B)."""
    width = z_ND.shape[1]
    room_N1 = width - (z_ND**2).sum(axis=1, keepdims=True)
    return np.sqrt(width * eps / np.where(room_N1 > 0, room_N1, np.nan)) * z_ND


@dataclass(frozen=True, kw_only=True, slots=True)
class Semiconjugacy:
    """What Lemma 8.2 makes of an invertible A: `diagonal_D` = lambda0 v and `matrix_DD` = M0 = Diag(lambda0 v) A."""

    diagonal_D: np.ndarray
    matrix_DD: np.ndarray

    def apply(self, x_ND: np.ndarray, eps: float, field: Field | None = None) -> np.ndarray:
        """Compute f(x) = L^-1(M0 L(x)) + h(x) 1 for each point; `field` is h, any function (default: zero)."""
        image_ND = invert_norm(normalise(x_ND, eps) @ self.matrix_DD.T, eps)
        return image_ND if field is None else image_ND + field(x_ND)

    def residual(self, x_ND: np.ndarray, eps: float, field: Field | None = None) -> float:
        """Relative residual |L(f(x)) - M0 L(x)| / |M0 L(x)| (Frobenius, over the points)."""
        wanted_ND = normalise(x_ND, eps) @ self.matrix_DD.T
        return relative_difference(normalise(self.apply(x_ND, eps, field), eps), wanted_ND)


def semiconjugacy(matrix_DD: np.ndarray, share: float = 1.0) -> Semiconjugacy:
    """Carry out step 1 of Lemma 8.2 for A = `matrix_DD`, with lambda = `share` x lambda0 (the paper's: 1).

    v is along A^-t 1, so that Diag(v) A keeps vectors of mean zero; lambda0 makes its norm on these exactly 1.
    """
    width = len(matrix_DD)
    v_D = np.linalg.solve(matrix_DD.T, np.ones(width, dtype=matrix_DD.dtype))
    v_D /= np.linalg.norm(v_D)
    diagonal_D = share * v_D / norm_on_zero_mean(v_D[:, None] * matrix_DD)
    return Semiconjugacy(diagonal_D=diagonal_D, matrix_DD=diagonal_D[:, None] * matrix_DD)


def norm_on_zero_mean(matrix_DD: np.ndarray) -> float:
    """Operator norm |Q^t M Q|_2 of a matrix on the vectors of mean zero, Q an orthonormal basis of these."""
    return float(np.linalg.norm(_centre(_centre(matrix_DD).T), 2))


def least_residual(x_ND: np.ndarray, matrix_DD: np.ndarray, eps: float) -> float:
    """The least |L(f(x)) - M L(x)| / |M L(x)| that any f can leave: how far M L(x) is from the image of L.

    That image is the ball B, and for eps = 0 the sphere around it.
    """
    wanted_ND = normalise(x_ND, eps) @ matrix_DD.T
    nearest_ND = wanted_ND - wanted_ND.mean(axis=1, keepdims=True)
    length_N1 = np.linalg.norm(nearest_ND, axis=1, keepdims=True)
    root = np.sqrt(x_ND.shape[1])
    scale_N1 = root / length_N1 if eps == 0 else np.minimum(root / length_N1, 1)
    return relative_difference(scale_N1 * nearest_ND, wanted_ND)


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferredNorm:
    """The gain and the MLP that Theorem 8.3 puts in the place of a norm's gain D and of the MLP before it."""

    gain_D: np.ndarray
    mlp: Mlp


def transfer_norm(
    basis_DD: np.ndarray, gain_D: np.ndarray, mlp: Mlp, eps: float, field: Field | None = None, share: float = 1.0
) -> TransferredNorm:
    """D' and MLP' of Eq. 11, with which D' L(x + MLP'(x)) = Theta D L(x + MLP(x)).

    `field` is h; `share` is lambda over lambda0 (the paper's: 1).

    Raises:
        PlumblineError: v has a zero, and D' would be the inverse of a matrix that has none.
    """
    change = semiconjugacy(basis_DD * gain_D, share)
    small = np.abs(change.diagonal_D) < 10 * np.finfo(change.diagonal_D.dtype).eps * np.abs(change.diagonal_D).max()
    if small.any():
        raise PlumblineError(
            f"Theorem 8.3: entry {int(small.argmax())} of v is zero for this basis, and D' = (lambda0 Diag(v))^-1 does "
            "not exist; take another basis"
        )

    def mlp_after_transfer(x_ND: np.ndarray) -> np.ndarray:
        return change.apply(x_ND + mlp(x_ND), eps, field) - x_ND

    return TransferredNorm(gain_D=1 / change.diagonal_D, mlp=mlp_after_transfer)


def relative_difference(result: np.ndarray, stated: np.ndarray) -> float:
    """Relative difference |found - stated| / |stated| (Frobenius)."""
    return float(np.linalg.norm(result - stated) / np.linalg.norm(stated))


def gaussian_singular_values(width: int, seed: int) -> np.ndarray:
    """Singular values (D,) of a drawn matrix of entries N(0, 1/D), the largest first."""
    draw = np.random.default_rng(seed)
    return np.linalg.svd(draw.standard_normal((width, width)) / np.sqrt(width), compute_uv=False)


def _centre(matrix_DD: np.ndarray) -> np.ndarray:
    return matrix_DD - matrix_DD.mean(axis=0, keepdims=True)


#: Points of each draw; the eps of nanoGPT's LayerNorm and some that are easier and harder.
POINTS, EPSILONS = 64, (1e-5, 1e-2, 1.0)


def checks(widths: Iterable[int] = (3, 8, 33, 64), seeds: Iterable[int] = range(3)) -> list[TheoremCheck]:
    """Check Lemma 8.2 and Theorem 8.3 on random weights, in float64."""
    draws = [(width, seed, eps) for width in widths for seed in seeds for eps in EPSILONS]
    tried = f"{len({width for width, _, _ in draws})} widths x {len({seed for _, seed, _ in draws})} seeds x "
    tried += f"{len(EPSILONS)} eps, float64"
    lemma = [_lemma(*draw) for draw in draws]
    theorem = [_theorem(*draw) for draw in draws]
    halved = [_theorem(*draw, share=-0.5) for draw in draws]
    return [
        TheoremCheck(
            id="lemma_8_2",
            statement="L(f(x)) = D A L(x) for f = L⁻¹ M₀ L + h",
            source="Lemma 8.2, App 8.3",
            section="8.3",
            residual=max(value for value, _ in lemma),
            broken=_smallest_residuals([broken for _, broken in lemma]),
            tried=tried,
        ),
        TheoremCheck(
            id="thm_8_3",
            statement="D′ L(x + MLP′(x)) = Θ D L(x + MLP(x)) for D′ and MLP′ of Eq. 11",
            source="Thm 8.3, App 8.3",
            section="8.3",
            residual=max(value for value, _ in theorem),
            broken=_smallest_residuals([broken for _, broken in theorem]),
            tried=tried,
        ),
        TheoremCheck(
            id="thm_8_3_must_false",
            statement="the same for −λ₀/2 in place of λ₀, which Theorem 8.3 says D′ and MLP′ must have",
            source="against Thm 8.3 as worded, App 8.3",
            section="8.3",
            residual=max(value for value, _ in halved),
            broken=_smallest_residuals([broken for _, broken in halved])[1:],
            tried=tried,
        ),
    ]


def _lemma(width: int, seed: int, eps: float) -> tuple[float, dict[str, float]]:
    """The residual of the lemma on one draw, and the least that is left without each of its premises."""
    draw = np.random.default_rng([width, seed])
    matrix_DD, x_ND = draw.standard_normal((width, width)), draw.standard_normal((POINTS, width))
    change = semiconjugacy(matrix_DD)
    bare_DD = matrix_DD / norm_on_zero_mean(matrix_DD)
    # A point far out along the direction that M0 shrinks least: there L is nearly on the sphere, and M0 L too.
    _, _, right_DD = np.linalg.svd(_centre(_centre(change.matrix_DD.T).T))
    far_1D = 1e3 * np.sqrt(eps * width) * right_DD[:1]
    return change.residual(x_ND, eps, lambda x: 10 * x[:, :1]), {
        "D along v: a multiple of the identity instead": least_residual(x_ND, bare_DD, eps),
        "λ up to λ₀: twice it": least_residual(far_1D, 2 * change.matrix_DD, eps),
        "ε > 0: none": least_residual(x_ND, change.matrix_DD, 0.0),
    }


def _theorem(width: int, seed: int, eps: float, share: float = 1.0) -> tuple[float, dict[str, float]]:
    """The same for Theorem 8.3, with a drawn MLP before the norm; `share` is lambda over lambda0."""
    draw = np.random.default_rng([width, seed, 1])
    basis_DD, x_ND = draw.standard_normal((width, width)), draw.standard_normal((POINTS, width))
    gain_D, into_DF = draw.uniform(0.5, 2.0, width), draw.standard_normal((width, 4 * width))
    out_FD = draw.standard_normal((4 * width, width)) / (2 * width)

    def mlp(x_ND: np.ndarray) -> np.ndarray:
        return np.maximum(x_ND @ into_DF, 0) @ out_FD

    def residual(norm: TransferredNorm) -> float:
        stated_ND = (normalise(x_ND + mlp(x_ND), eps) * gain_D) @ basis_DD.T
        return relative_difference(normalise(x_ND + norm.mlp(x_ND), eps) * norm.gain_D, stated_ND)

    transferred = transfer_norm(basis_DD, gain_D, mlp, eps, lambda x: np.sin(x[:, :1]), share)
    same = TransferredNorm(gain_D=gain_D, mlp=lambda x_ND: (x_ND + mlp(x_ND)) @ basis_DD.T - x_ND)
    return residual(transferred), {
        "D′ and MLP′ of Eq. 11: D kept, x + MLP(x) only turned": residual(same),
        "one λ in both: D′ of twice MLP′'s": residual(
            TransferredNorm(gain_D=transferred.gain_D / 2, mlp=transferred.mlp)
        ),
    }


def _smallest_residuals(residuals: list[dict[str, float]]) -> tuple[ResidualWithoutPremise, ...]:
    """For each premise the smallest residual without it."""
    return tuple(
        ResidualWithoutPremise(premise=name, residual=min(draw[name] for draw in residuals)) for name in residuals[0]
    )
