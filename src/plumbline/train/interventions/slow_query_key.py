"""Lowers the learning rate of queries and keys of the upper half of the layers, early in training."""

from __future__ import annotations

from typing import Any, Literal

from plumbline.core.errors import PlumblineError, nearest
from plumbline.model.roles import MATRICES, ParameterRole
from plumbline.specs.components import component
from plumbline.train.interventions._base import InterventionInputs
from plumbline.train.interventions._until_release import UntilRelease


@component
class SlowQueryKey(UntilRelease):
    """Multiplies the learning rate of the chosen matrices by `multiplier` until the release, then ramps it back.

    The upper half are the layers from L // 2 on, counted from 0. Source: premature study, section 2 (multiplier 0.25,
    release rule, ramp); appendix F (fixed releases); appendix G (other multipliers). Warm-up is slowed like the rest.

    Options:
        roles: which matrices, by role, with commas between them.
        include_bias: their biases as well.
        scale_weight_decay: AdamW decays by learning rate x weight decay, so that decay is slowed, too; False keeps it.
        half: ``upper``, or ``all`` for every layer.
        The others are those of `plumbline.train.interventions._until_release.UntilRelease`.
    """

    def __init__(
        self,
        *,
        multiplier: float = 0.25,
        roles: str = "query,key",
        include_bias: bool = True,
        scale_weight_decay: bool = True,
        half: Literal["upper", "all"] = "upper",
        **rule: Any,
    ) -> None:
        super().__init__(**rule)
        if multiplier <= 0:
            raise PlumblineError(
                f"interventions: slow_query_key.multiplier ({multiplier:g}) must be above 0; parameters that are not "
                "to move at all are for the intervention 'freeze'"
            )
        self.multiplier, self.include_bias, self.half = multiplier, include_bias, half
        self.scales_weight_decay = scale_weight_decay
        self.roles = [role.strip() for role in roles.split(",")]
        for role in self.roles:
            if role not in MATRICES:
                raise PlumblineError(
                    f"interventions: slow_query_key.roles: there is no role {role!r}{nearest(role, MATRICES)} (there "
                    f"are {sorted(MATRICES)})"
                )

    def attach(self, run: InterventionInputs) -> None:
        """Prepare the release rule, and check that every chosen role has a parameter in the chosen layers.

        Raises:
            PlumblineError: the model has no parameter of one of the roles in these layers.
        """
        super().attach(run)
        self.first_layer = 0 if self.half == "all" else run.spec.model.layers // 2
        present_roles = {role.role for role in run.model.parameter_roles.values() if self._selects(role)}
        for role in self.roles:
            if role not in present_roles:
                raise PlumblineError(
                    f"interventions: slow_query_key.roles: no layer from {self.first_layer} on has a parameter of role "
                    f"{role!r} in this model; leave it out"
                )

    def _selects(self, role: ParameterRole) -> bool:
        chosen = role.role in self.roles or (self.include_bias and role.owner in self.roles)
        return chosen and role.layer is not None and role.layer >= self.first_layer

    def label(self, name: str, role: ParameterRole) -> str | None:
        """Label the chosen matrices of the chosen layers and, with `include_bias`, their biases."""
        return "slow" if self._selects(role) else None

    def before_step(self, step: int) -> dict[str, float]:
        """Give the multiplier until the release, then one that goes to 1 along the ramp."""
        return {"slow": self.towards_one(self.multiplier, step)}
