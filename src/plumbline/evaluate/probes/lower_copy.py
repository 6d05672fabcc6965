"""Implements a probe of how much the lower half of a model attends to the last place where the same token stood."""

from __future__ import annotations

import math

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._forward_pass import read
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.evaluate.probes._totals import LayerTotals
from plumbline.model.decoder import Decoder
from plumbline.specs.components import component
from plumbline.specs.spec import Precision


@component
class LowerCopy(Probe):
    """``lower_copy``: attention weight of the nearest earlier occurrence of a query's own token.

    With j(i) the last position before i that holds the same token, and V the positions that have one, it is the mean of
    P_{i,j(i)} over the sequences' V, the heads, and the layers of the lower half: one number for each of those layers,
    and one of no layer, the score. The null is uniform attention over visible keys: the mean of 1 / (i + 1) over V,
    which depends on the text and on the context (at a context of 1024 it is about 0.0036, at 256 0.011), so that a
    threshold on the score has a meaning only next to it.

    It is about the same token, not about the token after it (induction). Documents may be crossed, as in training; the
    separators between them are left out of V unless `count_separators`: two separators tell nothing of routing. Where
    no token occurs twice there is no value. Source: premature study, section 3.
    """

    def __init__(self, *, count_separators: bool = False) -> None:
        self.count_separators = count_separators
        self.totals = LayerTotals()
        self.uniform = LayerTotals()
        self.last_layer, self.left_out = -1, None

    def begin(self, subject: ProbedModel, separator: int | None) -> None:
        """Choose the layers of the lower half, and the token to leave out."""
        self.last_layer = subject.lower.stop - 1
        self.left_out = None if self.count_separators else separator

    def sequence(self, inputs_BT: torch.Tensor, targets_BT: torch.Tensor) -> None:
        """Find the nearest earlier occurrence of each token, and add up the null."""
        self.earlier_BT = find_nearest_earlier(inputs_BT)
        self.valid_BT = self.earlier_BT >= 0
        if self.left_out is not None:
            self.valid_BT &= inputs_BT != self.left_out
        visible_T = torch.arange(1, inputs_BT.shape[1] + 1, device=inputs_BT.device)
        uniform_BT = self.valid_BT.double() / visible_T
        self.uniform.add("uniform", 0, uniform_BT.sum(), int(self.valid_BT.sum()))

    def scores(self, layer: int, scores: AttentionScores) -> None:
        """Add up the weights of the earlier occurrences, for a layer of the lower half."""
        if layer > self.last_layer:
            return
        weight_BHT = scores.weight(self.earlier_BT.clamp(min=0)).double()
        self.totals.add(
            "weight",
            layer,
            weight_BHT.masked_fill(~self.valid_BT[:, None], 0.0).sum(),
            int(self.valid_BT.sum()) * weight_BHT.shape[1],
        )

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The mean weight of each layer of the lower half, and of all of them together (the score)."""
        if not self.uniform.counts["uniform", 0] or not self.totals.layers:
            return []
        null = float(self.uniform.mean("uniform", 0))
        by_layer = {layer: float(self.totals.mean("weight", layer)) for layer in self.totals.layers}
        # All layers saw the same positions, so that the mean of their means is the mean over everything.
        by_layer[None] = sum(by_layer.values()) / len(by_layer)
        return [
            ProbeValue(probe="lower_copy", layer=layer, value=value, null=null) for layer, value in by_layer.items()
        ]


def find_nearest_earlier(tokens_BT: torch.Tensor) -> torch.Tensor:
    """The last position before each that holds the same token (B, T); -1 where there is none."""
    ordered_BT, position_BT = tokens_BT.sort(dim=1, stable=True)
    same_BT = ordered_BT[:, 1:] == ordered_BT[:, :-1]
    before_BT = torch.full_like(position_BT, -1)
    before_BT[:, 1:] = torch.where(same_BT, position_BT[:, :-1], -1)
    return torch.empty_like(before_BT).scatter_(1, position_BT, before_BT)


def lower_copy_score(
    model: Decoder,
    tokens_BT: torch.Tensor,
    *,
    precision: Precision = "float32",
    separator: int | None = None,
    count_separators: bool = False,
) -> tuple[float, float]:
    """The score of `LowerCopy` and its null on the inputs of `tokens_BT` (B, T), the last token being a target only.

    For decisions from inside training. Both are not-a-number where no token occurs twice, so that no threshold is
    reached. Every rank of a sharded model must call this.
    """
    probe = LowerCopy(count_separators=count_separators)
    values_by_layer = {
        probe_value.layer: probe_value
        for probe_value in read(model, [probe], tokens_BT, precision, separator=separator)
    }
    if None not in values_by_layer:
        return math.nan, math.nan
    return values_by_layer[None].value, values_by_layer[None].null
