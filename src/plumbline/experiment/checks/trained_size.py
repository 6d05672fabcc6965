"""Says how the runs of a user's own file read, which is how its methods are checked. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.specs.own_methods_file import OwnMethodsFile


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedSize:
    """How the runs of a method read: tokens of a sequence, sequences of a batch, whether in bfloat16, and the layers of
    the deepest of them.
    """

    context: int
    rows: int
    half: bool
    layers: int


def trained_sizes(mine: OwnMethodsFile, *methods: str) -> list[TrainedSize]:
    """List how the runs of some methods read at every scale, each way once, shorter contexts first."""
    layers: dict[tuple[int, int, bool], int] = {}
    for run in mine.study.runs.values():
        if run.spec.method in methods:
            model = run.spec.model
            read = (model.context, run.spec.sequences_per_batch, run.spec.train.precision != "float32")
            layers[read] = max(layers.get(read, 0), model.layers)
    return [
        TrainedSize(context=context, rows=rows, half=half, layers=most)
        for (context, rows, half), most in sorted(layers.items())
    ]
