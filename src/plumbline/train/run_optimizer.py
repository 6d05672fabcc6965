"""Makes a run's optimizer: parameter groups by role, and the learning rate of each, set anew before every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.distributed import local_part, local_rows
from plumbline.model.roles import ParameterRole
from plumbline.specs.components import load
from plumbline.specs.spec import OptimizerSpec, Precision
from plumbline.train.interventions import Intervention
from plumbline.train.optimizers._base import undo_if


def is_decayed(role: ParameterRole, spec: OptimizerSpec) -> bool:
    """Whether weight decay applies to a parameter: to every matrix, to the others by the spec's flags.

    Biases, scalars and every method's own vectors go by `decay_scalars`.
    """
    if role.matrix:
        return True
    return {"embedding": spec.decay_embeddings, "norm": spec.decay_norms}.get(role.role, spec.decay_scalars)


class RunOptimizer:
    """The optimizer of a run: groups of parameters by weight decay and by the interventions' labels."""

    def __init__(
        self,
        model: nn.Module,
        roles: dict[str, ParameterRole],
        spec: OptimizerSpec,
        interventions: Sequence[Intervention] = (),
        *,
        precision: Precision = "float32",
    ) -> None:
        """`model`'s parameters must have the names of `roles`, sharded or not; `precision` is the run's."""
        self.spec = spec
        self.interventions = interventions
        self.parameters: dict[str, nn.Parameter] = dict(model.named_parameters())
        grouped: dict[tuple[bool, tuple[str | None, ...]], list[str]] = {}
        for name in self.parameters:
            labels = tuple(intervention.label(name, roles[name]) for intervention in interventions)
            grouped.setdefault((is_decayed(roles[name], spec), labels), []).append(name)
        groups: list[dict[str, Any]] = [
            {
                "params": [self.parameters[name] for name in members],
                "roles": [roles[name] for name in members],
                "labels": labels,
                "weight_decay": spec.weight_decay if decay else 0.0,
                "decay": spec.weight_decay if decay else 0.0,
            }
            for (decay, labels), members in grouped.items()
        ]
        self.inner: Any = load("optimizer", spec.name)(groups, spec, **spec.options)
        self.inner.narrow = precision in ("bfloat16", "bfloat16_products")

    def describe(self) -> str:
        """Say for the log how many tensors and parameters are decayed and how many are not."""
        counts: dict[bool, list[int]] = {True: [0, 0], False: [0, 0]}
        for group in self.inner.param_groups:
            entry = counts[group["decay"] > 0]
            entry[0] += len(group["params"])
            entry[1] += sum(value.numel() for value in group["params"])
        return (
            f"{self.spec.name}: {counts[True][0]} tensors decayed ({counts[True][1]:,} parameters), "
            f"{counts[False][0]} not ({counts[False][1]:,})"
        )

    def clip(self) -> torch.Tensor:
        """Clip the gradients' global norm, and return the norm before clipping; `gradient_clip` 0 only measures it."""
        gradients = [value.grad for value in self.parameters.values() if value.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if hasattr(norm, "full_tensor"):
            norm = norm.full_tensor()
        if self.spec.gradient_clip > 0:
            nn.utils.clip_grads_with_norm_(self.parameters.values(), self.spec.gradient_clip, norm)
        return norm

    @property
    def can_skip(self) -> bool:
        """Whether a step can be skipped by a number on the device, without asking the host."""
        return getattr(self.inner, "can_skip", False)

    @torch.no_grad()
    def step(self, step: int, learning_rate: float, skip: torch.Tensor | None = None) -> None:
        """Make one update with `learning_rate` times the interventions' multipliers.

        `skip`: a scalar on the device, for an optimizer that `can_skip` and interventions that need not be read at once
        in this step (`Intervention.needs_loss`): where it is 1, nothing changes.

        Raises:
            PlumblineError: an intervention stops parameters and would have them decayed all the same.
        """
        multipliers = [intervention.before_step(step) for intervention in self.interventions]
        for group in self.inner.param_groups:
            rate, decay = learning_rate, group["decay"]
            for intervention, label, table in zip(self.interventions, group["labels"], multipliers, strict=True):
                if label is not None:
                    rate *= table[label]
                    if not intervention.scales_weight_decay:
                        if table[label] == 0:
                            raise PlumblineError(
                                f"{type(intervention).__name__}: a learning rate times 0 decays nothing, so the weight "
                                "decay cannot be kept as it was; let the multiplier scale it too"
                            )
                        decay /= table[label]
            group["lr"], group["weight_decay"] = rate, decay
        by_row = [intervention.row_multipliers(step) for intervention in self.interventions]
        old_values = {name: local_part(self.parameters[name]).clone() for rows in by_row for name in rows}
        self.inner.step(*(() if skip is None else (skip,)))
        for rows in by_row:
            for name, multipliers_X in rows.items():
                with undo_if(skip, self.parameters[name]):
                    self._scale_update(name, old_values[name], multipliers_X)
        for intervention in self.interventions:
            intervention.after_step(step)

    def _scale_update(self, name: str, old_value: torch.Tensor, multipliers_X: torch.Tensor) -> None:
        """W <- W_before + s_x (W - W_before) for each row x: what the step would have done with s_x times the learning
        rate, since an optimizer's update is linear in it, decay included. (A scaled gradient would not do that: Adam
        and Muon do not feel a gradient's length.) Where s_x is 1, the row keeps its bits."""
        value = local_part(self.parameters[name])
        torch.lerp(old_value, value, local_rows(multipliers_X, self.parameters[name]), out=value)

    def zero_grad(self) -> None:
        """Drop the gradients of all parameters."""
        self.inner.zero_grad()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Give the optimizer's state as flat tensors, ``<parameter>.<key>``: independent of groups and their order."""
        return {
            f"{name}.{key}": value
            for name, parameter in self.parameters.items()
            for key, value in self.inner.state.get(parameter, {}).items()
        }

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the state that `tensors` gave, placed like the parameters."""
        states: dict[str, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            name, _, entry = key.rpartition(".")
            states.setdefault(name, {})[entry] = value
        self.inner.state.clear()
        for name, state in states.items():
            self.inner.state[self.parameters[name]] = state
