"""AdamW, as torch has it: decoupled weight decay p <- p (1 - lr wd) before the Adam update."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.studies.spec import OptimizerSpec


def build(groups: list[dict[str, Any]], spec: OptimizerSpec) -> torch.optim.Optimizer:
    """One fused, element-wise kernel: the same bits on every call, and the fastest of torch's three on a CPU."""
    return torch.optim.AdamW(
        groups, lr=spec.learning_rate, betas=(spec.beta1, spec.beta2), eps=spec.eps, weight_decay=0.0, fused=True
    )
