"""Adds up a plan by stage: the rules of the data stage, and runs by the size class that says how many machines work on
each.

`plumbline.plan.stage_page` shows it. Everything rests on the estimates that the plan's table of targets rests on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from msgspec import structs

from plumbline.plan import data_stage
from plumbline.plan.job_requests import JobRequests
from plumbline.plan.model_cost import probe_points
from plumbline.plan.run_estimate import KEPT, STATE_BYTES, WEIGHT_BYTES, RunEstimator
from plumbline.project import Project
from plumbline.specs.study_config import Run

#: Seconds before the end of a slice at which SLURM sends TERM (profiles/slurm), from which on a training saves.
STOP_SECONDS = 300
#: Seconds that torchrun gives its ranks to save (profiles/slurm and profiles/gpus).
SAVE_SECONDS = 280
#: Size classes, the smallest first.
CLASSES = ("one_gpu", "node", "two_nodes")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataRule:
    """What one rule of the data stage takes for a corpus.

    Attributes:
        jobs: how many there are of the training side.
        cpu_seconds: of all jobs.
        wall: seconds on the path to the packs; None where the corpus's size is not known.
        network, disk_seconds: of these at most, those that a network and a disk take, verifying what is read included.
        megabytes: of memory of one job, at its peak.
        disk: bytes that all jobs write.
        extrapolated: whether the law is used beyond the sizes at which it was measured.
        aside: whether no training waits for it.
    """

    rule: str
    jobs: int
    cpu_seconds: float
    wall: float | None
    network: float
    disk_seconds: float
    megabytes: float
    disk: float
    extrapolated: bool
    aside: bool = False


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
        state, kept: bytes of a run's checkpoints and of its weights, those for probes among them, of all.
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
    kept: float


def data_rules(project: Project, name: str) -> list[DataRule]:
    """Price the rules that make a corpus's packs, in their order."""
    return [
        DataRule(
            rule=one.rule,
            jobs=one.jobs,
            cpu_seconds=one.jobs * one.cost.cpu_seconds,
            wall=one.seconds,
            network=one.chained * one.cost.network,
            disk_seconds=one.cost.verifying + one.chained * one.cost.reading_writing,
            megabytes=one.cost.megabytes,
            disk=one.jobs * one.cost.disk,
            extrapolated=one.cost.extrapolated,
        )
        for one in data_stage.path(project, name)
    ]


def items(priced: RunEstimator) -> DataRule | None:
    """Price the jobs that make evaluation items, one for each suite and corpus; None where nothing is evaluated."""
    suites = {(run.spec.data.corpus, run.suite) for run in priced.project.scored_runs.values() if run.suite}
    if not suites:
        return None
    found = JobRequests(priced).product("items")
    return DataRule(
        rule="items",
        jobs=len(suites),
        cpu_seconds=len(suites) * found.cpu_seconds,
        wall=found.seconds,
        network=found.waits,
        disk_seconds=0.0,
        megabytes=found.megabytes,
        disk=0.0,
        extrapolated=found.extrapolated,
        aside=True,
    )


def packs(project: Project, name: str) -> dict[str, int | None]:
    """List a corpus's packs by their sequences, the smallest first; packs of equal size count once."""
    sizes: dict[int | None, str] = {}
    for pack, sequences in project.corpora[name].packs.items():
        sizes.setdefault(sequences, pack)
    return {sizes[size]: size for size in sorted(sizes, key=lambda size: (size is None, size or 0))}


def up_to_pack(project: Project, name: str, pack: str) -> Project:
    """Copy a project as if the corpus had this pack and no larger one."""
    corpus = project.corpora[name]
    alone = structs.replace(corpus, packs={pack: corpus.packs[pack]})
    return dataclasses.replace(project, corpora=project.corpora | {name: alone})


def bottleneck(rules: Iterable[DataRule]) -> DataRule | None:
    """Name the rule with most time on the path; None where a time is not known."""
    known = [one for one in rules if not one.aside]
    if not known or any(one.wall is None for one in known):
        return None
    return max(known, key=lambda one: one.wall or 0.0)


def run_classes(priced: RunEstimator) -> list[RunClass]:
    """Group the trainings that are to do by study, scale and size class."""
    found: dict[tuple[str, str, str], list[Run]] = {}
    for run in priced.project.runs.values():
        if not priced.trained(run):
            found.setdefault((run.spec.study, run.spec.scale, run.size), []).append(run)
    order = sorted(found, key=lambda key: (key[0], CLASSES.index(key[2]) if key[2] in CLASSES else 0))
    return [_class(priced, *key, found[key]) for key in order]


def training_jobs(priced: RunEstimator, run: Run, slower: float = 1.0) -> int:
    """Estimate over how many jobs a training is chained: each starts anew, and stops before the end of its slice.

    Args:
        slower: how many times the estimate it takes.
    """
    seconds = slower * priced.pretrain_seconds(run)
    start = priced.machine.start_seconds.pretrain
    if seconds <= 60 * priced.pretrain_minutes(run) - STOP_SECONDS:
        return 1
    useful = 60 * priced.pretrain_minutes(run) - STOP_SECONDS - start
    return max(1, ceil((seconds - start) / useful)) if useful > 0 else 1


def _class(priced: RunEstimator, study: str, scale: str, size: str, runs: list[Run]) -> RunClass:
    longest = max(runs, key=priced.pretrain_seconds)
    requests = JobRequests(priced)
    devices = priced.machine.devices_of(longest)
    parameters = [priced.size(run).parameters for run in runs]
    weights = [number * WEIGHT_BYTES * (1 + probe_points(run)) for number, run in zip(parameters, runs)]
    return RunClass(
        study=study,
        scale=scale,
        size=size,
        runs=len(runs),
        devices=devices,
        device_hours=sum(priced.pretrain_seconds(run) for run in runs) * devices / 3600,
        longest=priced.pretrain_seconds(longest),
        limit=priced.pretrain_minutes(longest),
        jobs=training_jobs(priced, longest),
        jobs_slower=training_jobs(priced, longest, 1.5),
        node_mb=max(requests.run_mb("pretrain", run, 1) for run in runs),
        checkpoint=float(max(parameters) * STATE_BYTES),
        state=float(sum(parameters) * KEPT * STATE_BYTES),
        kept=float(sum(weights)),
    )
