"""Implements selective attention: some heads' scores are subtracted from those of other heads."""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.mixers._base import Mixer, cast_for_kernel, masked_softmax, mix_values
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Selective(Mixer):
    """weights = softmax(z - S), S = relu(z of a masking head), zero at the first token and at the query itself.

    - "masking_heads": the first query head of each key/value group masks the group's other heads and does not attend;
      the output projection is that much smaller.
    - "halved_key_values": half as many key/value heads; the first query head of each group masks all of the group's
      heads and attends too.
    - "original": query head 0 masks all heads and attends, and S is summed over all earlier queries: what they masked
      stays masked (Leviathan et al. 2024, section 3.3).

    `mask`: "before" the softmax, as above, or "after" it: weights = softmax(z) e^-S, an element-wise gate of at most 1
    (1 where S is 0), so that rows may sum to less than one. Rows normalised again would be "before" once more.

    Source: transfer study, appendix B.4, without a sum over queries. The first two variants have the parameter count
    that its Table 4 prints; the first is the default. Appendix B.18 speaks of masking weights after the softmax; B.4 is
    followed. "First token" is the first of the packed sequence, padding left out.
    """

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["masking_heads", "halved_key_values", "original"] = "masking_heads",
        mask: Literal["before", "after"] = "before",
    ) -> None:
        super().__init__(model, layer)
        self.variant, self.gated = variant, mask == "after"
        # A sum over queries crosses all tiles: there is no kernel for it.
        self.kernel = None if variant == "original" else "selective"
        if variant == "masking_heads":
            self.output_heads = model.heads - model.key_value_heads
            if not self.output_heads:
                raise PlumblineError(
                    f"model.mixer 'selective' with variant 'masking_heads' needs more than one query head for each "
                    f"key/value head, and model.heads = model.key_value_heads = {model.heads}"
                )
        elif variant == "halved_key_values":
            if model.key_value_heads % 2:
                raise PlumblineError(
                    f"model.mixer 'selective' with variant 'halved_key_values' halves model.key_value_heads, and "
                    f"{model.key_value_heads} is odd"
                )
            self.groups = model.key_value_heads // 2
        # Where the masking heads attend too, their scores are computed twice.
        twice = {"masking_heads": 0, "halved_key_values": self.groups, "original": 1}
        self.extra_products = twice[variant] * model.head_width

    def selection(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """The masking S (B, G, Q, K), or (B, 1, Q, K) of head 0 in the original; zero where a key is not visible."""
        if self.variant == "original":
            q_BGQW, k_BGKW = q_BHQW[:, :1], k_BGKW[:, :1]
        else:
            q_BGQW = q_BHQW[:, :: q_BHQW.shape[1] // self.groups]
        query, key = attention_mask.query_positions_BQ[:, :, None], attention_mask.key_positions_BK[:, None, :]
        free_B1QK = ((key > 0) & (key < query))[:, None]
        scores_BGQK = self.scores(q_BGQW, k_BGKW)
        barred = torch.zeros(free_B1QK.shape, dtype=scores_BGQK.dtype, device=q_BHQW.device)
        return (scores_BGQK + barred.masked_fill(~free_B1QK, float("-inf"))).relu()

    def weights(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        masked_before_B1K: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Weights of the attending heads (B, output heads, Q, K), masked by S before or after the softmax.

        Args:
            masked_before_B1K: in the original, the sum of S over queries that came before this call.
        """
        selection = self.selection(q_BHQW, k_BGKW, attention_mask)
        if self.variant == "original":
            return self._original_weights(q_BHQW, k_BGKW, attention_mask, selection, masked_before_B1K)
        q_BGRQW = q_BHQW.unflatten(1, (self.groups, -1))
        if self.variant == "masking_heads":
            q_BGRQW = q_BGRQW[:, :, 1:]
        scores_BGRQK = self.scores(q_BGRQW.flatten(1, 2), k_BGKW).unflatten(1, (self.groups, -1))
        bias_B1QK = attention_mask.bias_B1QK(selection.dtype)
        if self.gated:
            weights_BGRQK = (scores_BGRQK + bias_B1QK[:, :, None]).softmax(dim=-1) * (-selection).exp()[:, :, None]
        else:
            # The penalty and the causal mask are one addend for the heads of a group.
            weights_BGRQK = (scores_BGRQK + (bias_B1QK - selection)[:, :, None]).softmax(dim=-1)
        return weights_BGRQK.flatten(1, 2)

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Scores of the attending heads: z - S, or z where the mask comes after the softmax (B, output heads, Q, K)."""
        if self.variant == "original":
            scores_BHQK = self.scores(q_BHQW, k_BGKW)
            if self.gated:
                return scores_BHQK
            return scores_BHQK - self._sum_earlier(self.selection(q_BHQW, k_BGKW, attention_mask), None)
        q_BGRQW = q_BHQW.unflatten(1, (self.groups, -1))
        if self.variant == "masking_heads":
            q_BGRQW = q_BGRQW[:, :, 1:]
        scores_BGRQK = self.scores(q_BGRQW.flatten(1, 2), k_BGKW).unflatten(1, (self.groups, -1))
        if self.gated:
            return scores_BGRQK.flatten(1, 2)
        selection = self.selection(q_BHQW, k_BGKW, attention_mask)
        return (scores_BGRQK - selection[:, :, None]).flatten(1, 2)

    def spans(self, queries: int) -> list[tuple[int, int]]:
        """All queries as one chunk in the original, whose weights depend on earlier queries; else as in the base."""
        # The original's weights hang on all queries before, which who takes them chunk by chunk must carry along.
        return [(0, queries)] if self.variant == "original" else super().spans(queries)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by the Triton kernel where it can run, else in chunks (B, output heads, Q, W).

        In the original the chunks, and the `cache`, carry on the sum of S over earlier queries.
        """
        if self.kernel is not None and self.kernel_for_call(q_BHQW, attention_mask) == self.kernel:
            from plumbline.model.kernels.selective import selective

            attends = self.variant == "halved_key_values"
            inputs = cast_for_kernel(q_BHQW, k_BGKW, v_BGKW)
            return selective(*inputs, scale=self.scale, attends=attends, after=self.gated)
        if self.variant != "original":
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        queries = q_BHQW.shape[2]
        recompute = torch.is_grad_enabled() and queries > self.recompute_above
        before_B1K = None if cache is None else cache.memory.get(self.layer)
        outputs = []
        for start, stop in super().spans(queries):
            part = attention_mask.rows(start, stop)
            keys = part.key_positions_BK.shape[1]
            inputs = (q_BHQW[:, :, start:stop], k_BGKW[:, :, :keys], v_BGKW[:, :, :keys], part, before_B1K)
            out, before_B1K = (
                checkpoint(self._attend_span, *inputs, use_reentrant=False) if recompute else self._attend_span(*inputs)
            )
            outputs.append(out)
        if cache is not None:
            cache.memory[self.layer] = before_B1K
        return torch.cat(outputs, dim=2)

    def _attend_span(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        before_B1X: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs of some queries of the original, and what they and those before them put aside (B, 1, K), of which
        `before_B1X` has the part of the queries before; none of them sees a key beyond X."""
        selection_B1QK = self.selection(q_BHQW, k_BGKW, attention_mask)
        put_aside_B1K = selection_B1QK.sum(dim=2)
        before_B1K = None
        if before_B1X is not None:
            before_B1K = pad(before_B1X, (0, k_BGKW.shape[2] - before_B1X.shape[-1]))
            put_aside_B1K = put_aside_B1K + before_B1K
        weights_BHQK = self._original_weights(q_BHQW, k_BGKW, attention_mask, selection_B1QK, before_B1K)
        return mix_values(weights_BHQK, v_BGKW), put_aside_B1K

    def _original_weights(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        selection_B1QK: torch.Tensor,
        masked_before_B1K: torch.Tensor | None,
    ) -> torch.Tensor:
        """The original's weights, from the selection of these queries and the sum of it over those before."""
        earlier_B1QK = self._sum_earlier(selection_B1QK, masked_before_B1K)
        scores_BHQK = self.scores(q_BHQW, k_BGKW)
        if self.gated:
            return masked_softmax(scores_BHQK, attention_mask) * (-earlier_B1QK).exp()
        return masked_softmax(scores_BHQK - earlier_B1QK, attention_mask)

    def _sum_earlier(self, selection_B1QK: torch.Tensor, masked_before_B1K: torch.Tensor | None) -> torch.Tensor:
        """What the queries before each one have put aside, its own selection left out."""
        earlier = pad(selection_B1QK[:, :, :-1], (0, 0, 1, 0)).cumsum(dim=2)
        return earlier if masked_before_B1K is None else earlier + masked_before_B1K[:, :, None]
