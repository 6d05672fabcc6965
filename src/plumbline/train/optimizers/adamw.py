"""Implements AdamW as torch has it: decoupled weight decay p <- p (1 - lr wd), then the Adam update."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.specs.components import component
from plumbline.specs.spec import OptimizerSpec
from plumbline.train.optimizers._base import OptimizerBase


@component
class AdamW(OptimizerBase):
    """Optimizes every parameter by AdamW, with the same bits as `torch.optim.AdamW`."""

    can_skip = True

    def __init__(
        self,
        groups: list[dict[str, Any]],
        spec: OptimizerSpec,
        *,
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(groups)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps

    @torch.no_grad()
    def step(self, skip: torch.Tensor | None = None) -> None:
        """Make one update of every group at its ``lr`` and ``weight_decay``; none where `skip` is 1."""
        for group in self.param_groups:
            self.adamw_update(
                group["params"],
                learning_rate=group["lr"],
                weight_decay=group["weight_decay"],
                beta1=self.beta1,
                beta2=self.beta2,
                eps=self.eps,
                skip=skip,
            )
