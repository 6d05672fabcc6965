"""Implements softmax attention with another temperature."""

from __future__ import annotations

from plumbline.core.errors import PlumblineError
from plumbline.model.mixers.softmax import Softmax
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ScaledSoftmax(Softmax):
    """weights = softmax(q k / (divisor sqrt(head width))) over the visible keys.

    Source: query_free study, section 5.1 and appendix 8.2: queries that are not projected have a standard deviation
    1 / (init_std sqrt(width)) times as large (1.80 at width 768 and 0.02), which a divisor of 2 makes up for. The
    factor belongs to those sizes.
    """

    def __init__(self, model: ModelSpec, layer: int, *, divisor: float = 2.0) -> None:
        super().__init__(model, layer)
        if divisor <= 0:
            raise PlumblineError(f"model.mixer.divisor ({divisor:g}) must be above 0")
        self.scale /= divisor
