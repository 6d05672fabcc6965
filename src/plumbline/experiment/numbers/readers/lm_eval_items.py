"""Reads what ``lm-eval --log_samples`` wrote of one model: a value for each item of each task.

Its files are ``samples_<task>_<date>.jsonl``, a line an item and filter; the newest of a task counts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import once
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.experiment.numbers.readers.row_files import MOST_BYTES

NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.:\-]+))?\.jsonl")


@dataclass(frozen=True, slots=True)
class LmEvalItem:
    """An item's value, and the hash of its document ("" where the file has none)."""

    value: float
    document: str


def found(folder: Path) -> dict[str, Path]:
    """Find the newest file of each task below a folder: task -> file."""
    files: dict[str, tuple[str, Path]] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")) if folder.is_dir() else []:
        if match := NAME.fullmatch(path.name):
            dated = (match["date"] or "", path)
            files[match["task"]] = max(files.get(match["task"], dated), dated)
    return {task: path for task, (_, path) in sorted(files.items())}


def read_items(folder: Path, metric: str) -> dict[str, dict[str, LmEvalItem]]:
    """Read task -> item -> value of a metric, ``acc`` or, where tasks have several filters, ``exact_match,strict``.

    Raises:
        PlumblineError: there are no such files; a line is no item, has no number of the metric, or is there twice.
    """
    files = found(folder)
    if not files:
        raise PlumblineError(f"{folder} has no samples_<task>_<date>.jsonl; run lm-eval with --log_samples")
    return {task: _task(path, metric) for task, path in files.items()}


def _task(path: Path, metric: str) -> dict[str, LmEvalItem]:
    wanted, _, chosen = metric.partition(",")
    items: dict[str, LmEvalItem] = {}
    filters: dict[str, None] = {}
    for number, line in enumerate(read_ordinary_text(path, MOST_BYTES).split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(path, number, line)
        of = str(record.get("filter", "none"))
        filters[of] = None
        if chosen and of != chosen:
            continue
        if len(filters) > 1 and not chosen:
            raise PlumblineError(f"{path} has the filters {list(filters)}; choose one with --metric {wanted},FILTER")
        key = str(record["doc_id"])
        if key in items:
            raise PlumblineError(f"{path}, line {number}: item {key} is there twice")
        items[key] = LmEvalItem(_value(path, number, record, wanted), str(record.get("doc_hash", "")))
    if not items:
        raise PlumblineError(f"{path} has no items of {metric!r}; its filters are {list(filters)}")
    return items


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError):
        record = None
    except ValueError as error:
        raise PlumblineError(f"{path}, line {number}: {error}") from None
    if not isinstance(record, dict) or "doc_id" not in record:
        raise PlumblineError(f"{path}, line {number} is not an item (an object with doc_id)")
    return record


def _value(path: Path, number: int, record: dict[str, Any], metric: str) -> float:
    value = record.get(metric)
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    if isinstance(value, float):
        raise PlumblineError(
            f"{path}, line {number}: {metric!r} is {value:g}: the model has no score of this item, and to leave it out "
            "would select among them; put the evaluation right and repeat it, or name another metric with --metric"
        )
    there = record.get("metrics")
    named = [str(each) for each in there] if isinstance(there, list) else []
    raise PlumblineError(
        f"{path}, line {number}: {metric!r} is no finite number; name one of {named} with --metric"
        f"{nearest(metric, named)}"
    )
