"""What a Snakemake that begins will take: seconds of each of its jobs by the plan's model, and of the whole.

The Snakefile calls `announce` when the jobs are known and none has begun. The forecast travels as a record of
Snakemake's own logger: the console (`plumbline.operate.console`) finds it there, and every other reader a line of text.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import maxsize
from typing import Any

from plumbline.operate.progress import roughly
from plumbline.operate.stages import RUN_STAGES, stage
from plumbline.plan import data
from plumbline.plan.estimate import Estimator

#: The record's attribute that holds the forecast.
ATTRIBUTE = "plumbline_forecast"
#: Seconds of a job that the plan does not price: start of an interpreter, imports, little work.
OTHER_SECONDS = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """Seconds of each job by Snakemake's id; of the whole on the wall, None where a run's size is not known."""

    seconds: dict[int, float]
    wall: float | None


def announce(workflow: Any, estimator: Estimator) -> None:
    """Put the forecast of a Snakemake `workflow` into its log. A forecast that fails is a warning, never an end."""
    logger = logging.getLogger("snakemake.logging")
    try:
        dag = workflow.dag
        limits = {name: limit.value for name, limit in workflow.global_resources.items()}
        if not workflow.local_exec:
            limits = {"_nodes": limits.get("_nodes")}
        jobs = [(dag.jobid(job), job.rule.name, job.wildcards, job.scheduler_resources) for job in dag.needrun_jobs()]
        forecast = foresee(jobs, limits, estimator)
    except Exception as problem:
        logger.warning(f"how long it will take is not known: {type(problem).__name__}: {problem}")
        return
    told = "not known" if forecast.wall is None else f"about {roughly(forecast.wall)}"
    logger.info(f"Forecast: {told}", extra={ATTRIBUTE: forecast})


def foresee(
    jobs: Iterable[tuple[int, str, Any, Mapping[str, Any]]], limits: Mapping[str, Any], estimator: Estimator
) -> Forecast:
    """The forecast of jobs, each an id, a rule, its wildcards and what it takes of the limited resources.

    The wall time is the data stage's and after it what the scarcest resource makes of the rest, or the longest run.
    """
    seconds: dict[int, float] = {}
    loads = dict.fromkeys((name for name, limit in limits.items() if isinstance(limit, int) and limit < maxsize), 0.0)
    chains: dict[str, float] = {}
    devices, known, corpus = 0.0, True, []
    for number, rule, wildcards, uses in jobs:
        if stage(rule) == "corpus":
            corpus.append(number)
            continue
        cost: float | None = OTHER_SECONDS
        if stage(rule) in RUN_STAGES:
            run = estimator.plan.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed)
            if rule == "pretrain":
                cost = estimator.pretrain_seconds(run)
            elif rule == "evaluate":
                cost = estimator.evaluate_seconds(run)
            known = known and cost is not None
            cost = cost or OTHER_SECONDS
            chains[run.key] = chains.get(run.key, 0.0) + cost
            devices += cost * (estimator.machine.devices_of(run) if rule == "pretrain" else 1)
        seconds[number] = cost
        for name in loads:
            loads[name] += cost * uses.get(name, 0)
    stages = data.seconds(estimator.plan) if corpus else 0.0
    seconds |= dict.fromkeys(corpus, (stages or OTHER_SECONDS) / max(1, len(corpus)))
    slowest = [load / limits[name] for name, load in loads.items() if limits[name]]
    if "_nodes" in limits:
        slowest.append(devices / estimator.machine.devices_at_once)
    wall = (stages or 0.0) + max([*slowest, *chains.values(), 0.0])
    return Forecast(seconds=seconds, wall=wall if known and stages is not None else None)
