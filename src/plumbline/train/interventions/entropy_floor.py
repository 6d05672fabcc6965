"""Adds a price on upper-layer attention that is sharper than a floor to the loss, early in training."""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch.utils.checkpoint import checkpoint

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.mixers._base import Mixer, masked_softmax
from plumbline.specs.components import component
from plumbline.train.interventions._base import InterventionInputs
from plumbline.train.interventions._until_release import UntilRelease


@component
class EntropyFloor(UntilRelease):
    """Adds weight x max(0, floor - H) to the loss of each micro-batch until the release.

    H is the mean attention entropy of the layers from L // 2 on: over their heads, the micro-batch's sequences and the
    queries that see more than one key, of H_i / log(number of keys that i sees). The hinge is on that mean. Because it
    is not linear, a run depends a little on how its batch is cut into micro-batches. Source: premature study, appendix
    D, equation 68 (floor 0.80, weight 0.10, the release of the main intervention).

    Weights of the upper layers are made once more for this, in float32 and some queries at a time; where the mixer
    would compute them again for the gradient instead of keeping them, so does this.

    Options:
        after_release: ``off`` drops the term at once, ``ramp`` takes the weight down along the ramp.
        The others are those of `plumbline.train.interventions._until_release.UntilRelease`.
    """

    def __init__(
        self,
        *,
        floor: float = 0.80,
        weight: float = 0.10,
        after_release: Literal["off", "ramp"] = "off",
        **rule: Any,
    ) -> None:
        if after_release == "off":
            rule["ramp"] = 0.0
        super().__init__(**rule)
        if not 0 <= floor <= 1:
            raise PlumblineError(
                f"interventions: entropy_floor.floor ({floor:g}) must lie between 0 and 1, the normalised entropy of "
                "attention to one key and to all keys alike"
            )
        if weight < 0:
            raise PlumblineError(f"interventions: entropy_floor.weight ({weight:g}) must be 0 or more")
        self.floor, self.full_weight = floor, weight
        self.active = self.watching = False
        self.inputs: dict[int, tuple[torch.Tensor, torch.Tensor, AttentionMask]] = {}

    def attach(self, run: InterventionInputs) -> None:
        """Watch the upper layers' mixers, to see the queries and keys of each forward pass.

        Raises:
            PlumblineError: a mixer's weights are not the softmax of its scores.
        """
        super().attach(run)
        layers = run.spec.model.layers
        self.mixers: dict[int, Mixer] = {
            layer: run.model.blocks[layer].attention.mixer for layer in range(layers // 2, layers)
        }
        for layer, mixer in self.mixers.items():
            if not is_softmax(mixer, run.spec.model.heads, run.spec.model.head_width):
                raise PlumblineError(
                    f"interventions: entropy_floor: the weights of model.mixer "
                    f"{run.spec.model.slot('mixer').name!r} are not the softmax of its scores, and only for these is "
                    "the entropy known; use the mixer 'softmax', or leave the intervention out"
                )
            mixer.register_forward_pre_hook(functools.partial(self._record_inputs, layer))
        run.model.register_forward_pre_hook(self._begin_forward)

    def needs_loss(self, step: int) -> bool:
        """Return True also while the term has a weight: each micro-batch asks whether the term is zero."""
        return super().needs_loss(step) or self.weight(step) > 0

    def begin(self, step: int) -> None:
        """Evaluate the rule, and note whether the term has a weight in this step."""
        super().begin(step)
        self.active = self.weight(step) > 0

    def weight(self, step: int) -> float:
        """Compute the weight of the term in step `step`."""
        return (1.0 - self.share(step)) * self.full_weight

    def _begin_forward(self, model: torch.nn.Module, inputs: Any) -> None:
        """A forward call of the whole model begins: watch it, if it is one of training."""
        self.inputs.clear()
        self.watching = self.active and model.training

    def _record_inputs(self, layer: int, mixer: torch.nn.Module, inputs: Any) -> None:
        # Layers that are computed again for the gradient go by here as well; the watch is over by then.
        if self.watching:
            q_BHQW, k_BGKW, _, attention_mask, _ = inputs
            self.inputs[layer] = (q_BHQW, k_BGKW, attention_mask)

    def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor | None:
        """Compute the term for the micro-batch whose forward pass was the last; None where it is zero."""
        if not self.active:
            return None
        self.watching = False
        calls = {layer: self.inputs.pop(layer) for layer in self.mixers}
        entropies = [normalised_entropy(self.mixers[layer], *inputs) for layer, inputs in calls.items()]
        shortfall = self.floor - torch.stack(entropies).mean()
        if shortfall.item() <= 0:  # its gradient is zero, and half of the cost
            return None
        return self.weight(step) * shortfall


def normalised_entropy(
    mixer: Mixer, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask
) -> torch.Tensor:
    """Compute the mean over sequences, heads and queries with more than one key of H_i / log(keys), differentiable.

    In float32 or wider. The gradient of H_i by its scores is -P_ij (log P_ij + H_i). 1 is attention to all keys alike,
    0 to a single one.
    """
    queries = q_BHQW.shape[2]
    recompute = torch.is_grad_enabled() and queries > mixer.recompute_above
    total = torch.zeros((), device=q_BHQW.device)
    for start, stop in mixer.spans(queries):
        part = attention_mask.rows(start, stop)
        inputs = (mixer, q_BHQW[:, :, start:stop], k_BGKW[:, :, : part.key_positions_BK.shape[1]], part)
        total = total + (
            checkpoint(_entropy_sum, *inputs, use_reentrant=False, preserve_rng_state=False)
            if recompute
            else _entropy_sum(*inputs)
        )
    rows = (attention_mask.visible_B1Q1 > 1).expand(q_BHQW.shape[0], -1, -1, -1).sum() * q_BHQW.shape[1]
    return total / rows


def _entropy_sum(
    mixer: Mixer, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask
) -> torch.Tensor:
    visible_B1QK = attention_mask.mask_B1QK
    scores_BHQK = mixer.scores(q_BHQW, k_BGKW)
    log_BHQK = scores_BHQK.masked_fill(~visible_B1QK, float("-inf")).log_softmax(dim=-1)
    # 0 log 0 is 0, and so is its gradient.
    entropy_BHQ = -(log_BHQK.exp() * log_BHQK.masked_fill(~visible_B1QK, 0.0)).sum(dim=-1)
    keys_B1Q = attention_mask.visible_B1Q1[..., 0].to(entropy_BHQ.dtype)
    return (entropy_BHQ * torch.where(keys_B1Q > 1, 1.0 / keys_B1Q.log(), 0.0)).sum()


@torch.no_grad()
def is_softmax(mixer: Mixer, heads: int, width: int) -> bool:
    """Whether a mixer's weights are the softmax of its scores, tried on fixed queries and keys.

    One with parameters of its own is none: what it does now it need not do later.
    """
    if any(True for _ in mixer.parameters()):
        return False
    device = torch.device("cpu")
    q_BHTW = torch.linspace(-3.0, 4.0, heads * 5 * width, device=device).sin().reshape(1, heads, 5, width)
    k_BGTW = torch.linspace(-5.0, 2.0, mixer.groups * 5 * width, device=device).cos().reshape(1, mixer.groups, 5, width)
    attention_mask = AttentionMask.for_call(torch.zeros(1, 5, dtype=torch.int64, device=device), None, None)
    for size in (1.0, 1000.0):  # a cap is not felt by small scores
        expected = masked_softmax(mixer.scores(size * q_BHTW, k_BGTW), attention_mask)
        weights = mixer.weights(size * q_BHTW, k_BGTW, attention_mask)
        if weights.shape != expected.shape or not torch.allclose(weights, expected):
            return False
    return True
