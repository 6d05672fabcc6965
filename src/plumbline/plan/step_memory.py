"""Estimates how much of a device's memory a training step takes, and what its ranks send one another.

A step of each kind was counted without a device (benchmarks/fake_device.jsonl): of one rank that holds the model whole,
with one micro-batch. What several ranks and micro-batches add is estimated here; none of it is measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

from plumbline.core import package_data
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.formats import format_bytes
from plumbline.plan import machines, model_counts
from plumbline.plan.machines import Machine
from plumbline.project import profiles
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run

#: Size classes whose runs profiles/slurm shards (`--strategy fsdp`); those of others are whole on every device.
SHARDED = ("two_nodes",)
#: Sharded or not -> what becomes of a run whose step does not fit.
REMEDIES = {
    False: "profiles/slurm gives it no --micro-batch, and its trainer takes the largest that fits",
    True: "lower micro_batch.{size} of {machine} in config/machines.yaml",
}
#: Bytes that are left free for libraries and fragments, as where a trainer tries what fits (not measured).
SPARE = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCount:
    """A step that was counted, of `sequences` at a time; the rest are bytes.

    Attributes:
        parameters: that the parameters take in float32.
        held_bytes: by parameters and the optimizer's state.
        passes: at the peak of forward and backward pass, with what is held and without earlier gradients.
        update: at the peak of all phases: passes, clipping and update, these with all gradients.
    """

    sequences: int
    parameters: int
    held_bytes: int
    passes: int
    update: int

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> StepCount:
        """Take what is needed of a row of the file."""
        return cls(
            sequences=row["sequences"],
            parameters=row["parameter_bytes"],
            held_bytes=row["held_bytes"],
            passes=row["passes_peak_bytes"],
            update=row["peak_bytes"],
        )

    def of_rank(self, ranks: int, *, sharded: bool) -> int:
        """Estimate the peak of one of `ranks` that train a run, over several micro-batches, or more than that.

        It is an upper bound: gradients are added to a pass whose peak may hold some already. The gradients of the
        micro-batches before are there in every pass but the first. DDP keeps a copy of them in its buckets. Shards are
        a part each of weights, gradients and moments; a whole model is gathered next to them, and gradients that were
        not exchanged yet are whole.
        """
        if sharded:
            shard_bytes = ceil((self.held_bytes + self.parameters) / ranks)
            return self.passes - self.held_bytes + shard_bytes + 2 * self.parameters
        return max(self.passes + self.parameters, self.update) + bucket_bytes(self.parameters, ranks)


def bucket_bytes(parameters: int, ranks: int) -> int:
    """Bytes of DDP's buckets: gradients once more, since parameters' gradients are not views of them.

    Args:
        parameters: bytes of the parameters; gradients are of their type.
    """
    return parameters if ranks > 1 else 0


def count_sent_bytes(parameters: int, ranks: int) -> int:
    """Bytes that a rank sends in a step, and receives as many, where ranks pass on parts in a ring.

    Whole models exchange gradients: parts of sums, then the sums. Sharded ones exchange parts of the gradients' sums,
    and gather what the first micro-batch reads, which stays until the last: as much.

    Args:
        parameters: bytes of the parameters.
    """
    return ceil(2 * parameters * (ranks - 1) / ranks)


def describe_sent(machine: Machine, runs: Iterable[tuple[Run, float]]) -> str:
    """Describe what a rank sends at most in a step, by size class; empty if no run has several GPUs.

    Args:
        runs: with the bytes of their parameters.
    """
    most: dict[str, int] = {}
    for run, parameters in runs:
        most[run.size] = max(most.get(run.size, 0), count_sent_bytes(ceil(parameters), machine.devices_of(run)))
    sizes = [f"{size} {format_bytes(most[size])}" for size in machine.devices if most.get(size)]
    return ", ".join(sizes) if machine.device == "cuda" else ""


def is_sharded(machine: Machine, run: Run) -> bool:
    """Whether a run's model is sharded there: by profiles/slurm, whose machines state the micro-batch that a trainer of
    shards does not find by trying.
    """
    return run.size in SHARDED and run.size in machine.micro_batch


def step_kind(spec: RunSpec) -> str:
    """Fingerprint what a step's kernels and memory depend on; not the numbers of optimizer and interventions."""
    hooks = [_select_settings(hook) for hook in spec.interventions]
    optimizer = [spec.optimizer.name, _select_settings(spec.optimizer.options)]
    return sha256_text(canonical_json([model_counts.key(spec.model), spec.train.precision, optimizer, hooks]))[:16]


def _select_settings(options: Mapping[str, Any]) -> dict[str, str | bool]:
    return {key: value for key, value in options.items() if isinstance(value, str | bool)}


