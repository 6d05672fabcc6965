"""How numbers, names and p-values are written on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tabulate import tabulate


def name(text: str) -> str:
    """A name from a file, which may hold anything, as code in a line or a cell."""
    return f"`{cell(text).replace('`', chr(39))}`"


def cell(text: str) -> str:
    """Any text in one line, as a cell of a table takes it."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def fixed(value: float, sigma: float) -> str:
    """A value in the metric's units: as many decimals as two digits of sigma have."""
    if not math.isfinite(value):
        return "none"
    return f"{value:.{min(12, max(0, 1 - math.floor(math.log10(sigma))))}f}"


def moved(gain: float, metric: str, sigma: float, *, higher: bool) -> str:
    """What a method does to a metric by a gain that counts upwards: ``gains 0.02 in``, or ``lowers ... by 0.02``."""
    size = fixed(abs(gain), sigma)
    if higher:
        return f"{'gains' if gain >= 0 else 'loses'} {size} in {name(metric)}"
    return f"{'lowers' if gain >= 0 else 'raises'} {name(metric)} by {size}"


def p(value: float) -> str:
    """A p-value with two digits."""
    if math.isnan(value):
        return "none"
    return f"{value:.2g}" if value >= 1e-12 else "below 1e-12"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if 0.005 < share < 0.995 else f"{100 * share:.1f} %"


def counted(number: int, one: str, more: str | None = None) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def freedom(value: float) -> str:
    return "known" if math.isinf(value) else f"{value:g}"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, words to the left and numbers to the right."""
    align = ["left", *["right"] * (len(columns) - 1)]
    return tabulate([list(row) for row in rows], list(columns), "pipe", disable_numparse=True, colalign=align)
