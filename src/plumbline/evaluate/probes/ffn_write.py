"""Implements a probe of how much each layer's FFN writes into the residual stream."""

from __future__ import annotations

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._totals import LayerTotals
from plumbline.specs.components import component


@component
class FFNWrite(Probe):
    """``ffn_write_rms``: root of the mean square of a layer's FFN output, over tokens and channels.

    Where a placement normalises the branch before it is added, this is before that norm. Source: premature study,
    section 5, table 5.
    """

    def __init__(self) -> None:
        self.totals = LayerTotals()

    def ffn_write(self, layer: int, x_BTD: torch.Tensor) -> None:
        """Add up the squares of a layer's FFN output."""
        self.totals.add("square", layer, x_BTD.double().square().sum(), x_BTD.numel())

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The root mean square of each layer's FFN output."""
        return [
            ProbeValue(probe="ffn_write_rms", layer=layer, value=float(self.totals.mean("square", layer)) ** 0.5)
            for layer in self.totals.layers
        ]
