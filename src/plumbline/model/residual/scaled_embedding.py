"""Implements the standard residual stream, started by the embedding times sqrt(width) (key_norms study)."""

from __future__ import annotations

import torch

from plumbline.model.residual._base import Residual, State
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ScaledEmbedding(Residual):
    """x + f(x) from sqrt(width) times the embedding; a tied head reads the embedding as it is.

    Source: the public code of the key_norms study, after Vaswani et al. 2017, section 3.4. With
    embeddings of N(0, 0.02^2) the stream starts at 0.02 sqrt(width) = 0.45 a channel at width 512, so that a layer's
    first writes do not drown it.
    """

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()
        self.factor = model.width**0.5

    def start(self, x_BTD: torch.Tensor) -> State:
        """Start the stream with sqrt(width) times the embedding."""
        return (x_BTD * self.factor,)
