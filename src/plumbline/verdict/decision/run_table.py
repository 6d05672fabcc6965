"""Writes the table of runs of the pages of tries, budgets and screens: which run it is, what it gave and took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from plumbline.core.formats import format_seconds
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.formatting import format_value, quote, write_grid


def write_run_table(
    heads: Sequence[str],
    rows: Iterable[tuple[Sequence[str], ArmRun]],
    metric: str,
    unit: str,
    *,
    sigma: float = math.nan,
    other_metrics: Sequence[str] = (),
) -> str:
    """Write runs as a Markdown table, a row a run.

    Args:
        heads: of the cells that say which run it is, before its seed.
        rows: those cells, and the run.
        metric, unit: of the values; a metric may have no unit ("").
        sigma: of a run, by which values are rounded; NaN: six digits.
        other_metrics: of the runs beside it.
    """
    cells = []
    for labels, run in rows:
        value = run.outcome + (f" ({quote(run.why)})" if run.why else "")
        if run.has_value and run.value is not None:
            value = f"{run.value:.6g}" if math.isnan(sigma) else format_value(run.value, sigma / 10)
        other_values = [f"{run.others[name]:.5g}" if name in run.others else "" for name in other_metrics]
        took = "" if run.seconds is None else format_seconds(run.seconds).removesuffix(" s")
        run_id = quote(run.run_id) if run.run_id else ""
        cells.append((*labels, str(run.seed), value, *other_values, took, run_id))
    value_head = f"{quote(metric)} ({quote(unit)})" if unit else quote(metric)
    return write_grid((*heads, "seed", value_head, *map(quote, other_metrics), "seconds", "run id"), cells)
