"""What targets cost: runs, tokens, operations, device-hours, wall time, disk, longest path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from plumbline.plan.calibration import Calibration, finished, measure, training_flops
from plumbline.plan.machines import Machine
from plumbline.studies.cost import parameter_count
from plumbline.studies.sheet import Run, Study
from plumbline.studies.workflow import Plan

#: Stated until a run is measured: seconds of a training job outside its steps, and of one evaluation.
STATED_OVERHEAD = 60.0
STATED_EVALUATE = 1800.0
#: Seconds allowed for documents, tokenizer, tokens and packs on the longest path, for each GB of tokens (2 bytes each).
STATED_DATA_SECONDS_PER_GB = 300.0
#: Checkpoints kept in a state directory, and bytes a parameter in one (weights, two moments) and in the outputs.
KEPT, STATE_BYTES, WEIGHT_BYTES = 3, 12, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimator:
    """Prices runs of one configuration on one machine."""

    plan: Plan
    machine: Machine
    calibration: Calibration

    def speed(self) -> float:
        """Operations a second on one device: measured where there is a run, else peak times the stated MFU."""
        return self.calibration.flops_per_second or self.machine.flops_per_second

    def devices(self, run: Run) -> int:
        """Devices that work on a run."""
        return self.machine.devices[run.spec.scale]

    def pretrain_seconds(self, run: Run) -> float:
        """Wall seconds of a run's training job."""
        overhead = self.calibration.pretrain_overhead
        steps = training_flops(run) / (self.speed() * self.devices(run))
        return steps + (STATED_OVERHEAD if overhead is None else overhead)

    def evaluate_seconds(self) -> float:
        """Wall seconds of a run's evaluation job."""
        measured = self.calibration.evaluate
        return STATED_EVALUATE if measured is None else measured

    def row(self, name: str, study: Study, runs: list[Run], scored: bool) -> dict[str, object]:
        """The price of a set of runs."""
        work = Path(self.plan.work)
        to_do = [run for run in runs if finished(run, work) is None]
        evaluations = [run for run in runs if not (work / "scores" / run.key / "scores.parquet").exists()]
        evaluations = evaluations if scored else []
        device_seconds = sum(self.pretrain_seconds(run) * self.devices(run) for run in to_do)
        evaluation_seconds = len(evaluations) * self.evaluate_seconds()
        longest = max((self.pretrain_seconds(run) for run in to_do), default=0.0)
        path = longest + (self.evaluate_seconds() if evaluations else 0.0)
        parameters = sum(parameter_count(run.spec.model) for run in runs)
        device_hours = (device_seconds + evaluation_seconds) / 3600
        return {
            "study": study.name,
            "target": name,
            "preset": self.plan.config["preset"],
            "machine": self.machine.label,
            "speed": self._speed_in_words(),
            "runs": len(runs),
            "runs_done": len(runs) - len(to_do),
            "runs_to_do": len(to_do),
            "tokens": sum(run.spec.train.steps * run.spec.train.batch_tokens for run in to_do),
            "training_flops": sum(training_flops(run) for run in to_do),
            "device_hours": device_hours,
            "longest_run_hours": longest / 3600,
            "longest_path_hours": path / 3600,
            "disk_gb": parameters * (KEPT * STATE_BYTES + WEIGHT_BYTES) / 1e9,
            "price": device_hours * self.machine.price if self.machine.price else None,
        }

    def _speed_in_words(self) -> str:
        if self.calibration.flops_per_second is None:
            return f"stated: MFU {self.machine.mfu:.2f} of {self.machine.peak_tflops:g} TFLOP/s"
        share = self.calibration.flops_per_second / (self.machine.peak_tflops * 1e12)
        return f"measured on {self.calibration.runs} runs: MFU {share:.3f} of {self.machine.peak_tflops:g} TFLOP/s"


def estimate(plan: Plan, machine: Machine) -> pd.DataFrame:
    """One row for each target of each study, and one for the whole study."""
    estimator = Estimator(plan=plan, machine=machine, calibration=measure(list(plan.runs.values()), Path(plan.work)))
    rows = []
    for study in plan.studies.values():
        for name, entry in study.sheet["targets"].items():
            rows.append(estimator.row(name, study, study.group(*entry["runs"]), "scores" in entry["reads"]))
        rows.append(estimator.row("(whole study)", study, list(study.runs.values()), True))
    return pd.DataFrame(rows)
