"""Saves and restores what a run's loop knows beside weights and optimizer.

That is the step (= the data position), the metrics and the online probes so far, random states, the states of
interventions, and a divergence if there was one. Learning rates and data order are pure functions of the step.
"""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumbline.core.files import atomic_write_bytes, atomic_write_text, parse_json, pretty_json
from plumbline.probes import ProbeValue
from plumbline.runtime.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train import randomness
from plumbline.train.disk_faults import UnreadableFile
from plumbline.train.interventions import Intervention
from plumbline.train.monitoring import run_metrics
from plumbline.train.monitoring.run_metrics import RunMetrics
from plumbline.train.online_probes import OnlineProbes

METRICS = "metrics.npy"
ONLINE = "online.npy"
LOOP = "loop.json"

#: Values of online probes: -1 is no layer or head, not-a-number is no null.
ONLINE_ROW = np.dtype(
    [
        ("step", "<i8"),
        ("probe", "<U64"),
        ("layer", "<i8"),
        ("head", "<i8"),
        ("value", "<f8"),
        ("null", "<f8"),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedLoopState:
    """The training state as it goes into a checkpoint; none of it changes any more.

    `loop` is the text of ``loop.json``.
    """

    metrics: RunMetrics
    online: OnlineProbes
    loop: str

    def write(self, directory: Path) -> None:
        """Write the state into a checkpoint's directory; values of online probes where the run has any."""
        _save(directory / METRICS, np.array(self.metrics.rows, dtype=run_metrics.ROW))
        if self.online.probes:
            rows = [
                (
                    step,
                    probe_value.probe,
                    -1 if probe_value.layer is None else probe_value.layer,
                    -1 if probe_value.head is None else probe_value.head,
                    probe_value.value,
                    float("nan") if probe_value.null is None else probe_value.null,
                )
                for step, probe_value in self.online.probe_values
            ]
            _save(directory / ONLINE, np.array(rows, dtype=ONLINE_ROW))
        atomic_write_text(directory / LOOP, self.loop)


class TrainingState:
    """The state of a run's loop: how far it is. The loop goes on changing it.

    Attributes:
        step: updates made.
        random: random states before the step that comes next.
        divergence: the step, the reason, and once it is settled the step of the weights; None of a run that continues.
    """

    def __init__(self, spec: RunSpec, device: torch.device) -> None:
        self.step = 0
        self.metrics = RunMetrics()
        self.online = OnlineProbes(spec)
        self.random = randomness.capture(device)
        self.divergence: dict[str, Any] | None = None
        self._earlier = 0.0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds that training took so far, all starts together."""
        return self._earlier + time.monotonic() - self._began

    def so_far(self, ranks: RankGroup, interventions: Sequence[Intervention]) -> SavedLoopState:
        """Copy the state as a checkpoint takes it now (a collective)."""
        loop = {
            "step": self.step,
            "seconds": self.seconds,
            "random": ranks.gather(randomness.encode(self.random)),
            "interventions": [intervention.state() for intervention in interventions],
            "divergence": self.divergence,
        }
        return SavedLoopState(metrics=self.metrics.so_far(), online=self.online.so_far(), loop=pretty_json(loop))

    def put_back(self, directory: Path, ranks: RankGroup, interventions: Sequence[Intervention]) -> None:
        """Restore the state from a checkpoint's directory, whoever wrote it on however many ranks.

        Raises:
            UnreadableFile: an intervention cannot make sense of what it says of it.
        """
        loop = parse_json((directory / LOOP).read_text(encoding="utf-8"))
        self.metrics = RunMetrics(np.load(directory / METRICS, allow_pickle=False).tolist())
        if self.online.probes:
            self.online.probe_values = [
                (
                    step,
                    ProbeValue(
                        probe=probe,
                        layer=None if layer < 0 else layer,
                        head=None if head < 0 else head,
                        value=value,
                        null=None if np.isnan(null) else null,
                    ),
                )
                for step, probe, layer, head, value, null in np.load(directory / ONLINE, allow_pickle=False).tolist()
            ]
        self.step, self._earlier, self.divergence = loop["step"], loop["seconds"], loop["divergence"]
        for intervention, state in zip(interventions, loop["interventions"], strict=True):
            try:
                intervention.load_state(state)
            except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise UnreadableFile(
                    f"checkpoint {directory}: its state of the intervention {intervention.name!r} cannot be put back "
                    f"({error!r}); move that folder away and start the run again, from an earlier checkpoint"
                ) from error
        if ranks.rank < len(loop["random"]):
            randomness.restore(loop["random"][ranks.rank], ranks.device)
            self.random = randomness.capture(ranks.device)


def _save(path: Path, rows: np.ndarray) -> None:
    """Write rows whole: numpy itself tells of a full disk late, without its number, or not at all."""
    content = io.BytesIO()
    np.save(content, rows, allow_pickle=False)
    atomic_write_bytes(path, content.getvalue())
