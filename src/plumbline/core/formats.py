"""Writes numbers, times, sizes and counts for people."""

from __future__ import annotations


def number(value: float) -> str:
    """Write a number with three digits, or whole from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Write a time as minutes, hours or days: ``4.2 min``, ``1.5 h``, ``2.0 days``."""
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:,.0f} days" if hours >= 2400 else f"{hours / 24:.1f} days"
    return f"{hours:.1f} h" if hours >= 1 else f"{seconds / 60:.1f} min"


def rough_duration(seconds: float) -> str:
    """Write a time that is not known exactly: ``40 s``, ``9 min``, ``5 h``, ``3 days``."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 86400)} days"


def clock(seconds: float | None) -> str:
    """Write a time as ``h:mm:ss``; empty if nothing is known."""
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def byte_size(size: float) -> str:
    """Write a number of bytes with three digits: ``12 B``, ``3.4 kB``, ``71.2 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{number(size)} {unit}"
        size /= 1000
    return f"{number(size)} TB"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: ``1 run``, ``1,204 runs``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
