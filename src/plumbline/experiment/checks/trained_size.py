"""Says how the runs of a user's own file read, which is how its methods are checked. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.specs.own_methods_file import OwnMethodsFile


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedSize:
    """How the runs of a method read: tokens of a sequence, sequences of a batch, and whether in bfloat16."""

    context: int
    rows: int
    half: bool


def trained_sizes(mine: OwnMethodsFile, *methods: str) -> list[TrainedSize]:
    """List how the runs of some methods read at every scale, each way once, shorter contexts first."""
    found = {
        TrainedSize(
            context=run.spec.model.context,
            rows=run.spec.sequences_per_batch,
            half=run.spec.train.precision != "float32",
        )
        for run in mine.study.runs.values()
        if run.spec.method in methods
    }
    return sorted(found, key=lambda size: (size.context, size.rows, size.half))
