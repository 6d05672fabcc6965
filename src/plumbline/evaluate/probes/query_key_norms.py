"""Implements a probe of how long queries and keys are: the scale of the scores, whatever their directions."""

from __future__ import annotations

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.specs.components import component


@component
class QueryKeyNorms(Probe):
    """``query_norm`` and ``key_norm``: mean L2 norm over tokens of each query head and each key head (group).

    They are read after the query/key transform, and rotary positions do not change them: these are the norms that enter
    the scores. After an RMSNorm the norm of a vector x^ with gain g is sqrt(sum_w g_w^2 x^_w^2), and sum_w x^_w^2 = W,
    the head width: a gain of ones, where training starts, gives sqrt(W) to within the norm's eps, and a gain of c gives
    c sqrt(W). So with a QK-norm these numbers are about the gain, and sqrt(W) is their null; without one nothing sets a
    length, and there is no null.
    """

    def __init__(self) -> None:
        self.totals: dict[tuple[str, int], torch.Tensor] = {}
        self.tokens: dict[tuple[str, int], int] = {}
        self.width = 0

    def query_key(self, layer: int, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> None:
        """Add up the norms of a layer's heads."""
        for name, x_BHTW in (("query_norm", q_BHTW), ("key_norm", k_BGTW)):
            norms_BHT = x_BHTW.double().norm(dim=-1)
            batch, _, time = norms_BHT.shape
            self.totals[name, layer] = self.totals.get((name, layer), 0) + norms_BHT.sum(dim=(0, 2))
            self.tokens[name, layer] = self.tokens.get((name, layer), 0) + batch * time
            self.width = x_BHTW.shape[-1]

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The mean norms of each head of each layer."""
        return [
            ProbeValue(
                probe=name,
                layer=layer,
                head=head,
                value=value,
                null=self.width**0.5 if model.normalises_query_key(layer) else None,
            )
            for (name, layer), total_H in self.totals.items()
            for head, value in enumerate((total_H / self.tokens[name, layer]).tolist())
        ]
