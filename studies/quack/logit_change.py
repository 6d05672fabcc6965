"""Measures how far one step moves attention logits, against the size of the weights: Lemma 1 of the quack study.

Source: quack study, section 3 (Lemma 1) and Algorithm 1. For a head with logits l(x, y) = (W_Q x) . (W_K y) / sqrt(W),
and updates W_S <- W_S - eta_S U_S with |U_S| <= D,

    dl = - (eta_Q (U_Q x) . (W_K y) + eta_K (W_Q x) . (U_K y)) / sqrt(W)  +  eta_Q eta_K (U_Q x) . (U_K y) / sqrt(W),

exactly. With eta_Q = tau eta n(W_K at the start) / n(W_K), and eta_K likewise by W_Q, the first two terms are at most

    tau eta D |x| |y| (n(W_Q at the start) + n(W_K at the start)) / sqrt(W),

whatever the weights have become; with a fixed rate they grow with the weights. The last term goes the other way: with
QuacK's rates it grows as one over the square of the weights, which is why the lemma wants them bounded from below.

Weights stand as torch stores them, (head width, stream width). The lemma states W = d^-1/2 W_Q^t W_K for weights of
shape d_model x d_head, but its proof applies W to x: that needs torch's shape, in which W is d_model x d_model.

Shapes: T and S tokens (of queries and keys), D width of the stream, W width of the head. The D of the lemma is `size`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch

from plumbline.train.optimizers._orthogonal import QUINTIC, orthogonalise

Norm = Literal["frobenius", "spectral"]
Weights = Literal["drawn", "rank one"]
Directions = Literal["random", "muon", "worst"]
Rates = Literal["quack", "fixed", "default"]

#: Weight scales of the table: from an eighth of the start to 32 times it.
SCALES = tuple(2.0**power for power in range(-3, 6))


@dataclass(frozen=True, kw_only=True)
class HeadUpdate:
    """A head, its inputs, and a step of it: weights and updates (W, D), inputs of queries (T, D) and keys (S, D)."""

    query_WD: np.ndarray
    key_WD: np.ndarray
    query_update_WD: np.ndarray
    key_update_WD: np.ndarray
    x_TD: np.ndarray
    y_SD: np.ndarray

    def multiply_weights(self, query: float, key: float) -> HeadUpdate:
        """The same head and step with the weights of queries and keys multiplied by two factors."""
        return replace(self, query_WD=query * self.query_WD, key_WD=key * self.key_WD)

    @cached_property
    def norms(self) -> dict[Norm, tuple[float, float]]:
        """The norms of W_Q and W_K, by kind of norm."""
        return {
            "frobenius": (float(np.linalg.norm(self.query_WD)), float(np.linalg.norm(self.key_WD))),
            "spectral": (spectral_norm(self.query_WD), spectral_norm(self.key_WD)),
        }

    @cached_property
    def size(self) -> float:
        """D of the lemma: the larger operator norm of U_Q and U_K. (The lemma holds for any larger norm as well.)"""
        return max(spectral_norm(self.query_update_WD), spectral_norm(self.key_update_WD))

    @cached_property
    def reach(self) -> float:
        """The largest |x| |y| / sqrt(W) over the inputs of queries and keys."""
        lengths = [float(np.linalg.norm(part, axis=1).max()) for part in (self.x_TD, self.y_SD)]
        return math.prod(lengths) / math.sqrt(len(self.query_WD))

    @cached_property
    def _projected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Queries (T, W), keys (S, W), and what the updates make of the inputs; divided so that products are logits."""
        divisor = len(self.query_WD) ** 0.25
        return (
            self.x_TD @ self.query_WD.T / divisor,
            self.y_SD @ self.key_WD.T / divisor,
            self.x_TD @ self.query_update_WD.T / divisor,
            self.y_SD @ self.key_update_WD.T / divisor,
        )

    @property
    def logits(self) -> np.ndarray:
        """The head's logits (T, S) before the step."""
        q_TW, k_SW, _, _ = self._projected
        return q_TW @ k_SW.T

    def exact_change(self, query_rate: float, key_rate: float) -> np.ndarray:
        """Exact change of the logits (T, S): those after the step less those before."""
        q_TW, k_SW, moved_q_TW, moved_k_SW = self._projected
        return (q_TW - query_rate * moved_q_TW) @ (k_SW - key_rate * moved_k_SW).T - self.logits

    def first_order(self, query_rate: float, key_rate: float) -> np.ndarray:
        """First-order change of the logits, Q dK^t + dQ K^t (T, S)."""
        q_TW, k_SW, moved_q_TW, moved_k_SW = self._projected
        return -query_rate * moved_q_TW @ k_SW.T - key_rate * q_TW @ moved_k_SW.T

    def second_order(self, query_rate: float, key_rate: float) -> np.ndarray:
        """Second-order change of the logits, dQ dK^t (T, S)."""
        _, _, moved_q_TW, moved_k_SW = self._projected
        return query_rate * key_rate * moved_q_TW @ moved_k_SW.T


