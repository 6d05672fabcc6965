"""Reads the machines that a plan can be made for, from config/machines.yaml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import Absent, ClosedStruct, Fault, unknown_key
from plumbline.specs.components import SLOTS
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
    slice_hours: Positive
    memory_gib: Positive
    micro_batch: dict[Size, Count]
    price: NotNegative
    measured_step_time: Absent[MeasuredStepTime] = None

    def __post_init__(self) -> None:
        _require_slots(self.relative_step_time, "relative_step_time")


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
            unmeasured = [
                name
                for slot, times in self.relative_step_time.items()
                for name in times
                if name not in measured.relative.get(slot, {})
            ]
            message = f"measured on {measured.device} ({measured.source})"
            return f"{message}, but for {', '.join(unmeasured)}: reckoned" if unmeasured else message
        if not self.relative_step_time:
            return "by their operations alone, as for the baseline"
        return "measured for this machine" if self.device == "cpu" else "reckoned for this machine, not measured"

    @property
    def step_times(self) -> Relative:
        """Relative step times, each component's measured one before what is estimated."""
        measured = {} if self.measured_step_time is None else self.measured_step_time.relative
        slots = [*self.relative_step_time, *(slot for slot in measured if slot not in self.relative_step_time)]
        return {slot: self.relative_step_time.get(slot, {}) | measured.get(slot, {}) for slot in slots}

    def relative(self, run: Run) -> float:
        """Estimate the time of a run's step relative to a step of the baseline with as many operations.

        What each component and the precision add is stated in config/machines.yaml, and is added up.
        """
        step_times, model = self.step_times, run.spec.model
        chosen = {slot: (model.slot(slot).name, model.slot(slot).options) for slot in step_times if slot != "precision"}
        chosen["precision"] = (run.spec.train.precision, {})
        return 1.0 + sum(_find_stated(times, *chosen[slot]) - 1.0 for slot, times in step_times.items())

    def updating(self, devices: int) -> int:
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
    return Machine(name=name, **structs.asdict(entries[name]))


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
