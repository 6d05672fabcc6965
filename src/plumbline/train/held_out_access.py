"""Hands held-out sequences to the interventions that declare that they read some, and to no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.data.loader import Pack
from plumbline.train.interventions import Intervention


class SequencesBehindTheLoss:
    """The sequences of a validation pack behind those of which the validation loss is computed, counted from 0."""

    def __init__(self, name: str, pack: Pack, first: int) -> None:
        self._name, self._pack, self._first = name, pack, first
        self.path: Path = pack.path
        self.context, self.vocabulary, self.separator = pack.context, pack.vocabulary, pack.separator
        self.sequences = pack.sequences - first

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Read several sequences, in the order of `indices`: int64 (B, T).

        Raises:
            PlumblineError: one of them is among the sequences of the loss, or there is none of that number.
        """
        indices = np.asarray(indices, dtype=np.int64)
        if indices.size and not (indices.min() >= 0 and indices.max() < self.sequences):
            raise PlumblineError(
                f"interventions: {self._name} reads {int(indices.max()) + 1} held-out sequences, and "
                f"{self.sequences} of {self.path} lie behind the {self._first} of the validation loss: lower its "
                "`sequences` or train.validation_sequences, or give the corpus's pack more (presets.*.validation)"
            )
        return self._pack.rows(indices + self._first)


class UndeclaredHeldOut:
    """Stands where the held-out sequences would be, for an intervention that declares none."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Refuse whatever is asked.

        Raises:
            PlumblineError: always, but for Python's own names.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        raise PlumblineError(
            f"interventions: {self._name} reads held-out sequences and does not declare it: write "
            'held_out = "apart" in its class, for those on which no validation loss is computed'
        )


def handed(hook: Intervention, pack: Pack, of_the_loss: int) -> Pack:
    """Give what an intervention sees of a validation pack whose first `of_the_loss` sequences the loss is computed of.

    Raises:
        PlumblineError: it declares something that there is not.
    """
    given: dict[str, Any] = {
        "none": UndeclaredHeldOut(hook.name),
        "apart": SequencesBehindTheLoss(hook.name, pack, of_the_loss),
    }
    if hook.held_out not in given:
        raise PlumblineError(
            f'interventions: {hook.name}: held_out is {hook.held_out!r} in its class: write "apart" to read sequences '
            'of which no validation loss is computed, or "none"'
        )
    return cast(Pack, given[hook.held_out])
