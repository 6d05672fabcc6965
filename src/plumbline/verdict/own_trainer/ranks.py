"""Tells the values of ranks apart that print into one log (`child/plumbline_ranks.py` notes their lines)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.metric import LoggedMetric
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Seconds that reading the lines of ranks may take.
SECONDS = 10.0


def read_rank_texts(part: MetricPart, folder: Path) -> dict[int, dict[str, str]]:
    """Read the metrics that each rank printed last, from a folder of reports: rank -> name ("" is the primary one)."""
    lines: dict[int, list[tuple[int, str]]] = {}
    for path in sorted(folder.glob("*.rank")):
        for record in path.read_text(encoding="utf-8", errors="replace").splitlines():
            place, _, rest = record.strip("\0 ").partition(" ")
            number, _, line = rest.partition(" ")
            if place.isdecimal() and number.isdecimal():
                lines.setdefault(int(number), []).append((int(place), line))
    texts: dict[int, dict[str, str]] = {}
    try:
        with metric.alarm(SECONDS):
            for rank, each in sorted(lines.items()):
                texts[rank] = metric.read_texts(part, (line for _, line in sorted(each, reverse=True)))
    except PlumblineError:  # it took too long
        return {}
    return {rank: each for rank, each in texts.items() if each}


def choose_first_rank(
    output: LoggedMetric, texts: Mapping[int, Mapping[str, str]], called: str
) -> tuple[LoggedMetric, str]:
    """Take the values of rank 0 where several ranks print other values; with a remark that says so, empty if not."""
    differ = {
        name
        for each in texts.values()
        for name, text in each.items()
        if any(other.get(name, text) != text for other in texts.values())
    }
    if not differ:
        return output, ""
    names = ", ".join(sorted(name or called for name in differ))
    ranks = ", ".join(map(str, texts))
    values = {name: metric.number(texts.get(0, {}).get(name, "")) for name in differ}
    if any(value is None for value in values.values()):
        return output, f"ranks {ranks} print {names}, each its own; the last that was printed counts, of whichever rank"
    metrics = {name: value for name, value in values.items() if name and value is not None and math.isfinite(value)}
    primary = {"value": values[""], "text": texts[0][""]} if "" in values else {}
    remark = f"ranks {ranks} print {names}, each its own: that of rank 0 counts"
    return msgspec.structs.replace(output, others={**output.others, **metrics}, **primary), remark
