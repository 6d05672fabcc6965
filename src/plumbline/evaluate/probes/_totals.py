"""Keeps sums over a pass for probes."""

from __future__ import annotations

from collections import defaultdict

import torch


class LayerTotals:
    """Sums by name and layer, in float64, each with how many numbers went into it."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, int], torch.Tensor | float] = defaultdict(float)
        self.counts: dict[tuple[str, int], int] = defaultdict(int)

    def add(self, name: str, layer: int, sums: torch.Tensor, count: int) -> None:
        """Add to the sums of a name and layer; each element of `sums` is a sum over `count` numbers."""
        self.sums[name, layer] += sums.double()
        self.counts[name, layer] += count

    def mean(self, name: str, layer: int) -> torch.Tensor:
        """The mean of all numbers that were added, one for each element of the sums."""
        return self.sums[name, layer] / self.counts[name, layer]

    @property
    def layers(self) -> list[int]:
        """The layers for which anything was added, in order."""
        return sorted({layer for _, layer in self.counts})
