"""Reads the machines that a plan can be made for (config/machines.yaml), and measures their speed on finished runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError, nearest, warn_once, warn_unread
from plumbline.core.formats import parse_duration
from plumbline.core.permissions import explain_denial
from plumbline.core.structs import Absent, ClosedStruct, Fault, unknown_key
from plumbline.plan.job_needs import amount, inside_evaluation
from plumbline.plan.model_counts import Sizes, training_operations
from plumbline.project import Project
from plumbline.specs.components import SLOTS
from plumbline.specs.experiment_runs import own_scale
from plumbline.specs.field_types import Count, NotNegative, Positive, Size, Text
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import ROOT, read_struct

#: The machine that profiles/slurm plans for: the paper's sizes are for GPUs, and config/config.yaml names a processor.
PAPER_MACHINE = "h100"

#: Words by which a device's name is of another board than the same name without them, or of a part of one: `NVIDIA H100
#: PCIe`, `NVIDIA H100 80GB HBM3 MIG 1g.10gb`, `GRID A100-20C`.
_OTHER_BOARD = re.compile(r"pcie|nvl|mig|grid|\d+[abcq]|ti|super|laptop|max")

#: Slot (or `precision`) -> component -> time of a step relative to the baseline's.
Relative = dict[str, dict[str, Positive]]


def _require_slots(times: Relative, key: str) -> None:
    slots = (*SLOTS, "precision")
    if unknown := [name for name in times if name not in slots]:
        raise Fault(unknown_key(unknown[0], slots), key)


class MeasuredStepTime(ClosedStruct, frozen=True, kw_only=True):
    """Relative step times as they were measured on a `device`; `source`: the file and commit, for the reader."""

    device: Text
    source: Text
    relative: Relative

    def __post_init__(self) -> None:
        _require_slots(self.relative, "relative")


class StartSeconds(ClosedStruct, frozen=True, kw_only=True):
    """A job's time before its first step or after its last."""

    pretrain: NotNegative
    evaluate: NotNegative


class MachineEntry(ClosedStruct, frozen=True, kw_only=True):
    """An entry of config/machines.yaml, whose head explains the fields. Peaks are TFLOP/s of one device."""

    label: Text
    device: Literal["cpu", "cuda"]
    device_name: str
    peak_tflops: Positive
    mfu: Annotated[float, Meta(gt=0, le=1)]
    evaluation_tflops: Positive
    evaluation_mfu: Annotated[float, Meta(gt=0, le=1)]
    relative_step_time: Relative
    start_seconds: StartSeconds
    disk_mb_per_second: Positive
    devices: Annotated[dict[Size, Count], Meta(min_length=1)]
    devices_at_once: Count
    slice: Text
    memory_gib: Positive
    micro_batch: dict[Size, Count]
    price: NotNegative
    measured_step_time: Absent[MeasuredStepTime] = None

    def __post_init__(self) -> None:
        _require_slots(self.relative_step_time, "relative_step_time")
        try:
            parse_duration(self.slice)
        except PlumblineError as error:
            raise Fault(str(error), "slice") from None

    @property
    def slice_hours(self) -> float:
        """The longest time limit to ask for, in hours."""
        return parse_duration(self.slice) / 3600


