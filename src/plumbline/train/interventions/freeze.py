"""Keeps the parameters of one role at the values that they start with."""

from __future__ import annotations

from typing import Literal

from plumbline.model.roles import ParameterRole
from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention


@component
class Freeze(Intervention):
    """Multiplies the learning rate of every parameter of `role` by 0, and with it its weight decay.

    Their gradients are still taken, and count in the global norm that is clipped. The frozen gains of the key_norms
    study are ``role: norm``: those of queries and keys, of the blocks and of the final norm.
    """

    def __init__(
        self,
        *,
        role: Literal[
            "query", "key", "value", "output", "attention_gate", "gate", "up", "down", "head", "stream_mixing",
            "query_down", "query_up", "query_rotary", "key_value_down", "key_up", "key_rotary", "embedding", "norm",
            "scalar", "bias", "pseudo_query",
        ] = "norm",
    ) -> None:  # fmt: skip
        self.role = role

    def needs_loss(self, step: int) -> bool:
        """Return False: the multiplier is always 0, and nothing is read."""
        return False

    def label(self, name: str, role: ParameterRole) -> str | None:
        """Label every parameter of the chosen role."""
        return "frozen" if role.role == self.role else None

    def before_step(self, step: int) -> dict[str, float]:
        """Give the multiplier 0 for the labelled parameters."""
        return {"frozen": 0.0}
