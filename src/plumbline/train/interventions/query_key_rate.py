"""Multiplies the learning rate of queries and keys by a constant."""

from __future__ import annotations

from plumbline.core.errors import PlumblineError
from plumbline.model.roles import QUERY_KEY, ParameterRole
from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention, InterventionInputs


@component
class QueryKeyRate(Intervention):
    """Multiplies the learning rate of all matrices that make queries and keys, and of their biases, by `tau`.

    It does so for the whole run, their weight decay with it.

    Source: quack study, the baseline that it calls the ablation: `quack` starts from the same rates and then leaves
    them. In latent attention these are the six matrices of queries and keys, so that the latent that values are made of
    is slowed as well.
    """

    def __init__(self, *, tau: float = 1.0) -> None:
        if tau <= 0:
            raise PlumblineError(f"interventions: query_key_rate.tau ({tau:g}) must be above 0")
        self.tau = tau

    def attach(self, run: InterventionInputs) -> None:
        """Check that the model has parameters that make queries or keys.

        Raises:
            PlumblineError: it has none.
        """
        if not any(self.label(name, role) for name, role in run.model.parameter_roles.items()):
            raise PlumblineError(
                "interventions: query_key_rate: no parameter of this model makes queries or keys "
                f"(model.projections {run.spec.model.slot('projections').name!r}); leave it out"
            )

    def needs_loss(self, step: int) -> bool:
        """Return False: the multiplier is constant, and nothing is read."""
        return False

    def label(self, name: str, role: ParameterRole) -> str | None:
        """Label the matrices that make queries and keys, and their biases."""
        return "query_key" if {role.role, role.owner} & QUERY_KEY else None

    def before_step(self, step: int) -> dict[str, float]:
        """Give the multiplier `tau` for the labelled parameters."""
        return {"query_key": self.tau}
