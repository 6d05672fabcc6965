"""Computes the paper's theorems as numbers, at the sizes of its 270M model: what is printed can be compared with them.

Source: premature study, section 6 and appendix B. Nothing is trained; heads, streams and weights are drawn. That the
same holds on steps of a model in training is tested (tests/studies/premature/test_theory_on_models.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec

from .gated_energy import energy_ratio, gelu, silu
from .gradient_step_on_scores import DirectedHead, frobenius, power, random_head, sharp_head, suppression
from .run_values import BASE

Gate = Literal["gelu", "silu"]

#: Rates of a step, from far below to far above any of training; how sharp heads are, in multiples of their start.
RATES, SHARPNESS = (1e-4, 1e-2, 1.0), (1.0, 2.0, 4.0)

#: Tokens, and the rank of the projector, of the heads that are drawn: a tenth of the stream is immature.
TOKENS, RANK_SHARE = 128, 0.1

#: A rate at which first order is all there is.
SMALL = 1e-4


@dataclass(frozen=True, slots=True)
class MatchedModelSizes:
    """Sizes of the paper's two matched models."""

    single: ModelSpec
    gated: ModelSpec

    @property
    def variance(self) -> float:
        """nu: variance of pre-activations at the start, of a normalised input."""
        return self.single.width * self.single.init_std**2


@cache
def sizes(study: str) -> MatchedModelSizes:
    """Of the GPT-style block and of the one with SwiGLU, at paper size."""
    document = study_config.load(study, "paper")
    single, gated = (document.runs[f"{study}/{BASE}/{method}/s42"].spec.model for method in ("gpt", "gpt_swiglu"))
    return MatchedModelSizes(single, gated)


def heads(model: ModelSpec) -> list[DirectedHead]:
    """Drawn heads of a model's shape, from its start to four times as sharp."""
    shape = {"tokens": TOKENS, "width": model.width, "head_width": model.head_width}
    rank = round(RANK_SHARE * model.width)
    return [
        random_head(seed, rank=rank, init_std=model.init_std, sharpness=sharpness, **shape)
        for seed, sharpness in enumerate(SHARPNESS)
    ]


def largest_share(heads: list[DirectedHead], bound: str) -> float:
    """The largest |dZ_P| over its bound among heads and rates; above 1 a bound is broken."""
    return max(
        frobenius(head.score_change(rate, rate)) / getattr(head, bound)(rate, rate) for head in heads for rate in RATES
    )


def sharpest_share(model: ModelSpec) -> float:
    """The same at the head for which Theorem 1 is an equality to first order."""
    head, rate = sharp_head(TOKENS, model.width, model.head_width), SMALL / 1000
    return frobenius(head.score_change(rate, rate)) / head.bound(rate, rate)


def learning_rate_factor(heads: list[DirectedHead], multiplier: float) -> float:
    """Corollary 3: what is left of the step at a multiplier, the value furthest from it."""
    return max((suppression(head, multiplier, SMALL) for head in heads), key=lambda factor: abs(factor - multiplier))


def energy_power(heads: list[DirectedHead], *, alone: bool) -> float:
    """Theorem 3: the power of R_P by which a step shrinks; `alone`: in a stream that has nothing but X_P."""
    return float(np.mean([power(head.restrict_to_chosen() if alone else head, 0.5, SMALL) for head in heads]))


def ratio_of_steps(head: DirectedHead, share: float = 0.25) -> float:
    """Theorem 3's gap: |dZ_P| of a head with `share` of the energy R_P of `head` and the same C_t, over share^2 times
    |dZ_P| of `head`. Eq. 59 has at most 1.

    Its proof divides two bounds. The other head is the one that meets its bound (rank one, aligned); `head` is far
    below its own, so that the quotient of the steps themselves is not that of the bounds.
    """
    rate = SMALL / 1000
    aligned = sharp_head(TOKENS, head.x_TD.shape[1], head.width)
    aligned = replace(aligned, x_TD=aligned.x_TD * math.sqrt(share * head.energy / aligned.energy))
    first_order = [
        member.bound_by_localisation(rate, rate) - member.remainder(rate, rate) for member in (head, aligned)
    ]
    constants = [bound / member.energy**2 for bound, member in zip(first_order, (head, aligned), strict=True)]
    aligned = replace(aligned, adjoint_TT=aligned.adjoint_TT * constants[0] / constants[1])
    return frobenius(aligned.score_change(rate, rate)) / (share**2 * frobenius(head.score_change(rate, rate)))


