"""Estimates what a run costs on a machine, and chooses the time limits and the memory that jobs outside the data stage
ask for. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from plumbline.core.errors import PlumblineError, warn_once
from plumbline.core.files import canonical_json, sha256_text
from plumbline.plan import data_stage, machines, model_counts
from plumbline.plan.job_needs import LEAST_MB, Need, amount, inside_evaluation, need
from plumbline.plan.machines import Calibration, Machine, calibrate, group, read_finished
from plumbline.plan.model_counts import ModelCost, Sizes, probe_points, training_operations
from plumbline.project import Project
from plumbline.results.measurements import measurement_file
from plumbline.specs.measurement import Measurement
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import ROOT

#: A time limit is so many times the estimate, and so many minutes more. A training that reaches its limit goes on in
#: another job, an evaluation or a probe begins anew, so that it gets more.
PRETRAIN_MARGIN, EVALUATE_MARGIN, SPARE_MINUTES = 1.5, 3.0, 15
#: Checkpoints kept in a state directory, and bytes a parameter in one (weights, two moments).
KEPT, STATE_BYTES = 3, 12
#: Bytes of a weight.
WEIGHT_BYTES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEstimator:
    """Prices the runs of one configuration on one machine."""

    project: Project
    machine: Machine
    calibration: Calibration
    sizes: Sizes

    @property
    def work(self) -> Path:
        """The preset's folder of runs and scores (below work/)."""
        return Path(self.project.paths.work)

    def speed(self, run: Run) -> float:
        """Look up the operations a second of a run's training on one device.

        Measured at the run's scale, else at others (of its study, if there are any), else as config/machines.yaml
        states it.
        """
        measured, key = self.calibration.speed, group(run)
        if key in measured:
            return measured[key]
        speeds = [speed for (study, _), speed in measured.items() if study == run.spec.study] or list(measured.values())
        return sum(speeds) / len(speeds) if speeds else self.machine.flops_per_second

    def size(self, run: Run) -> ModelCost:
        """Look up the operations a token and the parameters of the run's model."""
        return self.sizes(run.spec.model)

    def is_exact(self, runs: Iterable[Run]) -> bool:
        """Whether the operations of all these runs are counted; if one is estimated, a page prints *about*."""
        return all(self.size(run).exact for run in runs)

    def training_flops(self, run: Run) -> float:
        """Estimate the floating-point operations of a run's training, its validations and updates included."""
        return training_operations(
            run, self.size(run), self.machine.count_updating_devices(self.machine.devices_of(run))
        )

    def pretrain_seconds(self, run: Run) -> float:
        """Estimate the wall seconds of a run's training, as if it were one job."""
        start = self.calibration.pretrain_start
        start = self.machine.start_seconds.pretrain if start is None else start
        effort = self.training_flops(run) * self.machine.compute_relative_time(run)
        return start + effort / (self.speed(run) * self.machine.devices_of(run))

    def evaluate_seconds(self, run: Run) -> float | None:
        """Estimate the wall seconds of a run's evaluation job on one device.

        0 where its study has no suite, None if the size of a task is not known.
        """
        if not run.suite:
            return 0.0
        workload = amount(self.project, run)
        if workload is None:
            return None
        return self._evaluate_start + inside_evaluation(
            workload, self.size(run).forward, self.speed(run) * self.machine.evaluation_speed
        )

    def probe_seconds(self, run: Run) -> float:
        """Estimate the wall seconds of a run's probe job on one device: loading each checkpoint, and its forward
        passes.
        """
        size, context = self.size(run), run.spec.model.context
        tokens = sum(len(probe.at) * probe.sequences * context for probe in run.spec.probes)
        reading = probe_points(run) * size.parameters * WEIGHT_BYTES / (1e6 * self.machine.disk_mb_per_second)
        forward = tokens * size.forward / (self.speed(run) * self.machine.evaluation_speed)
        return self._evaluate_start + reading + forward

    def disk_bytes(self, run: Run) -> float:
        """Estimate the bytes on disk of a run and its probe checkpoints."""
        return self.size(run).parameters * (KEPT * STATE_BYTES + (1 + probe_points(run)) * WEIGHT_BYTES)

    @property
    def _evaluate_start(self) -> float:
        measured = self.calibration.evaluate_start
        return self.machine.start_seconds.evaluate if measured is None else measured

    def pretrain_minutes(self, run: Run) -> int:
        """Choose the time limit (minutes) of one training job: at most a slice, into which a longer run is cut."""
        return self._limit(self.pretrain_seconds(run), PRETRAIN_MARGIN)

    def evaluate_minutes(self, run: Run) -> int:
        """Choose the time limit (minutes) of a run's evaluation job."""
        return self._limit(self.evaluate_seconds(run), EVALUATE_MARGIN)

    def probe_minutes(self, run: Run) -> int:
        """Choose the time limit (minutes) of a run's probe job."""
        return self._limit(self.probe_seconds(run), EVALUATE_MARGIN)

    def measure_minutes(self, measurement: Measurement) -> int:
        """Choose the time limit (minutes) of a measurement's job."""
        return self._limit(measurement.seconds, EVALUATE_MARGIN)

    def data_minutes(self, cost: data_stage.DataJobCost, rule: str) -> int:
        """Choose the time limit (minutes) of a job of the data stage; a whole slice where its size is not known."""
        shards = data_stage.TOGETHER if rule == "tokenize" else 1
        return self._limit(cost.chain_seconds(shards), EVALUATE_MARGIN)

    def on_device(self, measurement: Measurement) -> bool:
        """Whether a measurement takes one of the machine's devices: always where they are processors, else if it asks
        for a GPU.
        """
        return self.machine.device == "cpu" or measurement.device == "gpu"

    def _limit(self, seconds: float | None, margin: float) -> int:
        slice_minutes = max(1, int(self.machine.slice_hours * 60))
        return slice_minutes if seconds is None else min(slice_minutes, ceil(margin * seconds / 60) + SPARE_MINUTES)

    def is_trained(self, run: Run) -> bool:
        """Whether a run has been trained to its end under its present spec."""
        return read_finished(run, self.work) is not None

    def is_scored(self, run: Run) -> bool:
        """Whether a run has been trained and evaluated."""
        return self.is_trained(run) and Path(self.project.paths.scores(run)).exists()

    def is_probed(self, run: Run) -> bool:
        """Whether a run has been trained and its probes were read."""
        return self.is_trained(run) and Path(self.project.paths.probes(run)).exists()

    def is_measured(self, measurement: Measurement) -> bool:
        """Whether a measurement was made with its present code and options."""
        path = Path(self.project.paths.measurement(measurement))
        if not path.exists():
            return False
        try:
            fingerprint = self.project.fingerprints.measurement(measurement)
            return measurement_file.read_facts(path)["fingerprint"] == fingerprint
        except PlumblineError as problem:
            warn_once(f"{problem}; it counts as not done")
            return False

    def digest(self) -> str:
        """Changes when a plan's content may have changed: configuration, machine, measurements, what is done and what
        there is to evaluate."""
        runs = [
            [key, run.spec.run_id, run.size, self.is_trained(run), self.is_probed(run)]
            for key, run in self.project.every_run.items()
        ]
        scores = [
            [key, run.suite, amount(self.project, run) if run.suite else None, self.is_scored(run)]
            for key, run in self.project.scored_runs.items()
        ]
        measurements = [
            [key, entry.seconds, self.is_measured(entry)] for key, entry in self.project.measurements.all.items()
        ]
        # Seconds as they were read, not the speeds made of them, which a plan's own counts would change.
        content = [self.project.config, self.machine.name, runs, scores, measurements, self.calibration.seconds]
        return sha256_text(canonical_json(content))[:16]


