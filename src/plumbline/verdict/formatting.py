"""Writes numbers, names and p-values as they stand on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from plumbline.core.errors import visible

Row = TypeVar("Row")


def quote(text: str) -> str:
    """Write a name from a file, which may hold anything, as code in a line or a cell of Markdown."""
    return f"`{escape_cell(text).replace('`', chr(39))}`"


def strip_markup(text: str) -> str:
    """Write a user's words in one line without what a page could take for markup."""
    return re.sub(r"[^\w %/.,()=+×–-]", "", visible(re.sub(r"\s+", " ", text))).strip()


def escape_cell(text: str) -> str:
    """Write any text in one line, as a cell of a Markdown table takes it, and visible."""
    return visible(re.sub(r"\s+", " ", text)).replace("|", "\\|")


def format_value(value: float, sigma: float) -> str:
    """Write a value in the metric's units, with as many decimals as two digits of sigma have."""
    if not math.isfinite(value):
        return "none"
    if abs(value) >= 1e9 or not 1e-11 < sigma < 1e9:
        return f"{value:.4g}"
    return f"{value:.{min(12, max(0, 1 - math.floor(math.log10(sigma))))}f}"


def describe_effect(gain: float, metric: str, sigma: float, *, higher: bool) -> str:
    """State what a method does to a metric: ``gains 0.02 in``, or ``lowers ... by 0.02``. `gain` counts upwards."""
    size = format_value(abs(gain), sigma)
    if higher:
        return f"{'gains' if gain >= 0 else 'loses'} {size} in {quote(metric)}"
    return f"{'lowers' if gain >= 0 else 'raises'} {quote(metric)} by {size}"


def format_p(value: float) -> str:
    """Write a p-value with two digits."""
    if math.isnan(value):
        return "none"
    return f"{value:.2g}" if value >= 1e-12 else "below 1e-12"


def name_some(names: Collection[str], most: int = 5) -> str:
    """Name the first few of several, and count the others."""
    listed = list(names)[:most]
    excess = len(names) - len(listed)
    return join_with_and([*listed, f"{excess:,} more"] if excess else listed)


def join_with_and(phrases: Sequence[str]) -> str:
    """Join words as in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


def format_freedom(value: float) -> str:
    """Write degrees of freedom; ``known`` where they are infinite, since sigma was given."""
    return "known" if math.isinf(value) else f"{value:g}"


def write_table(columns: Mapping[str, Callable[[Row], str]], rows: Iterable[Row]) -> str:
    """Write a Markdown table as `write_grid`; `columns`: each heading, and what writes its cell of a row."""
    return write_grid(list(columns), [[write(row) for write in columns.values()] for row in rows])


def write_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table, its first column to the left and the others to the right."""
    lines = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    cells = [
        [text.rjust(width) if place else text.ljust(width) for place, (text, width) in enumerate(zip(line, widths))]
        for line in lines
    ]
    marks = [f"{'-' * (width + 1)}:" if place else f":{'-' * (width + 1)}" for place, width in enumerate(widths)]
    head, *body = (f"| {' | '.join(line)} |" for line in cells)
    return "\n".join([head, f"|{'|'.join(marks)}|", *body])
