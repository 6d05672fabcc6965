"""Implements QuacK: learning rates of queries and keys that keep the change of attention logits in bounds."""

from __future__ import annotations

from typing import Any, Literal

import torch

from plumbline.core.errors import PlumblineError
from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention, InterventionInputs
from plumbline.train.interventions._heads import QueryKeyMatrices

#: Role -> a number for each block (L, N).
ByRole = dict[str, torch.Tensor]


@component
class Quack(Intervention):
    """Multiplies the learning rates of queries and keys so that the change of attention logits stays in bounds.

    The rate of each head's queries is multiplied by `tau` |W_K(0)| / |W_K|, that of its keys by `tau` |W_Q(0)| / |W_Q|;
    norms are those before the step and, at (0), before the first one.

    To first order a logit changes by dq k + q dk: a rate that falls as the other side's weights grow keeps both terms
    as large as they were. Biases go with their matrix. Source: quack study, algorithm 1 (a norm for each head) and
    algorithm 2 (latent attention, with the products of norms that a matrix is multiplied with, see `latent_ratios`).
    Interpretations of ours: a key head that several query heads share takes the smallest of their ratios; a ratio is at
    most `largest_ratio` (the rate has no bound as weights go to zero, which the paper's lemma excludes), and how often
    that was felt is reported; the norms of latents, where a model has them, change nothing here, as in the algorithm.

    Rates are by row (`Optimizer`), decay included, so that any optimizer whose update is linear in its rate will do;
    Muon still orthogonalises whole matrices. Norms at (0) are part of every checkpoint and never taken again: a resumed
    run would otherwise start anew at `tau`.

    Options:
        norm: of a head's block of rows, or of a whole matrix; the paper takes ``frobenius``.
    """

    def __init__(
        self,
        *,
        tau: float = 1.0,
        norm: Literal["frobenius", "spectral"] = "frobenius",
        largest_ratio: float = 10.0,
    ) -> None:
        if tau <= 0:
            raise PlumblineError(f"interventions: quack.tau ({tau:g}) must be above 0")
        if largest_ratio < 1:
            raise PlumblineError(
                f"interventions: quack.largest_ratio ({largest_ratio:g}) must be 1, the ratio at the start, or more"
            )
        self.tau, self.norm, self.largest_ratio = tau, norm, largest_ratio
        self.start: ByRole | None = None
        self.clamped = torch.zeros((), dtype=torch.int64)
        self.range = torch.tensor([1.0, 1.0], dtype=torch.float64)

    def attach(self, run: InterventionInputs) -> None:
        """Find the matrices that make queries and keys.

        Raises:
            PlumblineError: as `QueryKeyMatrices`.
        """
        self.heads = QueryKeyMatrices(run, "quack")
        self.clamped, self.range = self.clamped.to(run.ranks.device), self.range.to(run.ranks.device)
        blocks = ", ".join(f"{role} in {count}" for role, count in self.heads.blocks.items())
        run.progress.say(f"quack: rates by {self.norm} norm, tau {self.tau:g}; blocks of rows: {blocks}")

    def begin(self, step: int) -> None:
        """Take the norms of the matrices before the first step.

        Raises:
            PlumblineError: one of them is zero.
        """
        if step > 1:
            return
        self.start = self.heads.norms(self.norm)
        for role, norms_LN in self.start.items():
            if not (norms_LN > 0).all():
                raise PlumblineError(
                    f"interventions: quack: a head's weights of role {role!r} start at zero, and rates are relative to "
                    "the norm at the start; leave the intervention out, or initialise them otherwise"
                )

    def row_multipliers(self, step: int) -> dict[str, torch.Tensor]:
        """Compute tau times the ratio of norms for each row, all from the weights before the step."""
        assert self.start is not None, "from step 1 or a checkpoint"
        ratios = RATIOS[self.heads.kind](self.heads, self.heads.norms(self.norm), self.start)
        every = torch.cat([ratio_LN.flatten() for ratio_LN in ratios.values()])
        self.clamped += (every > self.largest_ratio).sum()
        every = every.clamp(max=torch.finfo(torch.float64).max)  # JSON has no infinities
        self.range = torch.stack([torch.minimum(self.range[0], every.min()), torch.maximum(self.range[1], every.max())])
        limited = {role: self.tau * ratio_LN.clamp(max=self.largest_ratio) for role, ratio_LN in ratios.items()}
        return self.heads.spread_over_rows(limited)

    def state(self) -> dict[str, Any]:
        """Give the norms at the start and the counters of ratios."""
        start = None if self.start is None else {role: norms_LN.tolist() for role, norms_LN in self.start.items()}
        return {"start": start, "clamped": int(self.clamped), "range": self.range.tolist()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the norms at the start and the counters of ratios.

        Raises:
            PlumblineError: there are not as many norms as the model has blocks, and one would be that of several.
        """
        device = self.clamped.device
        if state["start"] is not None:
            self.start = {
                role: torch.tensor(norms_LN, dtype=torch.float64, device=device)
                for role, norms_LN in state["start"].items()
            }
            shapes = {role: tuple(norms_LN.shape) for role, norms_LN in self.start.items()}
            blocks = {role: (len(self.heads.names[role]), count) for role, count in self.heads.blocks.items()}
            if shapes != blocks:
                raise PlumblineError(
                    f"interventions: quack: norms at the start of {shapes}, and the model has {blocks}"
                )
        self.clamped = torch.tensor(state["clamped"], dtype=torch.int64, device=device)
        self.range = torch.tensor(state["range"], dtype=torch.float64, device=device)

    def report(self, step: int) -> dict[str, Any]:
        """Say the range of all ratios before the limit, and how many (one a block and step) were above it."""
        lowest, highest = self.range.tolist()
        return {"ratio_lowest": lowest, "ratio_highest": highest, "ratios_clamped": int(self.clamped)}


def grouped_ratios(heads: QueryKeyMatrices, now: ByRole, start: ByRole) -> ByRole:
    """Compute the ratios of algorithm 1, and of shared heads of keys: role -> ratio (L, N), 1 where norms are the
    start's.
    """
    of_query_LH, of_key_LG = start["query"] / now["query"], start["key"] / now["key"]
    return {"query": heads.repeat_for_heads(of_key_LG), "key": heads.split_by_group(of_query_LH).amin(-1)}


def latent_ratios(heads: QueryKeyMatrices, now: ByRole, start: ByRole) -> ByRole:
    """Compute the ratios of algorithm 2 (latent attention): role -> ratio (L, N), 1 where norms are those of the
    start.
    """
    prices, first = _norm_products(now), _norm_products(start)
    return {role: first[role] / price_LN for role, price_LN in prices.items()}


def _norm_products(norms: ByRole) -> ByRole:
    """What a matrix is multiplied with on the way to a logit (L, N), as a product of norms: the reciprocal of its rate
    in algorithm 2. A logit of head h is x W_dq^T (W_uq,h^T W_uk,h W_dkv + W_qr,h^T W_kr) x^T, positions left out; what
    all heads share goes by the largest of them, and W_dq by the larger of the two terms."""
    uq_LH, qr_LH, uk_LH = norms["query_up"], norms["query_rotary"], norms["key_up"]
    dq_L1, dkv_L1, kr_L1 = norms["query_down"], norms["key_value_down"], norms["key_rotary"]
    content_L1 = (uq_LH * uk_LH).amax(1, keepdim=True)
    rotary_L1 = qr_LH.amax(1, keepdim=True)
    return {
        "query_up": dq_L1 * uk_LH * dkv_L1,
        "key_up": uq_LH * dq_L1 * dkv_L1,
        "query_rotary": (dq_L1 * kr_L1).expand_as(qr_LH),
        "query_down": torch.maximum(content_L1 * dkv_L1, rotary_L1 * kr_L1),
        "key_value_down": content_L1 * dq_L1,
        "key_rotary": rotary_L1 * dq_L1,
    }


#: Kind of projections -> its algorithm.
RATIOS = {"grouped": grouped_ratios, "latent": latent_ratios}