def estimator(
    project: Project,
    machine: Machine | None = None,
    *,
    sizes: Sizes | None = None,
    calibrate_on: Iterable[Run] | None = None,
    root: Path = ROOT,
) -> RunEstimator:
    """Make an estimator for a configuration.

    Args:
        machine: the default is the configuration's.
        sizes: by default counted where `counts.update` has been here, else estimated; neither imports torch.
        calibrate_on: the runs whose measurements count; by default all that are finished, on request or not.

    Raises:
        PlumblineError: the configuration names a machine that is not in config/machines.yaml.
    """
    machine = machine or machines.load(project.config["machine"], root)
    sizes = sizes or model_counts.ModelCostLookup(model_counts.read(Path(project.paths.counts)))
    runs = project.every_run.values() if calibrate_on is None else calibrate_on
    return RunEstimator(
        project=project, machine=machine, calibration=calibrate(project, machine, sizes, runs), sizes=sizes
    )


#: Ranks that a node of several devices has.
NODE = 8
#: What a verdict holds of a model that it examines: at most so many tokens' states of all layers, and no more numbers
#: than that (`plumbline.operate.preflight.method_checks`).
LOOKED_AT_TOKENS, LOOKED_AT_STATES = 8_192, 2**24
#: A training asks for so many times the memory that it needs, at every attempt: attempts are also its slices.
PRETRAIN_MEMORY_MARGIN = 2.0


