"""Implements a probe of whether attention concentrates on one key, for any mixer, and of how large logits are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._scores import AttentionWeights
from plumbline.evaluate.probes._totals import LayerTotals
from plumbline.specs.components import component

#: Means over queries.
NAMES = ("concentration", "largest_weight", "weight_sum")


@component
class AttentionConcentration(Probe):
    """Concentration of each attending head, with w the weights of a query's i + 1 visible keys as its mixer makes them:

    - ``concentration``: max |w| / sum |w|, the largest weight's share, whatever a row sums to and whatever signs it
      has: 1 is attention to one key. A row without any weight has 0: it concentrates on none. The null, uniform
      attention, is the mean of 1 / (i + 1).
    - ``largest_weight``: max |w| itself, which a mixer may bound (a sigmoid over n keeps it below 1 / n). Same null.
    - ``weight_sum``: sum |w|: 1 of a softmax, less or more of others.
    - ``logits_beyond``: the share of visible keys with |z| > `beyond`, z the scores as they enter the mixer's softmax
      or sigmoid, with its factor, bias or mask, but before any cap: what a cap at `beyond` would clip, or clips. A
      logit that is no number counts as beyond.

    The first three are means over queries that see more than one key. Source: transfer study, appendix E.3, which
    speaks of attention that concentrates on a single key position and defines nothing; the cap of 50 is its B.13.
    """

    def __init__(self, *, beyond: float = 50.0) -> None:
        self.beyond = beyond
        self.totals = LayerTotals()

    def weights(self, layer: int, iterate_weights: Callable[[], Iterator[AttentionWeights]]) -> None:
        """Add up the concentration of a layer's attention weights, and count its large logits."""
        for part in iterate_weights():
            batch, heads = part.weights.shape[:2]
            visible_B1QK = part.visible.expand(batch, -1, -1, -1)
            seen_B1Q = visible_B1QK.sum(-1)
            several_B1Q = seen_B1Q > 1
            queries = int(several_B1Q.sum())
            absolute_BHQK = part.weights.abs()
            largest_BHQ, sum_BHQ = absolute_BHQK.amax(-1), absolute_BHQK.sum(-1)
            share_BHQ = (largest_BHQ / sum_BHQ).masked_fill(sum_BHQ == 0, 0.0)
            for name, value_BHQ in zip(NAMES, (share_BHQ, largest_BHQ, sum_BHQ), strict=True):
                kept_BHQ = value_BHQ.masked_fill(~several_B1Q, 0.0)
                self.totals.add(name, layer, kept_BHQ.sum((0, 2), dtype=torch.float64), queries)
            self.totals.add("null", layer, (1 / seen_B1Q[several_B1Q].double()).sum(), queries)
            outside_BMQK = ~(part.logits.abs() <= self.beyond) & visible_B1QK
            outside_H = outside_BMQK.sum((0, 2, 3)).view(heads, -1).sum(-1)
            maps = part.logits.shape[1] // heads
            self.totals.add("logits_beyond", layer, outside_H, maps * int(seen_B1Q.sum()))

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The mean values of each head of each layer, and the nulls."""
        probe_values = []
        for layer in self.totals.layers:
            values_H = {"logits_beyond": self.totals.mean("logits_beyond", layer)}
            null = None
            if self.totals.counts["null", layer]:
                values_H = {name: self.totals.mean(name, layer) for name in NAMES} | values_H
                null = float(self.totals.mean("null", layer))
            nulls = {"concentration": null, "largest_weight": null}
            probe_values += [
                ProbeValue(probe=name, layer=layer, head=head, value=value, null=nulls.get(name))
                for name, value_H in values_H.items()
                for head, value in enumerate(value_H.tolist())
            ]
        return probe_values
