"""Defines the base of mixers: turning queries and keys into weights, and weights and values into head outputs."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.float32_widening import widen, without_autocast
from plumbline.model.kernels.selection import AttentionMode, choose_kernel
from plumbline.specs.spec import ModelSpec


class Mixer(nn.Module):
    """Mixes values by weights.

    A subclass defines `weights`, the reference, in float32 or wider; it may override `forward` with a faster path,
    which the tests hold equal to the reference, outputs and gradients.

    Attributes:
        output_heads: heads that come out (fewer than go in where some heads only mask).
        groups: key/value heads; query head h reads group h // (H / groups).
        splits: number of equal parts of a head's queries and keys, each of them rotated on its own.
    """

    splits = 1
    #: Queries are handled in this many chunks, of at least `smallest_chunk` and at most `largest_chunk`: the weights
    #: never exist whole, memory grows with the keys alone, and later keys are left out. (On a CPU that is also the
    #: faster way: large tensors come from the system page by page.)
    chunks = 4
    smallest_chunk = 32
    largest_chunk = 256
    #: Above this many queries, the weights are computed again for the gradient instead of being kept.
    recompute_above = 256
    #: Multiplications for each pair of query and key beside a score of every query head and a value of every output
    #: head, as `forward` makes them.
    extra_products = 0
    #: The row of `plumbline.model.kernels.selection` that these weights fold into; None: there is none.
    kernel: str | None = None
    #: "reference" has every call make explicit weights.
    attention: AttentionMode = "auto"

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.output_heads = model.heads
        self.groups = model.key_value_heads
        self.scale = (model.head_width // self.splits) ** -0.5

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Weights (B, output heads, Q, K) in float32; exactly zero where a key is not visible."""
        raise TypeError(f"{type(self).__name__} defines no weights")

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Scores as they enter the softmax or sigmoid, before any cap (B, M, Q, K).

        M is a multiple of the output heads, with the maps of one head next to each other. Where a key is not visible
        the values are meaningless.
        """
        return self.scores(q_BHQW, k_BGKW)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs (B, output heads, Q, W). Mixers that remember more than keys and values keep it in `cache`."""
        return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)

    def kernel_for_call(self, q_BHQW: torch.Tensor, attention_mask: AttentionMask) -> str:
        """The kernel that a call runs through: the mixer's own `kernel`, or `CHUNKED`."""
        device = q_BHQW.device.type
        return choose_kernel(self.kernel, device, kernel_type(q_BHQW), plain=attention_mask.plain, mode=self.attention)

    def prefers_explicit(self, device: str, dtype: torch.dtype, queries: int) -> bool:
        """Whether a plain call of so many queries makes explicit weights although torch's kernel could compute it."""
        return False

    def reference(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """Head outputs from explicit weights times values, all queries at once (B, output heads, Q, W)."""
        return mix_values(self.weights(q_BHQW, k_BGKW, attention_mask), v_BGKW)

    def attend_in_chunks(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """The same as `reference`, computed for some queries at a time."""
        queries = q_BHQW.shape[2]
        recompute = torch.is_grad_enabled() and queries > self.recompute_above
        outputs = []
        for start, stop in self.spans(queries):
            part = attention_mask.rows(start, stop)
            keys = part.key_positions_BK.shape[1]
            inputs = (q_BHQW[:, :, start:stop], k_BGKW[:, :, :keys], v_BGKW[:, :, :keys], part)
            outputs.append(
                checkpoint(self.reference, *inputs, use_reentrant=False) if recompute else self.reference(*inputs)
            )
        return torch.cat(outputs, dim=2)

    def spans(self, queries: int) -> list[tuple[int, int]]:
        """The chunks of queries that `attend_in_chunks` computes at a time: (first query, one past the last)."""
        step = max(self.smallest_chunk, min(-(-queries // self.chunks), self.largest_chunk))
        return [(start, min(start + step, queries)) for start in range(0, queries, step)]

    def scores(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor) -> torch.Tensor:
        """Scaled dot products (B, H, Q, K) in float32 or wider, before any mask."""
        with without_autocast(q_BHQW):
            return grouped_matmul(widen(q_BHQW) * self.scale, widen(k_BGKW).transpose(-1, -2))

    def repeat_for_query_heads(self, x_BGKW: torch.Tensor, heads: int) -> torch.Tensor:
        """Repeat key/value heads so that there is one for each query head."""
        return x_BGKW.repeat_interleave(heads // self.groups, dim=1)


def kernel_type(*tensors: torch.Tensor) -> torch.dtype:
    """The number type in which a kernel takes `tensors`: autocast's where it is on, else the widest of theirs."""
    device = tensors[0].device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    dtype = tensors[0].dtype
    for other in tensors[1:]:
        dtype = torch.promote_types(dtype, other.dtype)
    return dtype


def cast_for_kernel(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Convert `tensors` to the type that `kernel_type` gives."""
    dtype = kernel_type(*tensors)
    return tuple(x.to(dtype) for x in tensors)


def grouped_matmul(left_BHQX: torch.Tensor, right_BGXY: torch.Tensor) -> torch.Tensor:
    """(B, H, Q, X) times (B, G, X, Y), head h with group h // (H / G), without repeating the groups."""
    batch, heads, queries, _ = left_BHQX.shape
    groups = right_BGXY.shape[1]
    stacked = left_BHQX.reshape(batch, groups, heads // groups * queries, -1) @ right_BGXY
    return stacked.view(batch, heads, queries, -1)


def mix_values(weights_BHQK: torch.Tensor, v_BGKW: torch.Tensor) -> torch.Tensor:
    """Weights times values (B, H, Q, W), in the values' type."""
    return grouped_matmul(weights_BHQK.to(v_BGKW.dtype), v_BGKW).to(v_BGKW.dtype)


def masked_softmax(scores_BHQK: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
    """Softmax over the visible keys, in the scores' type."""
    return (scores_BHQK + attention_mask.bias_B1QK(scores_BHQK.dtype)).softmax(dim=-1)
