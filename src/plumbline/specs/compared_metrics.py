"""Declares the metrics by which two runs are compared.

One of them decides, and is named in the user's file before the runs are made; the others are shown next to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A metric for comparing runs: `metric` of the evaluation scores, averaged over tasks, or else a number of the run
    itself. `higher` says that a higher value is better."""

    name: str
    label: str
    higher: bool
    metric: str = ""


MEASURES = {
    one.name: one
    for one in (
        Measure(name="validation_loss", label="validation loss (nats)", higher=False),
        Measure(name="bits_per_byte", label="bits per byte of the right answer", higher=False, metric="bits_per_byte"),
        Measure(name="logprob", label="log-probability of the right answer (nats)", higher=True, metric="logprob_gold"),
        Measure(name="accuracy", label="accuracy, mean of the tasks", higher=True),
    )
}