def spectral_norm(matrix: np.ndarray) -> float:
    """The largest singular value of a wide matrix, computed from its small Gram matrix."""
    return math.sqrt(max(float(np.linalg.eigvalsh(matrix @ matrix.T)[-1]), 0.0))


def rates(
    name: Rates, now: HeadUpdate, start: HeadUpdate, *, rate: float, tau: float, kind: Norm
) -> tuple[float, float]:
    """The learning rates eta_Q and eta_K of a step.

    "quack": those of Algorithm 1, each by the norm of the other's weights; "fixed": tau eta for both; "default": eta.

    Args:
        now, start: the head at this step, and at the start of training.
        rate: eta.
        kind: the norm that Algorithm 1 uses.
    """
    (query, key), (query_then, key_then) = now.norms[kind], start.norms[kind]
    return {
        "quack": (tau * rate * key_then / key, tau * rate * query_then / query),
        "fixed": (tau * rate, tau * rate),
        "default": (rate, rate),
    }[name]


def bound(start: HeadUpdate, rate: float, kind: Norm) -> float:
    """Lemma 1's bound on the first-order change, for tau eta = `rate`; it depends on the weights at the start alone."""
    return rate * start.size * start.reach * sum(start.norms[kind])


@dataclass(frozen=True, kw_only=True, slots=True)
class LemmaRow:
    """One row of the table `lemma1`. Changes are the largest over pairs of tokens, of the seed that moves furthest.

    Attributes:
        rates: "quack" (tau eta, by norms), "fixed" (tau eta: the ablation) or "default" (eta).
        kind: the norm that QuacK's rates and the bound use.
        weights: "drawn" (normal), or of "rank one", for which both norms are the same.
        directions: of the updates, all of spectral norm 1: "random", "muon" (the same orthogonalised), or "worst"
            (aligned with the weights, and the inputs with both).
        scale: size of the weights relative to the start.
        exact: the largest |dl|.
        first_order, second_order: the largest of these parts of it.
        bound: the lemma's, for tau eta, whatever the scale.
    """

    rates: Rates
    kind: Norm
    weights: Weights
    directions: Directions
    scale: float
    exact: float
    first_order: float
    second_order: float
    bound: float

    @property
    def share(self) -> float:
        """The first-order change divided by the lemma's bound: above 1 the bound is broken."""
        return self.first_order / self.bound

    @property
    def slack(self) -> float:
        """The lemma's bound divided by the first-order change."""
        return self.bound / self.first_order

    @property
    def within(self) -> bool:
        """Whether the first-order change keeps to the bound, up to rounding."""
        return self.share <= 1 + 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadSizes:
    """Sizes of a head behind a norm, so that inputs have length sqrt(D): weights N(0, init_std^2), eta = `rate`."""

    width: int
    head_width: int
    init_std: float
    rate: float
    tau: float
    tokens: int = 64


