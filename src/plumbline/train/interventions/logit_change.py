"""Measures how far one update moves the attention logits."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import ProbedDecoder
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention, InterventionInputs
from plumbline.train.randomness import preserve_random_state

#: Names in the frame of probes.
CHANGE, LARGEST_CHANGE, LARGEST = "logit_change", "logit_change_max", "logit_max"


@component
class LogitChange(Intervention):
    """Changes nothing. With z the scaled scores of one head over the visible entries of held-out sequences, every
    `every` steps and in the last one it reads

    - ``logit_change``: the mean of |z_after - z_before|,
    - ``logit_change_max``: the largest |z_after - z_before|,
    - ``logit_max``: the largest z_after, with its sign,

    where `before` is the beginning of the step and `after` its end. The end comes after every intervention's changes,
    so that it does not matter where in the list this one stands. The model is in evaluation mode and computes in
    float32 meanwhile: one update is smaller than what bfloat16 rounds off. Source: quack study, which reads the
    middle head of the middle layer, "head 16, layer 8" of 14 layers with 32 heads, on a subset of its data: both are a
    middle one only if they are counted from 1.

    Options:
        every: steps from one measurement to the next.
        sequences: so many of the validation pack are read, the first ones of which no validation loss is computed.
        layer, head: counted from 0. -1 is the middle one: of an even number the upper of the two middle layers, and the
            lower of the two middle heads, as in the paper.
    """

    held_out = "apart"

    def __init__(self, *, every: int = 100, sequences: int = 4, layer: int = -1, head: int = -1) -> None:
        if every < 1 or sequences < 1:
            raise PlumblineError(
                f"interventions: logit_change.every ({every}) and .sequences ({sequences}) must be 1 or more"
            )
        self.every, self.sequences, self.layer, self.head = every, sequences, layer, head
        self.before: AttentionScores | None = None
        self.changes: list[tuple[int, float | None, float | None, float | None]] = []

    def attach(self, run: InterventionInputs) -> None:
        """Choose the head, and read the held-out sequences.

        Raises:
            PlumblineError: there is no such layer or head, there are too few sequences, or the model's mixer has no
                such scores.
        """
        self.run, spec, pack = run, run.spec.model, run.validation
        self.layer = self._resolve_index("layer", self.layer, spec.layers // 2, spec.layers)
        self.head = self._resolve_index("head", self.head, (spec.heads - 1) // 2, spec.heads)
        self.tokens_BT = torch.from_numpy(pack.rows(np.arange(self.sequences)))
        self.subject = ProbedDecoder(run.model)
        with self.subject.watch("scores", self.layer, lambda *values: None):
            run.progress.say(f"logit_change: of layer {self.layer}, head {self.head} (counted from 0)")

    @staticmethod
    def _resolve_index(option: str, value: int, middle: int, count: int) -> int:
        if not -1 <= value < count:
            raise PlumblineError(
                f"interventions: logit_change.{option} ({value}): the model has {option}s 0 to {count - 1}; -1 is the "
                "middle one"
            )
        return middle if value == -1 else value

    def _is_due(self, step: int) -> bool:
        return step % self.every == 0 or step == self.run.spec.train.steps

    def needs_loss(self, step: int) -> bool:
        """Return True in steps in which logits are read."""
        return self._is_due(step)

    def begin(self, step: int) -> None:
        """Read z_before, in steps in which logits are read."""
        self.before = self._scores() if self._is_due(step) else None

    def end(self, step: int) -> None:
        """Read z_after, in steps in which logits are read; all ranks get rank 0's numbers."""
        if self.before is None:
            return
        after = self._scores()
        mean, largest = measure_change(self.before, after)
        numbers = self.run.ranks.broadcast((mean, largest, after.rows.maximum.max().item()))
        self.changes.append((step, *(value if math.isfinite(value) else None for value in numbers)))
        self.before = None

    @torch.no_grad()
    def _scores(self) -> AttentionScores:
        """Of the head on the sequences, one of which is fed at a time, in float64."""
        sequence_scores: list[AttentionScores] = []
        device, model = self.run.ranks.device, self.run.model
        with contextlib.ExitStack() as stack:
            stack.enter_context(preserve_random_state(device))
            stack.callback(model.train, model.training)
            stack.enter_context(
                self.subject.watch("scores", self.layer, lambda _, scores: sequence_scores.append(scores))
            )
            model.eval()
            for tokens_T in self.tokens_BT.to(device):
                self.subject.logits(tokens_T[None, :-1])
        group = self.head * sequence_scores[0].k_BGTW.shape[1] // self.run.spec.model.heads
        return AttentionScores(
            torch.cat([scores.q_BHTW[:, [self.head]] for scores in sequence_scores]).double(),
            torch.cat([scores.k_BGTW[:, [group]] for scores in sequence_scores]).double(),
            1.0,
        )

    def state(self) -> dict[str, Any]:
        """Give the values so far; both sides of one are read within a step, so that no checkpoint comes between."""
        return {"found": [list(entry) for entry in self.changes]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the values so far."""
        self.changes = [tuple(entry) for entry in state["found"]]

    def measurements(self) -> list[tuple[int, str, float, float | None]]:
        """Give the values so far; one that is no finite number is NaN."""
        return [
            (step, name, math.nan if value is None else value, None)
            for step, *values in self.changes
            for name, value in zip((CHANGE, LARGEST_CHANGE, LARGEST), values, strict=True)
        ]

    def report(self, step: int) -> dict[str, Any]:
        """Say which layer and head were read, and how often."""
        return {"layer": self.layer, "head": self.head, "evaluations": len(self.changes)}


def measure_change(before: AttentionScores, after: AttentionScores) -> tuple[float, float]:
    """Compute mean and maximum of |z_after - z_before| over visible entries.

    The difference is itself a product: q' k' - q k = [q', q] [k', -k], so that it is read like any scores.
    """
    q_BHTW, k_BGTW = (torch.cat(pair, dim=-1) for pair in (
        (after.q_BHTW, before.q_BHTW), (after.k_BGTW, -before.k_BGTW)))  # fmt: skip
    moved, back = AttentionScores(q_BHTW, k_BGTW, 1.0).rows, AttentionScores(q_BHTW, -k_BGTW, 1.0).rows
    batch, heads, time = moved.absolute.shape
    mean = moved.absolute.sum() / (batch * heads * time * (time + 1) / 2)
    return mean.item(), torch.maximum(moved.maximum.max(), back.maximum.max()).item()