def _count_states(run: Run) -> int:
    """Numbers of a token's states in all layers."""
    return run.spec.model.width * run.spec.model.layers


@dataclass(frozen=True)
class JobRequests:
    """What the jobs of one configuration ask for."""

    priced: RunEstimator
    _suites: dict[str, float] = field(default_factory=dict)

    def run_mb(self, rule: str, run: Run, attempt: int) -> int:
        """Choose the memory of a training, an evaluation or a probe job; on a cluster it is that of each node."""
        needs = need(rule, self.units(run))
        if rule == "pretrain":
            return max(LEAST_MB, ceil(PRETRAIN_MEMORY_MARGIN * needs.megabytes))
        return needs.choose_mb(attempt, LEAST_MB)

    def product(self, rule: str) -> Need:
        """Estimate a job that makes items, or a product of all runs: by the largest suite that is requested."""
        return need(rule, {"items_k": self._count_items_k(), "answers_k": self._count_items_k()})

    def verdict(self, runs: list[Run]) -> Need:
        """Estimate a verdict on runs: one of each arm and scale is examined whole, and all are read again."""
        models = [(run.spec.scale, run.spec.method, self.priced.size(run).parameters / 1e6) for run in runs]
        arms = {(scale, method): millions for scale, method, millions in models}
        units = {
            "parameters_m": max((millions for *_, millions in models), default=0.0),
            "states_m": min(LOOKED_AT_STATES, LOOKED_AT_TOKENS * max(map(_count_states, runs), default=0)) / 1e6,
            "looked_at_m": sum(arms.values()),
            "all_runs_m": sum(millions for *_, millions in models),
        }
        return need("verdict", units)

    def measurement(self, on_gpu: bool) -> Need:
        """Estimate a measurement; its time is what its entry states."""
        return need("measure", {"devices": float(on_gpu)})

    def units(self, run: Run) -> dict[str, float]:
        """The size of a run as the table of needs names it: millions of parameters, processes of a node with a GPU
        each, and millions of parameters that these hold together.
        """
        millions = self.priced.size(run).parameters / 1e6
        gpu = self.priced.machine.device != "cpu"
        ranks = min(NODE, self.priced.machine.devices_of(run)) if gpu else 1
        return {
            "parameters_m": millions,
            "other_ranks": float(ranks - 1),
            "other_rank_parameters_m": (ranks - 1) * millions,
            "devices": float(gpu),
            "rank_devices": float(ranks if gpu else 0),
        }

    def _count_items_k(self) -> float:
        """Thousands of items of the largest suite; 50, more than any of the studies has, if none states it."""
        if not self._suites:
            runs_by_suite = {run.suite: run for run in self.priced.project.scored_runs.values() if run.suite}
            for suite, run in runs_by_suite.items():
                workload = amount(self.priced.project, run)
                self._suites[suite] = 50.0 if workload is None else workload[0] / 1000
            self._suites.setdefault("", 0.0)
        return max(self._suites.values())
