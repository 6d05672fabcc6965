"""Writes numbers, times, sizes and counts for people, and reads the times that they write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plumbline.core.errors import PlumblineError

#: Longest time that anybody may ask for, in seconds: ten years.
LONGEST = 87_600 * 3600.0
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d+\.?\d*|\.\d+) *(s|seconds?|m|min|minutes?|h|hours?|d|days?)(?![a-z]) *")


def format_number(value: float) -> str:
    """Write a number with three digits, or whole from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def format_duration(seconds: float) -> str:
    """Write a time as minutes, hours or days: ``4.2 min``, ``1.5 h``, ``2.0 days``."""
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:,.0f} days" if hours >= 2400 else f"{hours / 24:.1f} days"
    return f"{hours:.1f} h" if hours >= 1 else f"{seconds / 60:.1f} min"


def parse_duration(text: str) -> float:
    """Read a time such as ``90s``, ``30 min``, ``2 hours``, ``1d`` or ``1h30m``, in seconds.

    Raises:
        PlumblineError: the text is not a time above 0 and below ten years.
    """
    parts = _TIME.findall(text)
    seconds = sum(float(value) * _SECONDS[unit[0]] for value, unit in parts)
    label = repr(text if len(text) <= 40 else f"{text[:40]}...")
    if not parts or _TIME.sub("", text).strip():
        raise PlumblineError(f"{label} is not a time; write 90s, 30 min, 2 hours, 1d or 1h30m")
    if not 0 < seconds <= LONGEST:
        bound = "must be above 0" if seconds <= 0 else "is more than ten years"
        raise PlumblineError(f"{label} {bound}; write 90s, 30 min, 2 hours, 1d or 1h30m")
    return seconds


def format_rough_duration(seconds: float) -> str:
    """Write a time that is not known exactly: ``40 s``, ``9 min``, ``5 h``, ``3 days``."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 86400)} days"


def format_clock(seconds: float | None) -> str:
    """Write a time as ``h:mm:ss``; empty if nothing is known."""
    if seconds is None:
        return ""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def format_seconds(value: float, unit: str = "s") -> str:
    """Write a time with two digits where it is short: ``0.42 s``, ``7.3 s``, ``1,204 s``; `unit`: "s" or "second"."""
    short = f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"
    return f"{short} {unit if unit == 's' or short == '1' else unit + 's'}"


def format_percent(share: float) -> str:
    """Write a share between 0 and 1 as a percentage, with a decimal only near 0 and 100 %."""
    return f"{100 * share:.0f} %" if 0.005 < share < 0.995 else f"{100 * share:.1f} %"


def format_megabytes(size: float) -> str:
    """Write a number of bytes as megabytes, where amounts are compared: ``3.4 MB``, ``1,204.0 MB``."""
    return f"{size / 1e6:,.1f} MB"


def format_bytes(size: float) -> str:
    """Write a number of bytes with three digits: ``12 B``, ``3.4 kB``, ``71.2 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{format_number(size)} {unit}"
        size /= 1000
    return f"{format_number(size)} TB"


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: ``1 run``, ``1,204 runs``; `plural`: if that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_peak_memory(facts: Mapping[str, Any]) -> str:
    """Write what a run's manifest or a start's record has on memory: ``514 MB resident, beside its packages``."""
    most = facts.get("peak_memory_bytes")
    return "not recorded" if most is None else f"{most / 1e6:,.0f} MB {facts['peak_memory_of']}"
