"""What machines are estimated to do with the kernels of a compiled step, and what is counted of these."""

from __future__ import annotations

from benchmarks.fake_device.step_counts import Rates

#: Machine of config/machines.yaml -> what it is estimated to do. The vendors' peaks are 3.35, 4.8 and 2.0 TB/s, 989,
#: 989 and 312 TFLOP/s.
RATES = {
    "h100": Rates(),
    "h200": Rates(bytes=4.0e12),
    "a100": Rates(bytes=1.7e12, products=240e12, single=15e12, flash=140e12, ours=90e12),
}


def seconds_on(machine: str) -> str:
    """The name of a group's estimated seconds on a machine."""
    return f"seconds_{machine}"


#: What is counted of a group of kernels.
COUNTED = ("kernels", "bytes", "operations", *map(seconds_on, RATES))
H100 = seconds_on("h100")
