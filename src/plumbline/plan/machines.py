"""Machines a plan can be made for, from config/machines.yaml."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from plumbline.cli import PlumblineError
from plumbline.studies.config import ROOT, read_yaml


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """An accelerator: peak in TFLOP/s of dense bfloat16 on one device, the share of it (`mfu`) assumed in training,
    devices for each scale, memory in GiB, price for a device-hour (0: none stated)."""

    name: str
    label: str
    peak_tflops: float
    mfu: float
    devices: dict[str, int]
    memory_gib: float
    price: float

    @property
    def flops_per_second(self) -> float:
        """Useful operations a second on one device."""
        return self.peak_tflops * 1e12 * self.mfu


def load(name: str, root: Path = ROOT) -> Machine:
    """A machine by name.

    Raises:
        PlumblineError: no such machine, or an entry with other keys than the ones above.
    """
    path = root / "config" / "machines.yaml"
    known = read_yaml(path)
    if name not in known:
        raise PlumblineError(f"{path}: there is no machine {name!r} (there are {sorted(known)}); add it there")
    fields = {item.name for item in dataclasses.fields(Machine)} - {"name"}
    if set(known[name]) != fields:
        raise PlumblineError(f"{path}: {name}: its keys must be {sorted(fields)}")
    return Machine(name=name, **known[name])


def priced(machine: Machine, price: float) -> Machine:
    """The machine at another price for a device-hour."""
    return dataclasses.replace(machine, price=price)
