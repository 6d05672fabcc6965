"""Adds up what a plan costs, from the estimates of its runs: one row a target, and trainings by their size class."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pandas as pd

from plumbline.core.formats import format_count
from plumbline.plan import data_stage
from plumbline.plan.data_stage import DataJobCost, DataRule
from plumbline.plan.model_counts import PAIRS, probe_points
from plumbline.plan.run_estimate import KEPT, STATE_BYTES, WEIGHT_BYTES, JobRequests, RunEstimator
from plumbline.specs.measurement import Measurement
from plumbline.specs.study_config import Run, Study

WHOLE = "(whole study)"
#: Devices of a node in papers that give nodes.
NODE = 8

#: Seconds before the end of a slice at which SLURM sends TERM (profiles/slurm), from which on a training saves.
STOP_SECONDS = 300
#: Seconds that torchrun gives its ranks to save (profiles/slurm and profiles/gpus).
SAVE_SECONDS = 280
#: Size classes, the smallest first.
CLASSES = ("one_gpu", "node", "two_nodes")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunClass:
    """The trainings of one scale of a study, all of one size class.

    Attributes:
        runs: how many are to do.
        devices: that each takes.
        device_hours: of all.
        longest: seconds of the longest.
        limit: minutes that one of its jobs asks for at most.
        jobs: over how many that one is chained; `jobs_slower`: if it takes half as long again.
        node_mb: memory that a job asks for on each node, at most.
        checkpoint: bytes of its largest.
        state, weights: bytes of a run's checkpoints and of its weights, those for probes among them, of all.
    """

    study: str
    scale: str
    size: str
    runs: int
    devices: int
    device_hours: float
    longest: float
    limit: int
    jobs: int
    jobs_slower: int
    node_mb: int
    checkpoint: float
    state: float
    weights: float


def make_table(estimator: RunEstimator) -> pd.DataFrame:
    """Make the plan's table: a row for each target of each study, each whole study, and all studies where there are
    several.

    Targets share runs, so that their rows do not add up; a whole study's row counts each run once.
    """
    rows: list[dict[str, object]] = []
    runs_by_kind: dict[str, dict[str, Run]] = {"scores": {}, "probes": {}}
    plan, studies = estimator.project, estimator.project.planned_studies
    for study in studies:
        study_runs: dict[str, dict[str, Run]] = {"scores": {}, "probes": {}}
        for name, entry in study.definition["targets"].items():
            runs = study.group(*entry["runs"])
            target_runs = {
                kind: {_choose_key(kind, run): run for run in study.list_read_runs(name, kind)} for kind in study_runs
            }
            rows.append(
                make_row(estimator, study.name, name, runs, target_runs, plan.measurements.of_target(study.name, name))
            )
            if name in study.usual_targets:
                study_runs = {kind: study_runs[kind] | target_runs[kind] for kind in study_runs}
        if not study.definition["targets"]:  # a file of the user's own: its page reads the scores of all runs
            study_runs["scores"] = {run.scores_key: run for run in study.runs.values()}
        measurements = plan.measurements.of_target(study.name)
        rows.append(make_row(estimator, study.name, WHOLE, list(study.runs.values()), study_runs, measurements))
        runs_by_kind = {kind: runs_by_kind[kind] | study_runs[kind] for kind in study_runs}
    if len(studies) > 1:
        all_measurements = {
            item.key: item for study in studies for item in plan.measurements.of_target(study.name).values()
        }
        all_runs = {key: run for study in studies for key, run in study.runs.items()}
        rows.append(
            make_row(estimator, "(all)", "(all studies)", list(all_runs.values()), runs_by_kind, all_measurements)
        )
    return pd.DataFrame(rows)


def _choose_key(kind: str, run: Run) -> str:
    """The key of a run's scores; probes have the run's own key, whichever study reads them."""
    return run.scores_key if kind == "scores" else run.key


def make_row(
    estimator: RunEstimator,
    study: str,
    name: str,
    runs: list[Run],
    runs_by_kind: dict[str, dict[str, Run]],
    measured: Mapping[str, Measurement] | None = None,
) -> dict[str, object]:
    """Price a set of runs, the scores and probes that are read of them, and measurements, as a row of the plan's
    table.

    What cannot be estimated is named in `not_counted` and in no sum; `runs_estimated` counts for how many runs the
    operations are estimated rather than counted.

    Args:
        runs: the runs that have to be trained.
        runs_by_kind: ``scores`` and ``probes`` -> the runs, by key, of which those are read.
        measured: the measurements that are needed, by name.
    """
    machine, plan = estimator.machine, estimator.project
    to_do = [run for run in runs if not estimator.is_trained(run)]
    evaluations = [run for run in runs_by_kind["scores"].values() if run.suite and not estimator.is_scored(run)]
    probings = [run for run in runs_by_kind["probes"].values() if run.spec.probes and not estimator.is_probed(run)]
    pretrain = {run.key: estimator.pretrain_seconds(run) for run in to_do}
    evaluate = {
        run.scores_key: seconds for run in evaluations if (seconds := estimator.evaluate_seconds(run)) is not None
    }
    probe = {run.key: estimator.probe_seconds(run) for run in probings}
    missing = [f"evaluation of {run.scores_key}" for run in evaluations if run.scores_key not in evaluate]
    stage = data_stage.seconds(plan, to_do)
    if stage is None:
        missing.append("data")
    data_jobs = [job for name in data_stage.to_make(plan, to_do) for job in data_stage.jobs(plan, name)]
    training = sum(pretrain[run.key] * machine.devices_of(run) for run in to_do) / 3600
    evaluation, probing = sum(evaluate.values()) / 3600, sum(probe.values()) / 3600
    # A run's evaluation and its probes stand side by side.
    after = {**dict.fromkeys(pretrain, 0.0), **probe}
    for run in evaluations:
        after[run.key] = max(after.get(run.key, 0.0), evaluate.get(run.scores_key, 0.0))
    after_data = max((pretrain.get(key, 0.0) + seconds for key, seconds in after.items()), default=0.0)
    measurements = [entry for entry in (measured or {}).values() if not estimator.is_measured(entry)]
    hours = {entry.key: entry.seconds / 3600 for entry in measurements}
    measuring = sum(hours[entry.key] for entry in measurements if estimator.on_device(entry))
    longest = max([((stage or 0.0) + after_data) / 3600, *hours.values()])
    jobs = [(pretrain[run.key], machine.devices_of(run)) for run in to_do]
    jobs += [(seconds, 1) for seconds in (*evaluate.values(), *probe.values())]
    jobs += [(3600 * hours[entry.key], 1) for entry in measurements if estimator.on_device(entry)]
    device_hours = training + evaluation + probing + measuring
    return {
        "study": study,
        "target": name,
        "preset": plan.name,
        "machine": machine.label,
        "speed": describe_speed(estimator),
        "runs": len(runs),
        "runs_done": len(runs) - len(to_do),
        "runs_to_do": len(to_do),
        "runs_estimated": sum(not estimator.size(run).exact for run in runs),
        "evaluations_to_do": len(evaluations),
        "probes_to_do": len(probings),
        "measurements_to_do": len(measurements),
        "tokens": sum(run.spec.train.steps * run.spec.train.batch_tokens for run in to_do),
        "training_flops": sum(estimator.training_flops(run) for run in to_do),
        "training_device_hours": training,
        "evaluation_device_hours": evaluation,
        "probe_device_hours": probing,
        "measurement_device_hours": measuring,
        "device_hours": device_hours,
        "longest_run_hours": max(pretrain.values(), default=0.0) / 3600,
        "data_hours": None if stage is None else stage / 3600,
        "data_cpu_hours": sum(job.cpu_seconds for job in data_jobs) / 3600,
        "data_disk_gb": sum(data_stage.corpus_bytes(plan, name) for name in data_stage.to_make(plan, to_do)) / 1e9,
        "data_memory_gb": max((job.megabytes for job in data_jobs), default=0.0) / 1e3,
        "data_extrapolated": sum(job.extrapolated for job in data_jobs),
        "longest_path_hours": longest,
        "wall_hours": max(longest, ((stage or 0.0) + makespan(jobs, machine.devices_at_once)) / 3600),
        "disk_gb": (sum(map(estimator.disk_bytes, runs)) + data_stage.disk_bytes(plan, runs)) / 1e9,
        "price": device_hours * machine.price if machine.price else None,
        "not_counted": ", ".join(missing),
    }


def makespan(jobs: Sequence[tuple[float, int]], devices: int) -> float:
    """Compute the seconds that jobs of (seconds, devices) take on so many devices, the longest first, each as soon as
    it can.

    The last round may leave devices idle.
    """
    end_times = [0.0] * min(devices, 1 + sum(job_devices for _, job_devices in jobs))
    for seconds, job_devices in sorted(jobs, reverse=True):
        free_times = [heapq.heappop(end_times) for _ in range(min(job_devices, devices))]
        for _ in free_times:
            heapq.heappush(end_times, free_times[-1] + seconds)
    return max(end_times)


def describe_speed(estimator: RunEstimator) -> str:
    """Describe where the plan's speed comes from: measured or stated, as a share of the machine's peak (MFU)."""
    machine, calibration = estimator.machine, estimator.calibration
    peak = f"{machine.peak_tflops:g} TFLOP/s"
    if not calibration.speed:
        return f"stated, MFU {machine.mfu:.2f} ({PAIRS}) of {peak}"
    mfu = _join_scales({key: f"{speed / (machine.peak_tflops * 1e12):.3f}" for key, speed in calibration.speed.items()})
    return f"measured on {format_count(calibration.runs, 'run')}, MFU {mfu} ({PAIRS}) of {peak}"


def describe_memory(estimator: RunEstimator) -> str:
    """Describe how much of a device's memory finished runs took at most.

    Empty if none recorded it, since nothing is guessed.
    """
    memory = estimator.calibration.memory
    return _join_scales({key: f"{most / 1e9:.2f} GB" for key, most in memory.items()})


def _join_scales(texts: Mapping[tuple[str, str], str]) -> str:
    several = len({study for study, _ in texts}) > 1
    return ", ".join(
        f"{text} ({study}/{scale})" if several else f"{text} ({scale})" for (study, scale), text in texts.items()
    )


def compare_published(estimator: RunEstimator, root: Path) -> pd.DataFrame:
    """Set the hours of a run that a study's paper prints next to the estimate for this machine, a row a scale.

    Read from the paper's running text, where it has `nodes_<scale>` and `hours_<scale>` or `days_<scale>`; they are
    taken to be of the reference, or of the first method. Empty unless the preset is `paper`. The paper's accelerators
    are anonymous: `implied_mfu` is the share of this machine's peak that its hours would need.
    """
    paper = estimator.project.name == "paper"
    studies = estimator.project.studies.values() if paper else []
    return pd.DataFrame([entry for study in studies for entry in _read_published(estimator, study, root)])


def _read_published(estimator: RunEstimator, study: Study, root: Path) -> list[dict[str, object]]:
    from plumbline.published.printed_numbers import PrintedNumbers

    printed = PrintedNumbers.of(study.name, root)
    if not (printed.directory / "prose.csv").exists():
        return []
    prose, rows = printed.prose(), []
    for scale in study.definition["scales"]:
        durations = [(name, hours) for name, hours in ((f"hours_{scale}", 1), (f"days_{scale}", 24)) if name in prose]
        reference = f"{study.name}/{scale}/{study.reference or next(iter(study.methods))}/"
        run = next((run for key, run in study.runs.items() if key.startswith(reference)), None)
        if not durations or f"nodes_{scale}" not in prose or run is None:
            continue
        name, unit = durations[0]
        hours, devices = float(prose[name].text) * unit, NODE * int(prose[f"nodes_{scale}"].text)
        seconds, estimated_devices = estimator.pretrain_seconds(run), estimator.machine.devices_of(run)
        peak = estimator.machine.peak_tflops * 1e12
        rows.append(
            {
                "run": f"{study.scale_label(scale)} {study.label(run.spec.method)}",
                "published_hours": hours,
                "published_devices": devices,
                "where": prose[name].source,
                "estimated_hours": seconds / 3600,
                "estimated_devices": estimated_devices,
                "ratio": seconds * estimated_devices / (hours * 3600 * devices),
                "implied_mfu": estimator.training_flops(run) / (hours * 3600 * devices * peak),
            }
        )
    return rows


def price_items(prices: RunEstimator) -> DataRule | None:
    """Price the jobs that make evaluation items, one for each suite and corpus; None if nothing is evaluated."""
    suites = {(run.spec.data.corpus, run.suite) for run in prices.project.scored_runs.values() if run.suite}
    if not suites:
        return None
    need = JobRequests(prices).product("items")
    cost = DataJobCost(
        seconds=need.seconds,
        verifying=0.0,
        reading_writing=0.0,
        network=need.waits,
        cpu_seconds=need.cpu_seconds,
        megabytes=need.megabytes,
        disk=0.0,
        extrapolated=need.extrapolated,
    )
    return DataRule("items", len(suites), 1, cost)


def run_classes(prices: RunEstimator) -> list[RunClass]:
    """Group the trainings that are to do by study, scale and size class."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in prices.project.runs.values():
        if not prices.is_trained(run):
            groups.setdefault((run.spec.study, run.spec.scale, run.size), []).append(run)
    order = sorted(groups, key=lambda key: (key[0], CLASSES.index(key[2]) if key[2] in CLASSES else 0))
    return [_make_class(prices, *key, groups[key]) for key in order]


