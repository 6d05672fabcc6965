"""Implements the standard residual stream."""

from __future__ import annotations

from plumbline.model.residual._base import Residual
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Standard(Residual):
    """x + f(x): each sublayer's output is added to the stream."""

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()