class Machine(MachineEntry, frozen=True, kw_only=True):
    """A machine of config/machines.yaml by its name."""

    name: str

    @property
    def flops_per_second(self) -> float:
        """Useful operations a second of training on one device, as config/machines.yaml states them."""
        return self.peak_tflops * 1e12 * self.mfu

    @property
    def evaluation_speed(self) -> float:
        """How fast a device evaluates relative to how fast it trains, as config/machines.yaml states it."""
        return self.evaluation_tflops * self.evaluation_mfu / (self.peak_tflops * self.mfu)

    @property
    def relative_in_words(self) -> str:
        """Describe where the step times of methods come from."""
        measured = self.measured_step_time
        if measured is not None:
            unmeasured_names = [
                name
                for slot, times in self.relative_step_time.items()
                for name in times
                if name not in measured.relative.get(slot, {})
            ]
            message = f"measured on {measured.device} ({measured.source})"
            return f"{message}, but for {', '.join(unmeasured_names)}: reckoned" if unmeasured_names else message
        if not self.relative_step_time:
            return "by their operations alone, as for the baseline"
        return "measured for this machine" if self.device == "cpu" else "reckoned for this machine, not measured"

    @property
    def step_times(self) -> Relative:
        """Relative step times, each component's measured one before what is estimated."""
        measured = {} if self.measured_step_time is None else self.measured_step_time.relative
        slots = [*self.relative_step_time, *(slot for slot in measured if slot not in self.relative_step_time)]
        return {slot: self.relative_step_time.get(slot, {}) | measured.get(slot, {}) for slot in slots}

    def compute_relative_time(self, run: Run) -> float:
        """Estimate the time of a run's step relative to a step of the baseline with as many operations.

        What each component and the precision add is stated in config/machines.yaml, and is added up.
        """
        step_times, model = self.step_times, run.spec.model
        choices = {
            slot: (model.slot(slot).name, model.slot(slot).options) for slot in step_times if slot != "precision"
        }
        choices["precision"] = (run.spec.train.precision, {})
        return 1.0 + sum(_find_stated(times, *choices[slot]) - 1.0 for slot, times in step_times.items())

    def count_updating_devices(self, devices: int) -> int:
        """Give the number of devices, of so many, whose updates count in addition to the tokens that are read.

        None of processors: their stated speed is of whole steps, and Muon's products are done at twice that there.
        """
        return 0 if self.device == "cpu" else devices

    def devices_of(self, run: Run) -> int:
        """Look up how many devices train a run.

        Raises:
            PlumblineError: the machine has no number for runs of this size.
        """
        if run.size not in self.devices:
            raise PlumblineError(
                f"config/machines.yaml: {self.name}.devices: no number for the size {run.size!r} of {run.key} (there "
                f"are {sorted(self.devices)}); add it, or plan for another machine"
            )
        return self.devices[run.size]

    def runs_at_once(self, runs: Iterable[Run]) -> int:
        """Count how many of such runs stand next to each other, with the devices of each."""
        return max(1, self.devices_at_once // max(self.devices_of(run) for run in runs))

    def is_named_in(self, manifest: dict[str, object]) -> bool:
        """Whether a run's manifest names this machine's device."""
        return manifest["device"] == self.device and names_device(self.device_name, str(manifest["device_name"]))


def names_device(stated: str, name: str) -> bool:
    """Whether a device's `name` is of the device that a machine states.

    It has every word that is stated, in any case, and no word of another board or of a part of one that is not stated.
    Where none is stated, as of processors, every name is meant.
    """
    stated_words, name_words = (set(re.findall(r"[\w.]+", text.casefold())) for text in (stated, name))
    return not stated_words or (
        stated_words <= name_words and not any(_OTHER_BOARD.fullmatch(word) for word in name_words - stated_words)
    )


def _find_stated(times: Mapping[str, float], component: str, options: Mapping[str, Any]) -> float:
    """The time of a component, or of the component with options (`name option=value`): the most exact one stated."""
    candidates = [(0, 1.0)]
    for key, time in times.items():
        name, *conditions = key.split()
        if name == component and {*conditions} <= {f"{option}={value}" for option, value in options.items()}:
            candidates.append((1 + len(conditions), time))
    return max(candidates)[1]


def load(name: str, root: Path = ROOT) -> Machine:
    """Read a machine of config/machines.yaml by its name.

    Raises:
        PlumblineError: no such machine, or an entry of the file that cannot be meant.
    """
    path = root / "config" / "machines.yaml"
    entries: dict[str, MachineEntry] = read_struct(path, Annotated[dict[str, MachineEntry], Meta(min_length=1)])
    if name not in entries:
        raise PlumblineError(
            f"{path}: there is no machine {name!r}{nearest(name, entries)} (there are {sorted(entries)}); add it there"
        )
    entry = entries[name]
    size = max(entry.devices, key=entry.devices.__getitem__)
    if entry.devices[size] > entry.devices_at_once:  # a run would be planned as if it had them all
        raise PlumblineError(
            f"{path}: {name}.devices.{size}: {entry.devices[size]} work on a run, and there are "
            f"{entry.devices_at_once} (`devices_at_once`); lower it, or take the size out"
        )
    return Machine(name=name, **structs.asdict(entry))


def for_preset(config: dict[str, Any], *, machine_is_named: bool) -> dict[str, Any]:
    """Take PAPER_MACHINE for estimates at preset paper where config/config.yaml has a processor, and print it, unless
    `machine_is_named`."""
    if machine_is_named or config["preset"] != "paper" or load(config["machine"]).device != "cpu":
        return config
    print(
        f"planned for {PAPER_MACHINE}, since the preset paper is for GPUs and config/config.yaml names the processor "
        f"{config['machine']!r}; --config machine=NAME names another",
        file=sys.stderr,
    )
    return config | {"machine": PAPER_MACHINE}


def replace_price(machine: Machine, price: float) -> Machine:
    """Copy a machine with another price for a device-hour.

    Raises:
        PlumblineError: the price is negative.
    """
    if not 0 <= price < float("inf"):
        raise PlumblineError(f"--device-hour-price {price:g}: a price is a number that is not negative")
    return structs.replace(machine, price=price)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Speeds, start-up times and memory, as medians over finished runs; None, or no entry, where there is none.

    `speed` by study and scale: operations a second of a baseline on one device. `pretrain_start`, `evaluate_start`:
    seconds of a job outside its steps (interpreter, imports, loading, saving). `runs`: how many runs the speed rests
    on. `seconds`: what was read, by run: seconds of the training itself, of its job, and of the evaluation's job.
    `memory`: the most bytes that a run of a study and scale took on a device, where its trainer recorded them.
    """

    speed: dict[tuple[str, str], float]
    pretrain_start: float | None
    evaluate_start: float | None
    runs: int
    seconds: dict[str, tuple[float, float | None, float | None]]
    memory: dict[tuple[str, str], int]


#: What of a manifest is read here.
_READ = {
    "wall_seconds": (int, float),
    "tokens": (int,),
    "world_size": (int,),
    "attempts": (int,),
    "device": (str,),
    "device_name": (str,),
}
#: Those that no run has 0 of: one that diverged at its first step has no tokens.
_POSITIVE = ("wall_seconds", "world_size")
#: An upper limit that no real run reaches; infinity and not-a-number are not below it either.
_UNBELIEVABLE = 1e11
#: What no device holds.
_MOST_BYTES = 1e15


def calibrate(project: Project, machine: Machine, sizes: Sizes, runs: Iterable[Run]) -> Calibration:
    """Measure speed on those of `runs` that `machine` has finished, from their manifests and Snakemake's benchmark
    files.
    """
    work = Path(project.paths.work)
    speeds: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], int] = {}
    starts, evaluations, seconds_by_run = [], [], {}
    for run in runs:
        manifest = read_finished(run, work)
        if manifest is None or not machine.is_named_in(manifest):
            continue
        seconds, size = manifest["wall_seconds"], sizes(run.spec.model)
        if manifest["tokens"] == run.spec.train.steps * run.spec.train.batch_tokens:
            effort = training_operations(
                run, size, machine.count_updating_devices(manifest["world_size"])
            ) * machine.compute_relative_time(run)
            speeds.setdefault(group(run), []).append(effort / (seconds * manifest["world_size"]))
        job, evaluation = (job_seconds(work, rule, run) for rule in ("pretrain", "evaluate"))
        if job is not None and manifest["attempts"] == 1:
            starts.append(max(0.0, job - seconds))
        if (
            run.suite
            and run.scores_key == run.key
            and evaluation is not None
            and Path(project.paths.scores(run)).exists()
        ):
            evaluations.append((run, size.forward, evaluation))
        seconds_by_run[run.key] = (seconds, job, evaluation)
        if type(peak := manifest.get("peak_memory_bytes")) is int and 0 < peak < _MOST_BYTES:
            memory[group(run)] = max(peak, memory.get(group(run), 0))
    speed = {key: median(values) for key, values in speeds.items()}
    evaluate_starts = []
    for run, forward, seconds in evaluations:
        workload = amount(project, run)
        if workload is not None and group(run) in speed:
            inner_seconds = inside_evaluation(workload, forward, speed[group(run)] * machine.evaluation_speed)
            evaluate_starts.append(max(0.0, seconds - inner_seconds))
    return Calibration(
        speed=speed,
        pretrain_start=median(starts) if starts else None,
        evaluate_start=median(evaluate_starts) if evaluate_starts else None,
        runs=sum(len(values) for values in speeds.values()),
        seconds=seconds_by_run,
        memory=memory,
    )


def group(run: Run) -> tuple[str, str]:
    """Name the group of runs that share a run's speed: its study and scale, however many steps they make."""
    return run.spec.study, own_scale(run.spec.scale)


def read_finished(run: Run, work: Path) -> dict[str, Any] | None:
    """Read the manifest of a run that was trained under this very spec; None if it was not.

    A manifest that is damaged, or may not be read, is a warning, and the run counts as one that is to be done.
    """
    folder = work / "runs" / run.key
    path = folder / "manifest.json"
    try:
        if not ((folder / "outcome.json").exists() and path.exists()):
            return None
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["run_id"] != run.spec.run_id:
            return None
        run_files.require_manifest(path, manifest)
        bad_names = [name for name, types in _READ.items() if type(manifest.get(name)) not in types]
        problem = f"has no {bad_names[0]!r} that can be read" if bad_names else _describe_impossible(manifest)
    except PermissionError:
        warn_once(f"{explain_denial(folder)}; {run.key} counts as not done")
        return None
    except OSError as error:
        warn_once(
            f"{path} cannot be read ({error.strerror}), so {run.key} counts as not done here; nothing was changed"
        )
        return None
    except PlumblineError as error:
        warn_once(f"{error}; until then {run.key} counts as not done")
        return None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"is not the manifest of a run ({error!r})"
    if problem:
        warn_once(f"{path} {problem}, so {run.key} counts as not done; delete its folder to repeat the run")
        return None
    return manifest


def _describe_impossible(manifest: dict[str, Any]) -> str:
    """Describe the first number of a manifest that no run can have; empty if there is none."""
    for name in (name for name, types in _READ.items() if int in types):
        value = manifest[name]
        if not 0 <= value < _UNBELIEVABLE or (name in _POSITIVE and value == 0):
            return f"has a {name!r} of {value!r:.40}"
    return ""


def job_seconds(work: Path, rule: str, run: Run) -> float | None:
    """Read the wall seconds of a run's job from the file that Snakemake's `benchmark:` left; None if there is none.

    A damaged file is a warning, and gives None.
    """
    path = work / "benchmarks" / rule / f"{run.key.replace('/', '.')}.jsonl"
    if not path.exists():
        return None
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        if not lines:
            return None
        seconds = float(json.loads(lines[-1])["s"])
        if not 0 < seconds < _UNBELIEVABLE:
            raise ValueError(f"{seconds} seconds")
        return seconds
    except OSError as error:
        warn_unread(path, error)
        return None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        warn_once(f"{path} is not a benchmark of a job ({error!r}) and is not used; delete it")
        return None
