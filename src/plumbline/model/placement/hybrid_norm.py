"""Implements HybridNorm: attention and FFN have their norms in different places (transfer study, App. B.15)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.component import build
from plumbline.model.placement._base import Placement
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class HybridNorm(Placement):
    """Pre-norm for attention and post-norm for the FFN: the stream itself is normalised once per layer.

    `variant`: "pre_attention_post_ffn" is the study's wording, x' = x + attention(norm(x)) and x'' = norm(x' +
    ffn(x')). "official" is Zhuo et al. (2025): y = x + attention(x), whose queries, keys and values are normalised over
    the head width, then h = norm(y) and h + ffn(h). Those three norms are components of their own, so the variant asks
    for `query_key: qk_norm` and `values: rms_norm`.
    """

    changes_stream = True

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["pre_attention_post_ffn", "official"] = "pre_attention_post_ffn",
    ) -> None:
        super().__init__()
        self.official = variant == "official"
        required_components = {"query_key": "qk_norm", "values": "rms_norm"}
        for slot, name in required_components.items():
            if self.official and model.slot(slot).name != name:
                raise PlumblineError(
                    f"model.placement: hybrid_norm's variant 'official' normalises queries, keys and values; choose "
                    f"model.{slot} {name!r} instead of {model.slot(slot).name!r}"
                )
        self.norms = nn.ModuleList(build("norm", model, layer, model.width) for _ in range(1 if self.official else 2))

    def enter(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the stream before the FFN in "official"; otherwise leave it unchanged."""
        return self.norms[0](x_BTD) if self.official and sublayer == 1 else x_BTD

    def before(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the attention's input in "pre_attention_post_ffn"; otherwise leave it unchanged."""
        return self.norms[0](x_BTD) if not self.official and sublayer == 0 else x_BTD

    def leave(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the stream after the FFN in "pre_attention_post_ffn"; otherwise leave it unchanged."""
        return self.norms[1](x_BTD) if not self.official and sublayer == 1 else x_BTD
