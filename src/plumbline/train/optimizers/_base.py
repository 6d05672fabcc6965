"""Shares code between optimizers: the surface of a torch optimizer, and AdamW."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.adamw import adamw

from plumbline.model.distributed import local_part


@contextlib.contextmanager
def undo_if(skip: torch.Tensor | None, value: torch.Tensor) -> Iterator[None]:
    """Undo what a ``with`` block does to `value` in place, where `skip` is 1; the host does not ask for it."""
    before = None if skip is None else local_part(value).clone()
    yield
    if skip is not None:
        local_part(value).copy_(torch.where(skip > 0, before, local_part(value)))


class OptimizerBase:
    """The base of all optimizers: the surface of a torch optimizer without its class.

    Making one of torch's imports torch.compile's machinery, which takes as long as importing torch and would be half of
    the start of a small run.
    """

    #: Whether `step` takes a `skip`.
    can_skip = False
    #: Whether matrix products may be in bfloat16 on a device that is no processor: the run's precision is.
    narrow = False

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        self.param_groups = groups
        self.state: dict[torch.Tensor, dict[str, torch.Tensor]] = {}

    def zero_grad(self) -> None:
        """Drop the gradients of all parameters."""
        for group in self.param_groups:
            for value in group["params"]:
                value.grad = None

    def adamw_update(
        self,
        parameters: list[torch.Tensor],
        *,
        learning_rate: float,
        weight_decay: float,
        beta1: float,
        beta2: float,
        eps: float,
        skip: torch.Tensor | None = None,
    ) -> None:
        """Make one update by torch's own functional AdamW: p <- p (1 - lr wd), then Adam's.

        Parameters without a gradient stay; where `skip` is 1, all of them do, and their state. The fused kernel is
        element-wise: the same bits on every call, and those of `torch.optim.AdamW`.
        """
        parameters = [value for value in parameters if value.grad is not None]
        states = [self._adamw_state(value) for value in parameters]
        adamw(
            parameters,
            [value.grad for value in parameters],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            found_inf=skip,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=learning_rate,
            weight_decay=weight_decay,
            eps=eps,
            maximize=False,
        )

    def _adamw_state(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]