@cache
def counts() -> dict[str, StepCount]:
    """Read what was counted, by kind; it travels with the package."""
    path = package_data.folder() / "benchmarks" / "fake_device.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["kind"]: StepCount.of_row(row) for row in rows}


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceMemory:
    """What a run's step takes of one device with the micro-batch that the machine states for its size.

    `bytes` is None if no such step was counted, or with another micro-batch.
    """

    micro_batch: int
    bytes: int | None
    room: float
    sharded: bool

    @property
    def fits(self) -> bool:
        """Whether it is no more than there is, or not known."""
        return self.bytes is None or self.bytes + SPARE <= self.room

    @property
    def asked(self) -> int | None:
        """The micro-batch to ask for; None lets the trainer try, which it does not do with shards."""
        return self.micro_batch if self.fits or self.sharded else None


def estimate_memory(machine: Machine, run: Run) -> DeviceMemory | None:
    """Estimate what a run's step takes of one of the machine's devices; None if it states no micro-batch."""
    micro_batch = machine.micro_batch.get(run.size)
    if micro_batch is None:
        return None
    sharded, count = is_sharded(machine, run), counts().get(step_kind(run.spec))
    peak = None
    if count is not None and count.sequences == micro_batch:
        peak = count.of_rank(machine.devices_of(run), sharded=sharded)
    return DeviceMemory(micro_batch=micro_batch, bytes=peak, room=machine.memory_gib * 2**30, sharded=sharded)


def describe(machine: Machine, runs: Iterable[Run]) -> list[str]:
    """Describe what steps take of the machine's devices, by size class, and name every run that is not given the stated
    micro-batch, or would not fit with it. Where the machine states none, describe what was counted.
    """
    runs = list(runs)
    memories = [(run, memory) for run in runs if (memory := estimate_memory(machine, run)) is not None]
    most: dict[str, int] = {}
    for run, memory in memories:
        if memory.bytes is not None and memory.fits:
            most[run.size] = max(most.get(run.size, 0), memory.bytes)
    peaks = [
        f"{size} {format_bytes(most[size])} ({stated})" for size, stated in machine.micro_batch.items() if size in most
    ]
    lines = []
    if peaks:
        lines.append(
            f"A step at most, counted without a device and not compiled (with --micro-batch): {', '.join(peaks)}."
        )
    for run, memory in memories:
        if not memory.fits and memory.bytes is not None:
            problem = f"{run.key}, {format_bytes(memory.bytes)} with {memory.micro_batch}, does not fit"
            lines.append(f"{problem}: {REMEDIES[memory.sharded].format(size=run.size, machine=machine.name)}.")
    unknown = sum(memory.bytes is None for _, memory in memories)
    if unknown:
        lines.append(f"Not counted: the steps of {unknown} runs, which get the micro-batch of their size all the same.")
    return lines + _describe_unstated(machine, runs)


def _describe_unstated(machine: Machine, runs: Iterable[Run]) -> list[str]:
    """Describe what steps take of the GPUs of a machine that states no micro-batch for them, as they were counted."""
    room, peaks = machine.memory_gib * 2**30 - SPARE, dict[tuple[str, int], list[int]]()
    for run in runs:
        count = counts().get(step_kind(run.spec))
        if machine.device == "cuda" and run.size not in machine.micro_batch and count is not None:
            rank_bytes = count.of_rank(machine.devices_of(run), sharded=False)
            peaks.setdefault((run.size, count.sequences), []).append(rank_bytes)
    lines = []
    for (size, sequences), bytes_ in sorted(peaks.items()):
        text = f"{size} {format_bytes(min(bytes_))} to {format_bytes(max(bytes_))} with {sequences} sequences"
        excess = sum(peak > room for peak in bytes_)
        lines.append(f"{text}, too much for {excess} of {len(bytes_)} runs" if excess else text)
    if not lines:
        return []
    intro = "Trainers take what fits. Counted without a device and not compiled, each with the whole model"
    where = " (docs/gpu-box.md says what fits)" if any("too much" in text for text in lines) else ""
    return [f"{intro}: {'; '.join(lines)}{where}."]


def micro_batch_flag(wildcards: Any) -> str:
    """Give the trainer's flag that sets the micro-batch of the run that a job's wildcards name (profiles/slurm).

    Nothing if its step would not fit the machine's memory: the trainer then takes the largest that does.
    """
    project = profiles.load_configuration()
    run = project.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed)
    memory = estimate_memory(machines.load(project.config["machine"], project.root), run)
    return "" if memory is None or memory.asked is None else f"--micro-batch {memory.asked}"