def training_jobs(prices: RunEstimator, run: Run, slower: float = 1.0) -> int:
    """Estimate over how many jobs a training is chained: each starts anew, and stops before the end of its slice.

    Args:
        slower: how many times the estimate it takes.
    """
    seconds = slower * prices.pretrain_seconds(run)
    start = prices.machine.start_seconds.pretrain
    if seconds <= 60 * prices.pretrain_minutes(run) - STOP_SECONDS:
        return 1
    useful = 60 * prices.pretrain_minutes(run) - STOP_SECONDS - start
    return max(1, ceil((seconds - start) / useful)) if useful > 0 else 1


def _make_class(prices: RunEstimator, study: str, scale: str, size: str, runs: list[Run]) -> RunClass:
    longest = max(runs, key=prices.pretrain_seconds)
    requests = JobRequests(prices)
    devices = prices.machine.devices_of(longest)
    parameters = [prices.size(run).parameters for run in runs]
    weights = [number * WEIGHT_BYTES * (1 + probe_points(run)) for number, run in zip(parameters, runs)]
    return RunClass(
        study=study,
        scale=scale,
        size=size,
        runs=len(runs),
        devices=devices,
        device_hours=sum(prices.pretrain_seconds(run) for run in runs) * devices / 3600,
        longest=prices.pretrain_seconds(longest),
        limit=prices.pretrain_minutes(longest),
        jobs=training_jobs(prices, longest),
        jobs_slower=training_jobs(prices, longest, 1.5),
        node_mb=max(requests.run_mb("pretrain", run, 1) for run in runs),
        checkpoint=float(max(parameters) * STATE_BYTES),
        state=float(sum(parameters) * KEPT * STATE_BYTES),
        weights=float(sum(weights)),
    )
