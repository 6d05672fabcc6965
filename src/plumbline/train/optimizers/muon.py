"""Implements Muon: matrices move along their orthogonalised momentum, everything else by AdamW."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.distributed import gather_full
from plumbline.model.roles import ATTENTION, ORTHOGONALISED, ParameterRole
from plumbline.specs.components import component
from plumbline.specs.spec import OptimizerSpec
from plumbline.train.optimizers._base import OptimizerBase, undo_if
from plumbline.train.optimizers._orthogonal import POLAR_EXPRESS, QUINTIC, orthogonalise


@component
class Muon(OptimizerBase):
    """Optimizes matrices by Muon and all other parameters by AdamW.

    A matrix W with gradient g and momentum B is updated by

        B <- lerp(B, g, 1 - momentum); U = orthogonalised(lerp(g, B, momentum) or, without `nesterov`, B);
        W <- W (1 - lr wd) - lr s U.

    Sources: Keller Jordan's Muon (2024) and torch.optim.Muon; where the options mean the same, so do the numbers, up to
    the precision of the orthogonalisation: float32 on a processor, which is faster there and deterministic; elsewhere
    bfloat16, as in both, unless the run is float32. Options:

    - `coefficients`: "quintic" is Jordan's and torch's; "polar_express" the key_norms study's, with its margin of 1 %.
    - `scale`: s by the matrix's rows r and columns c. "original" is sqrt(max(1, r / c)); "match_rms_adamw" (Moonlight)
      is 0.2 sqrt(max(r, c)), for learning rates of AdamW; "none" is 1. The weight decay is not scaled.
    - `matrices`: "concatenated" orthogonalises a layer's query, key, value and output weights as one matrix, stacked
      along their rows as each is stored (outputs x inputs); r and c are those of the stack. The key_norms study's code
      holds them as one parameter. "separate" takes each by itself. Other matrices are always separate, those of latent
      attention among them.
    - `decay_matrices`: whether the orthogonalised matrices are decayed as `weight_decay` says.
    - `adamw_learning_rate_ratio`: AdamW's learning rate for the other parameters, as a multiple of this optimizer's, so
      that schedules and interventions act on both; `beta1`, `beta2` and `eps` are AdamW's.

    A sharded matrix is gathered on every rank, orthogonalised there, and each rank takes its part.
    """

    can_skip = True

    def __init__(
        self,
        groups: list[dict[str, Any]],
        spec: OptimizerSpec,
        *,
        momentum: float = 0.95,
        nesterov: bool = True,
        steps: int = 5,
        coefficients: Literal["quintic", "polar_express"] = "quintic",
        scale: Literal["original", "match_rms_adamw", "none"] = "original",
        matrices: Literal["concatenated", "separate"] = "concatenated",
        decay_matrices: bool = True,
        adamw_learning_rate_ratio: float = 1.0,
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-8,
    ) -> None:
        super().__init__([part for group in groups for part in _split_group(group, decay_matrices)])
        self.momentum, self.nesterov = momentum, nesterov
        self.polynomials = _choose_polynomials(coefficients, steps)
        self.margin = 1.01 if coefficients == "polar_express" else 1.0
        self.scale = SCALES[scale]
        self.ratio, self.beta1, self.beta2, self.eps = adamw_learning_rate_ratio, beta1, beta2, eps
        self.others = [group for group in self.param_groups if not group["orthogonalised"]]
        self.groups_by_matrix = {
            value: group for group in self.param_groups if group["orthogonalised"] for value in group["params"]
        }
        members = [
            (value, role) for group in self.param_groups if group["orthogonalised"]
            for value, role in zip(group["params"], group["roles"], strict=True)
        ]  # fmt: skip
        self.stacks = _stack_matrices(members) if matrices == "concatenated" else [[value] for value, _ in members]

    @torch.no_grad()
    def step(self, skip: torch.Tensor | None = None) -> None:
        """Make one update of every group at its ``lr`` and ``weight_decay``; none where `skip` is 1."""
        for stack in self.stacks:
            self._orthogonal_update([value for value in stack if value.grad is not None], skip)
        for group in self.others:
            self.adamw_update(
                group["params"],
                learning_rate=group["lr"] * self.ratio,
                weight_decay=group["weight_decay"],
                beta1=self.beta1,
                beta2=self.beta2,
                eps=self.eps,
                skip=skip,
            )

    def _orthogonal_update(self, stack: list[torch.Tensor], skip: torch.Tensor | None) -> None:
        """Update the matrices of a stack. Each keeps its own learning rate: they may be in groups of their own."""
        if not stack:
            return
        directions = torch.cat([gather_full(self._direction(value, skip)) for value in stack])
        narrow = self.narrow and directions.device.type != "cpu"
        updates = orthogonalise(directions, self.polynomials, self.margin, narrow=narrow)
        updates.mul_(self.scale(*directions.shape))
        for value, update in zip(stack, updates.split([value.shape[0] for value in stack]), strict=True):
            group = self.groups_by_matrix[value]
            with undo_if(skip, value):
                value.mul_(1 - group["lr"] * group["weight_decay"])
                value.add_(_shard_like(update, value), alpha=-group["lr"])

    def _direction(self, value: torch.Tensor, skip: torch.Tensor | None) -> torch.Tensor:
        """The momentum of a matrix after this step's gradient was taken in."""
        gradient = value.grad
        assert gradient is not None
        if value not in self.state:
            self.state[value] = {"momentum_buffer": torch.zeros_like(value)}
        buffer = self.state[value]["momentum_buffer"]
        with undo_if(skip, buffer):
            buffer.lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(buffer, self.momentum) if self.nesterov else buffer


