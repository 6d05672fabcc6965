"""Implements a probe of how large attention scores are, and how sharp attention is."""

from __future__ import annotations

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.evaluate.probes._totals import LayerTotals
from plumbline.specs.components import component


@component
class AttentionStatistics(Probe):
    """Statistics of each head, over the scaled scores z of all visible keys, the query's own among them:

    - ``logit_mean_abs``: mean of |z|; ``logit_rms``: root of the mean of z^2; ``logit_row_max``: mean over queries of
      the largest z; ``logit_max``: the largest of all.
    - ``entropy``: of each query's attention over its i + 1 keys, over log(i + 1), the largest it could be; the mean
      over queries that see more than one. Uniform attention has 1 (the null), attention to one key 0.

    Source: premature study, section 3. Its numbers decide between interpretations: its smallest logit magnitude lies
    between the mean of |z| and the root mean square where training starts, and its entropies are above what division by
    the logarithm of the context would allow. The measured cost of all activation probes together:
    benchmarks/probe_cost.md.
    """

    def __init__(self) -> None:
        self.totals = LayerTotals()
        self.largest: dict[int, torch.Tensor] = {}

    def scores(self, layer: int, scores: AttentionScores) -> None:
        """Add up the statistics of a layer's scores."""
        rows = scores.rows
        batch, _, time = rows.lse.shape
        visible_T = torch.arange(1, time + 1, device=rows.lse.device)
        entries = batch * time * (time + 1) // 2
        self.totals.add("absolute", layer, rows.absolute.sum((0, 2), dtype=torch.float64), entries)
        self.totals.add("square", layer, rows.square.sum((0, 2), dtype=torch.float64), entries)
        self.totals.add("maximum", layer, rows.maximum.sum((0, 2), dtype=torch.float64), batch * time)
        entropy_BHT = rows.entropy[..., 1:].double() / visible_T[1:].double().log()
        if time > 1:
            self.totals.add("entropy", layer, entropy_BHT.sum((0, 2)), batch * (time - 1))
        largest_H = rows.maximum.amax((0, 2)).double()
        self.largest[layer] = torch.maximum(self.largest.get(layer, largest_H), largest_H)

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The statistics of each head of each layer."""
        probe_values = []
        for layer in self.totals.layers:
            values_H = {
                "logit_mean_abs": self.totals.mean("absolute", layer),
                "logit_rms": self.totals.mean("square", layer).sqrt(),
                "logit_row_max": self.totals.mean("maximum", layer),
                "logit_max": self.largest[layer],
            }
            nulls = {"entropy": 1.0}
            if ("entropy", layer) in self.totals.counts:
                values_H["entropy"] = self.totals.mean("entropy", layer)
            probe_values += [
                ProbeValue(probe=name, layer=layer, head=head, value=value, null=nulls.get(name))
                for name, value_H in values_H.items()
                for head, value in enumerate(value_H.tolist())
            ]
        return probe_values
