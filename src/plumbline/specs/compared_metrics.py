"""What a run is judged by. One of them decides, named in the user's file before the runs; the others stand beside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """`metric` of the scores, averaged over tasks; without one, a number of the run itself."""

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
