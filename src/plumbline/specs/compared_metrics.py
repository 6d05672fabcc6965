"""Declares the metrics by which two runs are compared.

One of them decides, and is named in the user's file before the runs are made; the others are shown next to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedMetric:
    """A metric for comparing runs: `scored_as` of the evaluation scores, averaged over tasks, or else a number of the
    run itself. `higher` states that a higher value is better."""

    name: str
    label: str
    higher: bool
    scored_as: str = ""


METRICS = {
    metric.name: metric
    for metric in (
        ComparedMetric(name="validation_loss", label="validation loss (nats)", higher=False),
        ComparedMetric(
            name="bits_per_byte", label="bits per byte of the right answer", higher=False, scored_as="bits_per_byte"
        ),
        ComparedMetric(
            name="logprob", label="log-probability of the right answer (nats)", higher=True, scored_as="logprob_gold"
        ),
        ComparedMetric(name="accuracy", label="accuracy, mean of the tasks", higher=True),
    )
}
