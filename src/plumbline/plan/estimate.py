"""What a run costs on a machine: seconds of its jobs, and the time limits they ask for. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from plumbline.files import canonical_json, sha256_text
from plumbline.plan import machines
from plumbline.plan.calibration import (
    Calibration,
    finished,
    inside_evaluation,
    measure,
    suite_of,
)
from plumbline.plan.machines import Machine
from plumbline.plan.size import Sizes, training_tokens, written
from plumbline.project import Plan
from plumbline.specs.config import ROOT
from plumbline.specs.sheet import Run

#: A time limit is so many times the estimate, and so many minutes more. A training that reaches its limit goes on in
#: another job, an evaluation begins anew, so that it gets more.
PRETRAIN_MARGIN, EVALUATE_MARGIN, SPARE_MINUTES = 1.5, 3.0, 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimator:
    """Prices the runs of one configuration on one machine."""

    plan: Plan
    machine: Machine
    calibration: Calibration
    sizes: Sizes

    @property
    def work(self) -> Path:
        """The preset's folder of runs and scores."""
        return Path(self.plan.work)

    def speed(self, scale: str) -> float:
        """Operations a second on one device: measured at this scale, else at the others, else as stated."""
        measured = self.calibration.speed
        if scale in measured:
            return measured[scale]
        return sum(measured.values()) / len(measured) if measured else self.machine.flops_per_second

    def training_flops(self, run: Run) -> float | None:
        """Operations of a run, its validations included; None where they cannot be counted."""
        size = self.sizes(run.spec.model)
        return None if size is None else training_tokens(run) * size.training

    def pretrain_seconds(self, run: Run) -> float | None:
        """Wall seconds of a run's training job, were it one job."""
        flops = self.training_flops(run)
        if flops is None:
            return None
        start = self.calibration.pretrain_start
        start = self.machine.start_seconds["pretrain"] if start is None else start
        devices = self.machine.devices_of(run)
        return start + flops * self.machine.relative(run) / (self.speed(run.spec.scale) * devices)

    def evaluate_seconds(self, run: Run) -> float | None:
        """Wall seconds of a run's evaluation job, on one device."""
        size, amount = self.sizes(run.spec.model), suite_of(self.plan, run)
        if size is None or amount is None:
            return None
        start = self.calibration.evaluate_start
        start = self.machine.start_seconds["evaluate"] if start is None else start
        speed = self.speed(run.spec.scale) * self.machine.evaluation_speed
        return start + inside_evaluation(amount, size.forward, speed)

    def pretrain_minutes(self, run: Run) -> int:
        """The time limit of one training job: at most a slice, over which the run is chained."""
        return self._limit(self.pretrain_seconds(run), PRETRAIN_MARGIN)

    def evaluate_minutes(self, run: Run) -> int:
        """The time limit of an evaluation job."""
        return self._limit(self.evaluate_seconds(run), EVALUATE_MARGIN)

    def _limit(self, seconds: float | None, margin: float) -> int:
        whole = max(1, int(self.machine.slice_hours * 60))
        return whole if seconds is None else min(whole, ceil(margin * seconds / 60) + SPARE_MINUTES)

    def trained(self, run: Run) -> bool:
        """Whether a run has been carried out."""
        return finished(run, self.work) is not None

    def scored(self, run: Run) -> bool:
        """Whether a run has been carried out and evaluated."""
        return self.trained(run) and (self.work / "scores" / run.key / "scores.parquet").exists()

    def digest(self) -> str:
        """Changes when what a plan says may have changed: configuration, machine, measurements, what is done."""
        done = [[key, self.trained(run), self.scored(run)] for key, run in self.plan.runs.items()]
        calibration = [self.calibration.speed, self.calibration.pretrain_start, self.calibration.evaluate_start]
        return sha256_text(canonical_json([self.plan.config, self.machine.name, calibration, done]))[:16]


def estimator(
    plan: Plan,
    machine: Machine | None = None,
    *,
    sizes: Sizes = written,
    calibrate_on: Iterable[Run] | None = None,
    root: Path = ROOT,
) -> Estimator:
    """An estimator for a configuration.

    Args:
        machine: the default is the configuration's.
        sizes: `size.written` never imports torch, `size.counted` may.
        calibrate_on: the runs whose measurements count; by default all that are finished.

    Raises:
        PlumblineError: the configuration names a machine that is not in config/machines.yaml.
    """
    machine = machine or machines.load(plan.config["machine"], root)
    runs = plan.runs.values() if calibrate_on is None else calibrate_on
    return Estimator(plan=plan, machine=machine, calibration=measure(plan, machine, sizes, runs), sizes=sizes)
