"""Implements a probe of how much a model has come to need the queries and keys of its upper half."""

from __future__ import annotations

import contextlib

import torch
from torch.nn.functional import cross_entropy

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.specs.components import component

#: Value -> (queries are zero, keys are zero).
ABLATIONS = {"loss_no_query": (True, False), "loss_no_key": (False, True), "loss_neither": (True, True)}


@component
class UpperAblation(Probe):
    """``loss``: nats per token on the probe sequences; ``loss_no_query``, ``loss_no_key`` and ``loss_neither``: the
    same with the upper half's queries, keys or both set to zero.

    Activations are zeroed, after biases and positions (a zero weight would leave the bias). Scores are then zero and
    attention is uniform over visible keys, so that for a softmax the three are one number up to rounding; `loss` is the
    null of each, what it would be were these layers' attention uniform already. Each is a pass of its own. Source:
    premature study, section 3 and figure 3D.
    """

    def __init__(self) -> None:
        self.sequences: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.sum, self.tokens = 0.0, 0

    def sequence(self, inputs_BT: torch.Tensor, targets_BT: torch.Tensor) -> None:
        """Keep the tokens, which are fed again with queries or keys set to zero."""
        self.sequences.append((inputs_BT, targets_BT))

    def logits(self, logits_BTV: torch.Tensor) -> None:
        """Add up the loss of the unchanged model."""
        self.sum += sum_nats(logits_BTV, self.sequences[-1][1])
        self.tokens += self.sequences[-1][1].numel()

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The loss per token of the unchanged model and of each ablation; the latter are computed here."""
        loss = self.sum / self.tokens
        probe_values = [ProbeValue(probe="loss", value=loss)]
        for name, (query, key) in ABLATIONS.items():
            with contextlib.ExitStack() as stack:
                for layer in model.upper:
                    stack.enter_context(model.silence(layer, query=query, key=key))
                total = sum(sum_nats(model.logits(inputs_BT), targets_BT) for inputs_BT, targets_BT in self.sequences)
            probe_values.append(ProbeValue(probe=name, value=total / self.tokens, null=loss))
        return probe_values


def sum_nats(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> float:
    """Summed cross-entropy in nats of the targets (B, T) under the logits (B, T, V)."""
    losses = cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten(), reduction="none")
    return float(losses.double().sum())