def rows(sizes: HeadSizes, *, scales: Iterable[float] = SCALES, seeds: Iterable[int] = range(3)) -> list[LemmaRow]:
    """Compute the table `lemma1`: for every kind of weights, directions, norm and rates a row at every scale."""
    scales, seeds = tuple(scales), tuple(seeds)
    table_rows = []
    for weights, directions in itertools.product(get_args(Weights), get_args(Directions)):
        starts = [draw_head(sizes, weights, directions, seed) for seed in seeds]
        scaled = {scale: [start.multiply_weights(scale, scale) for start in starts] for scale in scales}
        for kind, name, scale in itertools.product(get_args(Norm), get_args(Rates), scales):
            measured = [
                _measure(now, rates(name, now, start, rate=sizes.rate, tau=sizes.tau, kind=kind))
                | {"bound": bound(start, sizes.tau * sizes.rate, kind)}
                for now, start in zip(scaled[scale], starts)
            ]
            most = max(measured, key=lambda row: row["first_order"])
            table_rows.append(
                LemmaRow(rates=name, kind=kind, weights=weights, directions=directions, scale=scale, **most)
            )
    return table_rows


def _measure(now: HeadUpdate, step_rates: tuple[float, float]) -> dict[str, float]:
    parts = {
        "exact": now.exact_change(*step_rates),
        "first_order": now.first_order(*step_rates),
        "second_order": now.second_order(*step_rates),
    }
    return {name: float(np.abs(part).max()) for name, part in parts.items()}


def draw_head(sizes: HeadSizes, weights: Weights, directions: Directions, seed: int) -> HeadUpdate:
    """Draw a head at its start, and a step of it."""
    draw = np.random.default_rng(seed)
    shape, root = (sizes.head_width, sizes.width), math.sqrt(sizes.width)
    query_WD, key_WD = (sizes.init_std * draw.standard_normal(shape) for _ in range(2))
    if weights == "rank one":
        # Of the same Frobenius norm, and one direction of the head in both, so that the last term adds to the others.
        head_W = _unit(draw.standard_normal(sizes.head_width))
        query_WD, key_WD = (
            np.linalg.norm(full) * np.outer(head_W, _unit(draw.standard_normal(sizes.width)))
            for full in (query_WD, key_WD)
        )
    if directions == "worst":
        return find_worst_update(query_WD, key_WD, length=root)
    updates = [draw.standard_normal(shape) for _ in range(2)]
    if directions == "muon":
        updates = [orthogonalise(torch.from_numpy(update), (QUINTIC,) * 5).numpy() for update in updates]
    query_update_WD, key_update_WD = (update / spectral_norm(update) for update in updates)
    x_TD, y_SD = (root * _unit(draw.standard_normal((sizes.tokens, sizes.width))) for _ in range(2))
    return HeadUpdate(
        query_WD=query_WD,
        key_WD=key_WD,
        query_update_WD=query_update_WD,
        key_update_WD=key_update_WD,
        x_TD=x_TD,
        y_SD=y_SD,
    )


def find_worst_update(query_WD: np.ndarray, key_WD: np.ndarray, *, length: float) -> HeadUpdate:
    """The inputs of a `length`, and the updates of norm 1, that move a logit of these weights the furthest.

    x and y lie along what W_Q and W_K stretch most; U_Q takes x to the direction of W_K y, and U_K takes y to that of
    W_Q x.
    """
    left_query, _, right_query = np.linalg.svd(query_WD, full_matrices=False)
    left_key, _, right_key = np.linalg.svd(key_WD, full_matrices=False)
    return HeadUpdate(
        query_WD=query_WD,
        key_WD=key_WD,
        query_update_WD=-np.outer(left_key[:, 0], right_query[0]),
        key_update_WD=-np.outer(left_query[:, 0], right_key[0]),
        x_TD=length * right_query[:1],
        y_SD=length * right_key[:1],
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
