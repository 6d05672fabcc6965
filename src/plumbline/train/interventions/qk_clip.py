"""Implements QK-clip: scales weights of queries and keys down where a head's logits have become too large."""

from __future__ import annotations

import functools
from typing import Any

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.distributed import local_part, local_rows
from plumbline.model.mixers._base import Mixer
from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention, InterventionInputs
from plumbline.train.interventions._heads import QueryKeyMatrices
from plumbline.train.interventions.entropy_floor import is_softmax

#: Names in the frame of probes.
LARGEST, CLIPPED = "qk_clip_largest", "qk_clip_heads"


@component
class QKClip(Intervention):
    """Clips attention logits after a step by scaling the weights of the heads whose logits were too large.

    A head whose largest logit S of that step's batch was above `threshold` has its weights scaled so that all its
    logits become gamma = threshold / S times what they are (`QueryKeyMatrices.scales`; biases go with their matrix).

    S is the largest scaled score, with its sign, that entered the softmax in the forward calls of the step: of all
    sequences, micro-batches and ranks, visible entries only. It is of the weights before the update, as is usual. The
    optimizer's momentum stays as it is. Source: the Kimi K2 report (2025), algorithm 1, the quack study's baseline for
    latent attention; what it means for key heads that several query heads share is our own interpretation.

    Scores are made once more for this, in float32 and some queries at a time.

    What every step gave is in the frame of probes: ``qk_clip_largest``, S over all heads, and ``qk_clip_heads``, how
    many were clipped.
    """

    def __init__(self, *, threshold: float = 100.0) -> None:
        if threshold <= 0:
            raise PlumblineError(f"interventions: qk_clip.threshold ({threshold:g}) must be above 0")
        self.threshold = threshold
        self.inputs: dict[int, tuple[torch.Tensor, torch.Tensor, AttentionMask]] = {}
        self.watching = False
        self.steps: list[tuple[int, float, int]] = []

    def attach(self, run: InterventionInputs) -> None:
        """Watch the mixers, to see the queries and keys of each forward pass.

        Raises:
            PlumblineError: a mixer's weights are not the softmax of its scores, or as `QueryKeyMatrices`.
        """
        self.run, spec = run, run.spec.model
        self.mixers: list[Mixer] = [block.attention.mixer for block in run.model.blocks]
        for layer, mixer in enumerate(self.mixers):
            if not is_softmax(mixer, spec.heads, spec.head_width):
                raise PlumblineError(
                    f"interventions: qk_clip: the weights of model.mixer {spec.slot('mixer').name!r} are not the "
                    "softmax of its scores, and only for these is a threshold known; use the mixer 'softmax', or leave "
                    "the intervention out"
                )
            mixer.register_forward_pre_hook(functools.partial(self._record_inputs, layer))
        run.model.register_forward_pre_hook(self._begin_forward)
        self.heads = QueryKeyMatrices(run, "qk_clip")

    def begin(self, step: int) -> None:
        """Forget the largest logits of the step before."""
        shape = (len(self.mixers), self.heads.heads)
        self.largest_LH = torch.full(shape, float("-inf"), dtype=torch.float64, device=self.run.ranks.device)

    def _begin_forward(self, model: torch.nn.Module, inputs: Any) -> None:
        """A forward call of the whole model begins: watch it, if it is one of training."""
        self.inputs.clear()
        self.watching = model.training

    def _record_inputs(self, layer: int, mixer: torch.nn.Module, inputs: Any) -> None:
        # Layers that are computed again for the gradient go by here as well; the watch is over by then.
        if self.watching:
            q_BHQW, k_BGKW, _, attention_mask, _ = inputs
            self.inputs[layer] = (q_BHQW, k_BGKW, attention_mask)

    @torch.no_grad()
    def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor | None:
        """Note the largest logits of the micro-batch whose forward pass was the last; no term is added."""
        self.watching = False
        for layer, mixer in enumerate(self.mixers):
            largest_H = largest_scores(mixer, *self.inputs.pop(layer))
            self.largest_LH[layer] = torch.maximum(self.largest_LH[layer], largest_H)
        return None

    def after_step(self, step: int) -> None:
        """Scale the weights of heads whose largest logit was above the threshold. Every rank does the same."""
        largest = self.run.ranks.max(self.largest_LH.flatten().tolist())
        self.steps.append((step, max(largest), sum(value > self.threshold for value in largest)))
        if self.steps[-1][2]:
            gammas = [min(1.0, self.threshold / value) if value > 0 else 1.0 for value in largest]
            self.clip(torch.tensor(gammas, dtype=torch.float64).reshape(self.largest_LH.shape))

    @torch.no_grad()
    def clip(self, gamma_LH: torch.Tensor) -> None:
        """Scale weights so that the logits of head h of layer l become gamma_lh times what they are."""
        scales = self.heads.scales(gamma_LH.to(self.run.ranks.device))
        for name, scale_X in self.heads.spread_over_rows(scales).items():
            parameter = self.heads.parameters[name]
            local_part(parameter).mul_(local_rows(scale_X, parameter))

    def state(self) -> dict[str, Any]:
        """Give the largest logit and the clipped heads of every step; nothing else outlives a step."""
        return {"steps": [list(entry) for entry in self.steps]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the largest logit and the clipped heads of every step so far."""
        self.steps = [tuple(entry) for entry in state["steps"]]

    def measurements(self) -> list[tuple[int, str, float, float | None]]:
        """Give the largest logit and the number of clipped heads of every step."""
        return [
            entry
            for step, largest, clipped in self.steps
            for entry in ((step, LARGEST, largest, None), (step, CLIPPED, float(clipped), None))
        ]

    def report(self, step: int) -> dict[str, Any]:
        """Say how many heads were clipped (one counts in every step), in how many steps, and the largest logit of
        all.

        The largest is None before the first step.
        """
        clipped = [heads for _, _, heads in self.steps]
        return {
            "clipped": sum(clipped),
            "steps": sum(heads > 0 for heads in clipped),
            "largest": max((largest for _, largest, _ in self.steps), default=None),
        }


def largest_scores(
    mixer: Mixer, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask
) -> torch.Tensor:
    """Compute each head's largest scaled score (H,) of visible entries, with its sign, in float32 or wider."""
    maxima = []
    for start, stop in mixer.spans(q_BHQW.shape[2]):
        part = attention_mask.rows(start, stop)
        scores_BHQK = mixer.scores(q_BHQW[:, :, start:stop], k_BGKW[:, :, : part.key_positions_BK.shape[1]])
        maxima.append(scores_BHQK.masked_fill_(~part.mask_B1QK, float("-inf")).amax(dim=(0, 2, 3)))
    return torch.stack(maxima).amax(0)
