"""Estimates how long a Snakemake that begins will take: seconds of each job by the plan's model, and of the whole.

The Snakefile calls `announce` when the jobs are known and none has begun. The forecast travels as a record of
Snakemake's own logger: the console (`plumbline.operate.console.job_display`) finds it there, every other reader a line
of text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import maxsize
from typing import Any

from plumbline.core.formats import format_count, format_rough_duration
from plumbline.operate.console.rule_names import HIDDEN, RUN_STAGES, stage
from plumbline.plan import data_stage
from plumbline.plan.run_estimate import RunEstimator
from plumbline.project import snakemake_internals, snakemake_messages
from plumbline.specs.study_config import Run

#: The record's attribute that holds the forecast.
ATTRIBUTE = "plumbline_forecast"
#: Seconds of a job that the plan does not price: an interpreter, its imports, and little work.
OTHER_SECONDS = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """Estimated seconds: of each job by Snakemake's id, and of the whole on the wall, None if something has no
    estimate. `load` is what else keeps the machine busy, in words, where it will take longer for that.
    """

    seconds: dict[int, float]
    wall: float | None
    load: str = ""


def announce(workflow: Any, estimator: RunEstimator) -> None:
    """Put the forecast of a Snakemake `workflow` into its log. One that fails is a warning, never the end of a run."""
    logger = snakemake_messages.logger()
    try:
        jobs, limits = snakemake_internals.list_numbered_jobs(workflow), snakemake_internals.resource_limits(workflow)
        cluster = not snakemake_internals.runs_jobs_here(workflow)
        if cluster:  # nothing here limits how much of it is used but the number of jobs
            limits = {"_nodes": limits["_nodes"]}
        forecast = foresee(jobs, limits, estimator, cluster=cluster, load="" if cluster else describe_load())
    except Exception as problem:
        logger.warning(f"how long this will take is not known: {type(problem).__name__}: {problem}")
        return
    time_text = "not known" if forecast.wall is None else f"about {format_rough_duration(forecast.wall)}"
    logger.info(
        " ".join([f"Time that this will take: {time_text}", forecast.load]).strip(), extra={ATTRIBUTE: forecast}
    )


def describe_load() -> str:
    """State that the machine is busy, where more processes of the last minute were ready to run than it has cores.

    Both numbers are the whole machine's, in a container too: what this process may use of it is another one.
    """
    load, cores = round(os.getloadavg()[0]), os.cpu_count() or 1
    return f"The machine is busy (load {load} on {format_count(cores, 'core')}): longer." if load > cores else ""


def foresee(
    jobs: Iterable[tuple[int, str, Any, Mapping[str, Any]]],
    limits: Mapping[str, Any],
    estimator: RunEstimator,
    *,
    cluster: bool = False,
    load: str = "",
) -> Forecast:
    """Estimate how long jobs take, each given as an id, a rule, its wildcards, and what it takes of limited
    resources.

    The whole is the data stage's time, and after it what the scarcest resource makes of the other jobs, or the longest
    chain of jobs of one run. On a `cluster` the machine's number of devices is one of the resources.
    """
    limits = {name: limit for name, limit in limits.items() if isinstance(limit, int) and 0 < limit < maxsize}
    seconds: dict[int, float] = {}
    loads, chains, devices = dict.fromkeys(limits, 0.0), {}, 0.0
    corpus: list[int] = []
    trained: list[Run] = []
    all_known = True
    for number, rule, wildcards, uses in jobs:
        if rule in HIDDEN:
            continue
        if stage(rule) == "corpus":
            corpus.append(number)
            continue
        cost: float | None = OTHER_SECONDS
        if stage(rule) in RUN_STAGES:
            run = estimator.project.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed)
            if rule == "pretrain":
                cost = estimator.pretrain_seconds(run)
                trained.append(run)
            elif rule == "evaluate":
                cost = estimator.evaluate_seconds(run)
            all_known = all_known and cost is not None
            chains[run.key] = chains.get(run.key, 0.0) + (cost or 0.0)
            devices += (cost or 0.0) * (estimator.machine.devices_of(run) if rule == "pretrain" else 1)
        elif rule == "measure":
            measurement = estimator.project.measurements.one(wildcards.study, wildcards.measurement)
            cost = chains[measurement.key] = measurement.seconds
            devices += cost if estimator.on_device(measurement) else 0.0
        seconds[number] = cost or OTHER_SECONDS
        for name in limits:
            loads[name] += seconds[number] * int(uses.get(name, 0))
    data_seconds = data_stage.seconds(estimator.project, trained) if corpus else 0.0
    seconds |= dict.fromkeys(corpus, (data_seconds or 0.0) / len(corpus) or OTHER_SECONDS) if corpus else {}
    slowest = [loads[name] / limit for name, limit in limits.items()]
    if cluster:
        slowest.append(devices / estimator.machine.devices_at_once)
    wall = (data_seconds or 0.0) + max([*slowest, *chains.values()], default=0.0)
    return Forecast(seconds=seconds, wall=wall if all_known and data_seconds is not None else None, load=load)