def rho(these: MatchedModelSizes, gate: Gate) -> float:
    """Theorem 2's ratio for the two matched models."""
    return energy_ratio(these.single.ffn_width, these.gated.ffn_width, these.variance, gate=gate)


def draw_energies(these: MatchedModelSizes, gate: Gate, seed: int = 0) -> tuple[float, float, float, float]:
    """Of networks drawn at full width: energies of single and gated output, and of the stream plus each.

    P_out is the whole stream, which is layer-normalised; output weights are divided by the root of twice the depth, as
    in training.
    """
    draw, single = np.random.default_rng(seed), these.single
    std, out_std = single.init_std, single.init_std / math.sqrt(2 * single.layers)
    x_TD = draw.standard_normal((TOKENS, single.width))
    x_TD /= np.sqrt((x_TD**2).mean(axis=1, keepdims=True))
    into, gate_in, up = (
        std * draw.standard_normal((single.width, width))
        for width in (single.ffn_width, these.gated.ffn_width, these.gated.ffn_width)
    )
    hidden_TF = np.asarray(gelu(x_TD @ into))
    gated_TF = np.asarray((gelu if gate == "gelu" else silu)(x_TD @ gate_in)) * (x_TD @ up)
    outputs = [h_TF @ (out_std * draw.standard_normal((h_TF.shape[1], single.width))) for h_TF in (hidden_TF, gated_TF)]
    energies = [float((part**2).sum()) for part in (*outputs, *(x_TD + output for output in outputs))]
    return energies[0], energies[1], energies[2], energies[3]


def least_slack(model: ModelSpec, rows: int = 200) -> float:
    """The least slack of the range inequality over rows of drawn scores, from flat to one key's alone."""
    draw = np.random.default_rng(0)
    slacks = []
    for number in range(rows):
        keys = int(draw.integers(2, model.context))
        slacks.append(slack(draw.standard_normal(keys) * 10 ** draw.uniform(-2, 1.3) + 5 * (number % 3)))
    return min(slacks)


def equality_slack(keys: int = 100, epsilon: float = 0.01) -> float:
    """The slack of a row whose other keys are all alike: none."""
    return slack(np.concatenate([[least_range(keys, math.log((1 - epsilon) / epsilon))], np.zeros(keys - 1)]))


def least_range(keys: int, log_odds: float) -> float:
    """The least range of scores over `keys` at which one key's weight w can have log(w / (1 - w)) = `log_odds`.

    For w = 1 - eps the log odds are log((1 - eps) / eps): max z - min z >= log((N - 1)(1 - eps) / eps), with equality
    where the others share eps equally (appendix B.4, Eqs. 63-67).

    Raises:
        PlumblineError: fewer than two keys.
    """
    if keys < 2:
        raise PlumblineError(f"a range of scores needs two keys or more; got {keys}")
    return math.log(keys - 1) + log_odds


def slack(scores_K: np.ndarray) -> float:
    """The range of a row's scores minus the least range that its largest weight needs; not below zero, up to rounding.

    The odds are taken in logarithms, so that they are known even where all other weights underflow.

    Raises:
        PlumblineError: fewer than two keys.
    """
    z = np.asarray(scores_K, dtype=np.float64)
    top = int(z.argmax())
    others = np.delete(z, top)
    if not others.size:
        raise PlumblineError("a range of scores needs two keys or more; got 1")
    return float(z.max() - z.min()) - least_range(len(z), float(z[top] - special.logsumexp(others)))
