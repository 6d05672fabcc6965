"""Multiplies the learning rate of all parameters."""

from __future__ import annotations

from typing import Any, Literal

from plumbline.core.errors import PlumblineError
from plumbline.model.roles import ParameterRole
from plumbline.specs.components import component
from plumbline.train.interventions._until_release import UntilRelease


@component
class LearningRateFactor(UntilRelease):
    """Multiplies the learning rate of every parameter by `factor`: for the whole run, or until a release.

    Source: premature study, appendix E (one half, all parameters, the same shape of the schedule).

    Options:
        scale_weight_decay: AdamW decays by learning rate x weight decay, so that decay is slowed, too; False keeps it.
        The others are those of `plumbline.train.interventions._until_release.UntilRelease`.
    """

    def __init__(
        self,
        *,
        factor: float = 0.5,
        scale_weight_decay: bool = True,
        release: Literal["online", "fixed", "never"] = "never",
        **rule: Any,
    ) -> None:
        super().__init__(release=release, **rule)
        if factor <= 0:
            raise PlumblineError(f"interventions: learning_rate_factor.factor ({factor:g}) must be above 0")
        self.factor = factor
        self.scales_weight_decay = scale_weight_decay

    def label(self, name: str, role: ParameterRole) -> str | None:
        """Label every parameter."""
        return "all"

    def before_step(self, step: int) -> dict[str, float]:
        """Give the factor until the release, then a multiplier that goes to 1 along the ramp."""
        return {"all": self.towards_one(self.factor, step)}
