"""AdamW, as torch has it: decoupled weight decay p <- p (1 - lr wd), then the Adam update."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.adamw import adamw

from plumbline.specs.components import component
from plumbline.specs.spec import OptimizerSpec


@component
class AdamW:
    """The surface of a torch optimizer over torch's own functional AdamW, with the same bits as `torch.optim.AdamW`.

    The class is not used for its price: making one imports torch.compile's machinery, which takes as long as importing
    torch and would be half of the start of a small run. The fused kernel is element-wise: the same bits on every call.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        spec: OptimizerSpec,
        *,
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-8,
    ) -> None:
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.param_groups = groups
        self.state: dict[torch.Tensor, dict[str, torch.Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One update of every group at its ``lr`` and ``weight_decay``."""
        for group in self.param_groups:
            parameters = [value for value in group["params"] if value.grad is not None]
            states = [self._state(value) for value in parameters]
            adamw(
                parameters,
                [value.grad for value in parameters],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                amsgrad=False,
                beta1=self.beta1,
                beta2=self.beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=self.eps,
                maximize=False,
            )

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for group in self.param_groups:
            for value in group["params"]:
                value.grad = None

    def _state(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]
