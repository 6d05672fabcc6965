"""Implements multi-head latent attention (MLA): queries, keys and values from low-rank latents."""

from __future__ import annotations

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.component import build
from plumbline.model.projections._base import Projections
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Latent(Projections):
    """With C a latent's width and R the rotary part's, head h has

        q_h = [W_uq,h c_q ; rotate(W_qr,h c_q)],  k_h = [W_uk,h c_kv ; rotate(W_kr x)],  v_h = W_uv,h c_kv,
        c_q = W_dq x (B, T, `query_latent`),      c_kv = W_dkv x (B, T, `key_value_latent`).

    A head is model.head_width wide: the content part, then `rotary_width` rotated coordinates; its values are as wide.
    The rotary key is one for all heads. Decoding remembers c_kv and the rotary key only, key_value_latent +
    rotary_width numbers a token and layer, and makes keys and values of them again. Every matrix is a parameter of its
    own, so that optimizers and learning rates can tell them apart.

    Sources: DeepSeek-V2 (2024), section 2.1; quack study, algorithm 2, whose letters these are. `latent_norm`: the
    model's norm on both latents, as DeepSeek has it; the algorithm's norms of weights leave it out.

    Raises:
        PlumblineError: sizes that do not go together.
    """

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        output_heads: int,
        *,
        query_latent: int = 512,
        key_value_latent: int = 256,
        rotary_width: int = 64,
        latent_norm: bool = False,
    ) -> None:
        super().__init__(model)
        _require_sizes(model, output_heads, query_latent, key_value_latent, rotary_width)
        width, heads = model.width, model.heads
        self.rotary_width, self.content_width = rotary_width, model.head_width - rotary_width
        self.query_down = linear(width, query_latent, role="query_down", layer=layer)
        self.query_up = linear(query_latent, heads * self.content_width, role="query_up", layer=layer)
        self.query_rotary = linear(query_latent, heads * rotary_width, role="query_rotary", layer=layer)
        self.key_value_down = linear(width, key_value_latent, role="key_value_down", layer=layer)
        self.key_up = linear(key_value_latent, heads * self.content_width, role="key_up", layer=layer)
        self.value = linear(key_value_latent, heads * model.head_width, role="value", layer=layer)
        self.key_rotary = linear(width, rotary_width, role="key_rotary", layer=layer)
        self.output = linear(heads * model.head_width, width, role="output", layer=layer, residual=True)
        self.query_norm = build("norm", model, layer, query_latent) if latent_norm else None
        self.key_value_norm = build("norm", model, layer, key_value_latent) if latent_norm else None

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, H, T, W), the rotary key (B, 1, T, R) and the latent of keys and values (B, 1, T, C)."""
        queries_BTC, latent_BTC = self.query_down(x_BTD), self.key_value_down(x_BTD)
        if self.query_norm is not None and self.key_value_norm is not None:
            queries_BTC, latent_BTC = self.query_norm(queries_BTC), self.key_value_norm(latent_BTC)
        content_BHTW = self.heads(self.query_up(queries_BTC), self.content_width)
        rotary_BHTR = self.heads(self.query_rotary(queries_BTC), self.rotary_width)
        q_BHTW = torch.cat([content_BHTW, rotary_BHTR], dim=-1)
        return q_BHTW, self.key_rotary(x_BTD)[:, None], latent_BTC[:, None]

    def expand(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (B, H, K, W), from rotated rotary keys `k` (B, 1, K, R) and latents `v` (B, 1, K, C)."""
        latent_BKC = v[:, 0]
        content_BHKW = self.heads(self.key_up(latent_BKC), self.content_width)
        k_BHKW = torch.cat([content_BHKW, k.to(content_BHKW.dtype).expand(-1, content_BHKW.shape[1], -1, -1)], dim=-1)
        return k_BHKW, self.heads(self.value(latent_BKC))


def _require_sizes(
    model: ModelSpec, output_heads: int, query_latent: int, key_value_latent: int, rotary_width: int
) -> None:
    where = "model.projections 'latent'"
    if min(query_latent, key_value_latent) < 1:
        raise PlumblineError(f"{where}: query_latent and key_value_latent must be 1 or more")
    if not 0 < rotary_width < model.head_width or rotary_width % 2:
        raise PlumblineError(
            f"{where}: rotary_width ({rotary_width}) must be even, above 0 and below model.head_width "
            f"({model.head_width}), which is the content part and the rotary part together"
        )
    if model.key_value_heads != model.heads or output_heads != model.heads:
        raise PlumblineError(
            f"{where}: every head has keys and values of its own, so model.key_value_heads ({model.key_value_heads}) "
            f"must be model.heads ({model.heads}), and a mixer that drops heads does not go with it"
        )
    for slot in ("query_key", "values"):
        if model.slot(slot).name != "identity":
            raise PlumblineError(
                f"{where}: model.{slot} {model.slot(slot).name!r} needs each token's keys and values, and a latent is "
                "all that is remembered of one; choose 'identity'"
            )
