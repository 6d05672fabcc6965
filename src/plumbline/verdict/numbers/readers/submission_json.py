"""Reads submission.json files, as the records of parameter-golf have them: a folder each, by whose name it is known.

A metric stands in such a file once (one run), or for each seed: ``seed_results`` by seed, each a number or an object of
metrics; or as an array of such objects, each with its ``seed``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import once
from plumbline.core.foreign_rows import read_ordinary_file
from plumbline.verdict.formatting import name
from plumbline.verdict.numbers.readers.row_files import MOST_BYTES
from plumbline.verdict.numbers.readers.score_table import MetricBySeed
from plumbline.verdict.seed_values import seed_name

FILE, SEEDS = "submission.json", "seed_results"
#: The mean of the seeds may differ from the headline by this part of it: headlines are rounded.
ROUNDING = 5e-5


def found(folder: Path) -> list[Path]:
    """List the submissions below a folder; itself where it is such a file."""
    if folder.name == FILE and folder.is_file():
        return [folder]
    return sorted(folder.rglob(FILE)) if folder.is_dir() else []


def read_submissions(folder: Path, metric: str) -> MetricBySeed:
    """Read a metric of every submission below a folder; one that has it nowhere is left out, and named.

    Raises:
        PlumblineError: a file is no submission, none has the metric, or one has it for some of its seeds alone.
    """
    values: dict[str, dict[str, float]] = {}
    lost: dict[str, dict[str, str]] = {}
    notes, without, alone, there = list[str](), list[str](), list[str](), set[str]()
    for path in found(folder):
        method = path.parent.name if folder == path else path.parent.relative_to(folder).as_posix()
        method = folder.resolve().name if method == "." else method
        read = _read(path)
        if metric not in read and not read.get(SEEDS):
            without.append(method)
            there |= {key for key, each in read.items() if isinstance(each, int | float)}
            continue
        runs = _runs(path, read, metric)
        for seed, value in runs.items():
            if math.isfinite(value):
                values.setdefault(method, {})[seed] = value
            else:
                lost.setdefault(method, {})[seed] = "diverged"
        if len(runs) == 1:
            alone.append(method)
        else:
            notes += _headline(method, read.get(metric), runs, metric)
    if not values and not lost:
        raise PlumblineError(
            f"{folder}: no {FILE} has {metric!r}; name one of {sorted(there)} with --metric{nearest(metric, there)}"
        )
    if alone:
        notes.append(f"One number of {name(metric)}, and no seeds: one run of {', '.join(map(name, alone))}.")
    if without:
        notes.append(f"Without a value of {name(metric)}, and left out: {', '.join(map(name, without))}.")
    return MetricBySeed(metric=metric, values=values, lost=lost, notes=tuple(notes), order=tuple({**values, **lost}))


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(read_ordinary_file(path, MOST_BYTES), object_pairs_hook=once)
    except PlumblineError:
        raise
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f"{path} cannot be read as JSON ({error})") from None
    if not isinstance(read, dict):
        raise PlumblineError(f"{path} is not a JSON object")
    return read


def _runs(path: Path, read: dict[str, Any], metric: str) -> dict[str, float]:
    by_seed = read.get(SEEDS)
    if by_seed and isinstance(by_seed, dict | list):
        if isinstance(by_seed, list):
            if not all(isinstance(each, dict) and "seed" in each for each in by_seed):
                raise PlumblineError(f"{path}: {SEEDS} is an array; each of its objects needs a 'seed'")
            results = [(each["seed"], each) for each in by_seed]
        else:
            results = list(by_seed.items())
        runs = {}
        for seed, result in results:
            one = seed_name(str(seed))
            if one in runs:
                raise PlumblineError(f"{path}: {SEEDS} has seed {one!r} twice; a run counts once")
            runs[one] = _number(
                path, f"{SEEDS}.{seed}", result if isinstance(result, dict) else {metric: result}, metric
            )
        return runs
    # Named after the file's folder, so that no two submissions seem to share a seed.
    return {f"{path.parent.name}, its only run": _number(path, "", read, metric)}


def _number(path: Path, place: str, record: dict[str, Any], metric: str) -> float:
    value = record.get(metric)
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)  # type: ignore[arg-type]  # anything else is refused below
    except (TypeError, ValueError, OverflowError):
        there = [key for key, each in record.items() if isinstance(each, int | float) and not isinstance(each, bool)]
        raise PlumblineError(
            f"{path}{place and ', ' + place}: {metric!r} is no number; name one of {there} with --metric"
            f"{nearest(metric, there)}"
        ) from None


def _headline(method: str, headline: Any, runs: dict[str, float], metric: str) -> list[str]:
    """Whether a submission's own number is that of its seeds."""
    mean = sum(runs.values()) / len(runs)
    if not isinstance(headline, int | float) or not math.isfinite(mean):
        return []
    if abs(headline - mean) <= ROUNDING * abs(mean):
        return []
    return [f"{name(method)} says {headline:g} in {name(metric)}, but the mean of its seeds is {mean:.6g}."]
