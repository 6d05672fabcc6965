"""The interface of a probe.

A pass over some sequences is shared by all probes that read there: a probe overrides a method for each site of the
model that it wants to see, is told what goes by, sequence by sequence and layer by layer, and sums up what it needs.
Nothing is kept that a probe does not keep itself, so a pass costs no more memory than a forward call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from plumbline.model.decoder import Decoder


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One number. `layer` and `head` count from 0, None where the number is of none.

    `null`: what the number would be if the model did nothing of what the probe looks for; None where it has no null.
    """

    probe: str
    value: float
    layer: int | None = None
    head: int | None = None
    null: float | None = None


class Probe:
    """Sees nothing; a subclass overrides the sites that it needs and `readings`. It is good for one pass.

    A file ``probes/<family>.py`` holds one subclass, marked ``@component``; its options are its keyword-only
    arguments. Sums over tokens are kept in float64, so that they do not depend on how sequences are cut into passes.
    """

    def query_key(self, layer: int, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> None:
        """A layer's queries and keys after the query/key transform, before positions."""

    def readings(self, model: Decoder) -> list[Reading]:
        """What was seen, once the pass is over. `model` is in evaluation mode; its parameters may be sharded."""
        raise TypeError(f"{type(self).__name__} defines no readings")


#: Site -> the module of a block whose output it is. The site's name is that of the probes' method.
SITES = {"query_key": "attention.query_key"}
