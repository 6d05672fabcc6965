"""Defines how a run is trained on this machine, none of which is part of its identity.

Nothing here changes what is computed but for rounding (micro-batch, kernels).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainerSettings:
    """The trainer's settings, as its command line gives them.

    Units: `micro_batch` sequences on one rank, `*_seconds` seconds, `checkpoint_steps` optimizer steps. `micro_batch`
    None: a whole share; on a GPU, but for fsdp, the largest that its memory holds, found by trying. `compile_cache`:
    where what `compile` makes is kept for the next run of equal shape on such a processor; None: torch's own place.
    `attention`: "reference" has explicit weights in place of every fused kernel. `background_io`: threads write
    checkpoints and read the next step's sequences while steps are taken. `metric_lag_steps`: optimizer steps
    (`plumbline.train.monitoring.deferred_metrics`); None: as the device wants it. `stale_lock_seconds`: a lock whose
    heartbeat is older is stale. `lock_wait_seconds`: how long to wait for another trainer.
    `max_starts_without_progress`: starts from one step that fell to a fault in the loop, after which a run is given up
    (0: never).
    """

    training_pack: Path
    validation_pack: Path
    state: Path
    out: Path
    micro_batch: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    strategy: Literal["ddp", "fsdp"] = "ddp"
    compile: bool = False
    compile_cache: Path | None = None
    recompute_activations: bool = False
    attention: Literal["auto", "reference"] = "auto"
    metric_lag_steps: int | None = None
    checkpoint_seconds: float | None = None
    checkpoint_steps: int | None = None
    keep_checkpoints: int = 3
    background_io: bool = True
    tensorboard: Path | None = None
    mlflow: str | None = None
    report_seconds: float = 5.0
    stale_lock_seconds: float = 120.0
    lock_wait_seconds: float = 180.0
    max_starts_without_progress: int = 3

    def circumstances(self) -> dict[str, Any]:
        """Collect the settings that a deterministic fault may depend on, beside spec and data."""
        return {
            "micro_batch": self.micro_batch,
            "device": self.device,
            "strategy": self.strategy,
            "compile": self.compile,
            "recompute": self.recompute_activations,
            "attention": self.attention,
        }