#: Convention -> the factor on an orthogonalised update of so many rows and columns.
SCALES = {
    "original": lambda rows, columns: math.sqrt(max(1.0, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "none": lambda rows, columns: 1.0,
}


def _split_group(group: dict[str, Any], decay_matrices: bool) -> list[dict[str, Any]]:
    """A group in two: what is orthogonalised, and the rest."""
    parts = []
    for orthogonal in (True, False):
        members = [
            (value, role) for value, role in zip(group["params"], group["roles"], strict=True)
            if (role.role in ORTHOGONALISED) == orthogonal
        ]  # fmt: skip
        part = group | {
            "params": [value for value, _ in members],
            "roles": [role for _, role in members],
            "orthogonalised": orthogonal,
        }
        if orthogonal and not decay_matrices:
            part |= {"weight_decay": 0.0, "decay": 0.0}
        parts += [part] if members else []
    return parts


def _stack_matrices(matrices: list[tuple[torch.Tensor, ParameterRole]]) -> list[list[torch.Tensor]]:
    """The matrices that are orthogonalised as one: attention's four by layer, every other by itself."""
    alone = [[value] for value, role in matrices if role.role not in ATTENTION]
    by_layer: dict[int | None, list[tuple[int, torch.Tensor]]] = {}
    for value, role in matrices:
        if role.role in ATTENTION:
            by_layer.setdefault(role.layer, []).append((ATTENTION.index(role.role), value))
    stacks = []
    for members in by_layer.values():
        stack = [value for _, value in sorted(members, key=lambda member: member[0])]
        if len({value.shape[1] for value in stack}) > 1:
            shapes = ", ".join(" x ".join(map(str, value.shape)) for value in stack)
            raise PlumblineError(
                "optimizer.matrices: query, key, value and output weights can be concatenated only where each has as "
                f"many columns as the others (here they are {shapes}); choose `matrices: separate`, or sizes with "
                "model.heads x model.head_width = model.width"
            )
        stacks.append(stack)
    return stacks + alone


def _choose_polynomials(coefficients: str, steps: int) -> tuple[tuple[float, float, float], ...]:
    polynomials = {"quintic": (QUINTIC,) * steps, "polar_express": POLAR_EXPRESS[: max(steps, 0)]}[coefficients]
    if not polynomials or len(polynomials) != steps:
        raise PlumblineError(
            f"optimizer.steps: {steps} steps of orthogonalisation; at least 1, and at most {len(POLAR_EXPRESS)} with "
            "`coefficients: polar_express`"
        )
    return polynomials


def _shard_like(update: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A whole update, sharded as the parameter is."""
    update = update.to(value.dtype)
    if not hasattr(value, "full_tensor"):
        return update
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(update.contiguous(), value.device_mesh, value.placements, src_data_rank=None)
