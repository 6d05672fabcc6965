"""Reads submission.json files, as the records of parameter-golf have them: a folder each, by whose name it is known.

A metric stands in such a file once (one run), or for each seed: ``seed_results`` by seed, each a number or an object of
metrics; or as an array of such objects, each with its ``seed``. Where such an object says how its run ended, as the
columns of a table do, that counts. A verdict takes its numbers; for a gate it is a record, whose keys the rules name,
with the logs next to it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import refuse_repeated_keys
from plumbline.core.foreign_rows import read_ordinary_file
from plumbline.verdict.evidence import CRASH, FINISHED, RUNNING, Evidence, RunEvidence
from plumbline.verdict.formatting import quote
from plumbline.verdict.seed_values import normalize_seed
from plumbline.verdict.sources.bounded_reading import LARGEST, count_decimals, list_files_below, read_text
from plumbline.verdict.sources.measure_columns import read_measures, read_start
from plumbline.verdict.sources.records import Printed, Record
from plumbline.verdict.sources.row_files import MOST_BYTES, ColumnNames, make_rows, parse_float
from plumbline.verdict.sources.run_statuses import RunStatus, RunStatuses
from plumbline.verdict.sources.training_log import LogPart

FILE, SEEDS = "submission.json", "seed_results"
#: The mean of the seeds may differ from the headline by this part of it: headlines are rounded.
ROUNDING = 5e-5


def find_submissions(folder: Path) -> list[Path]:
    """List the submissions below a folder; itself where it is such a file."""
    if folder.name == FILE and folder.is_file():
        return [folder]
    return sorted(folder.rglob(FILE)) if folder.is_dir() else []


def read_submissions(folder: Path, columns: ColumnNames) -> Evidence:
    """Read a metric of every submission below a folder; one that has it nowhere is left out, and named.

    Raises:
        PlumblineError: a file is not a submission, none has the metric, or one has it for some of its seeds alone.
    """
    runs: dict[str, dict[str, RunEvidence]] = {}
    notes, empty_methods, single_run_methods, metrics = list[str](), list[str](), list[str](), set[str]()
    metric = columns.metric
    for path in find_submissions(folder):
        method = _name_submission(path, folder)
        submission = _read_object(path)
        if metric not in submission and not submission.get(SEEDS):
            empty_methods.append(method)
            metrics |= {key for key, each in submission.items() if isinstance(each, int | float)}
            continue
        results = _read_results(path, submission, metric)
        statuses, remarks = _read_statuses(path, results, columns)
        notes += [f"{quote(method)}: {remark}" for remark in remarks]
        values = {
            seed: math.nan if statuses[seed].meaning in (CRASH, RUNNING) else _read_number(path, place, result, metric)
            for seed, (place, result) in results.items()
        }
        runs[method] = {
            seed: _make_run(
                path,
                values[seed],
                {**read_measures(result, without=frozenset((metric,))), **(read_start(result) if place else {})},
                statuses[seed],
            )
            for seed, (place, result) in results.items()
        }
        if len(values) == 1:
            single_run_methods.append(method)
        else:
            notes += _check_headline(method, submission.get(metric), values, metric)
    if not runs:
        raise PlumblineError(
            f"{folder}: no {FILE} has {metric!r}; name one of {sorted(metrics)} with --metric{nearest(metric, metrics)}"
        )
    if single_run_methods:
        notes.append(
            f"One number of {quote(metric)}, and no seeds: one run of {', '.join(map(quote, single_run_methods))}."
        )
    if empty_methods:
        notes.append(f"Without a value of {quote(metric)}, and left out: {', '.join(map(quote, empty_methods))}.")
    return Evidence(
        metric=metric,
        runs=dict(sorted(runs.items(), key=lambda each: all(run.value is None for run in each[1].values()))),
        files=tuple(dict.fromkeys(run.file for of_method in runs.values() for run in of_method.values() if run.file)),
        notes=tuple(notes),
    )


def _name_submission(path: Path, folder: Path) -> str:
    """What a submission is known by: its folder, below the one that was named."""
    name = path.parent.name if path == folder else path.parent.relative_to(folder).as_posix()
    return path.parent.resolve().name if name in ("", ".", "..") else name


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_ordinary_file(path, MOST_BYTES), object_pairs_hook=refuse_repeated_keys)
    except PlumblineError:
        raise
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f"{path} cannot be read as JSON ({error})") from None
    if not isinstance(content, dict):
        raise PlumblineError(f"{path} is not a JSON object")
    return content


def _read_statuses(
    path: Path, results: Mapping[str, tuple[str, dict[str, Any]]], columns: ColumnNames
) -> tuple[dict[str, RunStatus], list[str]]:
    """How each run ended, by its seed, and what is to be told of that; of a file's only run nothing says it, since what
    stands there is about the submission.
    """
    if all(not place for place, _ in results.values()):
        return dict.fromkeys(results, RunStatus(FINISHED, "")), []
    rows = make_rows(path, [(place, result) for place, (_, result) in enumerate(results.values(), start=1)])
    statuses = RunStatuses(rows, columns)
    return dict(zip(results, map(statuses.read_status, rows.rows))), statuses.list_read() + statuses.list_unread()


def _make_run(path: Path, value: float, measures: Mapping[str, Any], status: RunStatus) -> RunEvidence:
    if math.isfinite(value):
        return RunEvidence(value=value, file=path, status=FINISHED, **measures)
    meaning, word = status if status.meaning in (CRASH, RUNNING) else (CRASH, "diverged")
    return RunEvidence(value=None, file=path, status=meaning, word=word, **measures)


def _read_results(path: Path, submission: dict[str, Any], metric: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The results of each run by its seed: the key where they stand, and what stands there."""
    by_seed = submission.get(SEEDS)
    if not by_seed or not isinstance(by_seed, dict | list):
        # Named after the file's folder, so that no two submissions seem to share a seed.
        return {f"{path.parent.name}, its only run": ("", submission)}
    if isinstance(by_seed, list):
        if not all(isinstance(each, dict) and "seed" in each for each in by_seed):
            raise PlumblineError(f"{path}: {SEEDS} is an array; each of its objects needs a 'seed'")
        results = [(each["seed"], each) for each in by_seed]
    else:
        results = list(by_seed.items())
    runs: dict[str, tuple[str, dict[str, Any]]] = {}
    for seed, result in results:
        label = normalize_seed(str(seed))
        if label in runs:
            raise PlumblineError(f"{path}: {SEEDS} has seed {label!r} twice; a run counts once")
        runs[label] = (f"{SEEDS}.{seed}", result if isinstance(result, dict) else {metric: result})
    return runs


def _read_number(path: Path, place: str, record: dict[str, Any], metric: str) -> float:
    number = parse_float(record.get(metric))
    if number is None:
        numbers = [key for key, each in record.items() if isinstance(each, int | float) and not isinstance(each, bool)]
        raise PlumblineError(
            f"{path}{place and ', ' + place}: {metric!r} is no number; name one of {numbers} with --metric"
            f"{nearest(metric, numbers)}"
        )
    return number


def _check_headline(method: str, headline: Any, runs: dict[str, float], metric: str) -> list[str]:
    """Whether a submission's own number is that of its seeds."""
    mean = sum(runs.values()) / len(runs)
    if not isinstance(headline, int | float) or not math.isfinite(mean) or abs(headline - mean) <= ROUNDING * abs(mean):
        return []
    return [f"{quote(method)} says {headline:g} in {quote(metric)}, but the mean of its seeds is {mean:.6g}."]


#: How deep an object is searched for the values of further seeds; seeds of a record.
DEPTH, MOST_SEEDS = 4, 1_000


class _Number(float):
    """A number of a JSON file that knows how it was printed."""

    text: str

    def __new__(cls, text: str) -> _Number:
        """Read it."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class SubmissionsPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Records as folders with a JSON file each: the keys of its headline, its values by seed, and its date."""

    file: str
    headline: tuple[str, ...]
    seeds: tuple[str, ...]
    date: str = "date"


def read_records(folder: Path, part: SubmissionsPart, log: LogPart, metric: str, *, higher: bool) -> list[Record]:
    """Read the submissions of a folder as records with their logs, the oldest first.

    Raises:
        PlumblineError: there is no submission in it.
    """
    files = list(list_files_below(folder, (part.file,)))
    if not files:
        raise PlumblineError(f"{folder}: no {part.file} in it or below it (submissions.file of the rules)")
    records = [_read_record(path, folder, part, metric) for path in files if path.name == part.file]
    # The headline breaks ties of a day: the better one came later.
    sign = 1 if higher else -1
    records.sort(key=lambda each: (each.date[:10] or "9", sign * each.headline.value if each.headline else math.inf))
    for order, record in enumerate(records):
        record.order = order
        record.read_logs(log, folder)
        if not record.logs:
            record.unread.append("no log of its folder holds an evaluation")
    return records


def _read_record(path: Path, folder: Path, part: SubmissionsPart, metric: str) -> Record:
    record = Record(name=_name_submission(path, path if path.parent == folder else folder), order=0, place=path.parent)
    try:
        submission = json.loads(read_text(path), object_pairs_hook=refuse_repeated_keys, parse_float=_Number)
        if not isinstance(submission, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, RecursionError) as error:
        record.unread.append(f"{path.name} cannot be read as JSON ({error})")
        return record
    date_match = re.match(r"\d{4}-\d{2}-\d{2}", path.parent.name)
    record.date = str(submission.get(part.date) or (date_match[0] if date_match else ""))[:40]
    record.description = str(submission.get("name", ""))[:200]
    record.headline = next(filter(None, (_read_printed(submission.get(key)) for key in part.headline)), None)
    if record.headline is None:
        record.unread.append(f"{path.name} has no number {' or '.join(map(repr, part.headline))}")
    printed_values = [_read_by_seed(submission.get(key), metric) for key in part.seeds]
    by_key = [_keep_seeds(values) for values in printed_values]
    record.unread += [
        f"{path.name}: {key} has no number for {name!r}, which is taken for no seed"
        for key, values, seed_values in zip(part.seeds, printed_values, by_key)
        for name in values.keys() - seed_values.keys()
    ]
    record.by_seed = next((values for values in by_key if any(map(_is_finite, values.values()))), {})
    for values in by_key:
        if record.by_seed and record.by_seed.keys() <= values.keys():  # further seeds, listed without a number
            record.by_seed = {**{seed: each for seed, each in values.items() if not _is_finite(each)}, **record.by_seed}
    if len(record.by_seed) > MOST_SEEDS:
        record.unread.append(f"{path.name} has {len(record.by_seed):,} seeds, and at most {MOST_SEEDS:,} are read")
        record.by_seed = dict(list(record.by_seed.items())[:MOST_SEEDS])
    record.printed_n = len(record.by_seed) or None
    record.left_out = _find_further_seeds(submission, record.by_seed, metric)
    return record


def _read_printed(value: Any) -> Printed | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:  # nor NaN
        return None
    return Printed(float(value), count_decimals(getattr(value, "text", str(value))))


def _is_finite(printed: Printed) -> bool:
    return math.isfinite(printed.value)


def _read_by_seed(results: Any, metric: str) -> dict[str, Printed]:
    """The values by seed, NaN of a seed that is listed without a number: an object by seed, each a number or an object
    with the metric; or a list of such objects, or of seeds alone.
    """
    if isinstance(results, list):
        objects = [{"seed": each} if isinstance(each, int | str) else each for each in results]
        results = {str(each["seed"]): each for each in objects if isinstance(each, dict) and "seed" in each}
    values = {}
    for seed, each in results.items() if isinstance(results, dict) else ():
        name = seed.removeprefix("seed_").removeprefix("seed")[:40]
        number = each.get(metric, "") if isinstance(each, dict) else each
        value = _read_printed(number)
        # A note or a setting next to the seeds is none of them.
        if value is not None or number is None or isinstance(number, float) or name.isdecimal():
            values[name] = value or Printed(math.nan, 0)
    return values


def _keep_seeds(values: Mapping[str, Printed]) -> dict[str, Printed]:
    """Values by seed without those of a name that no seed has: without a number, and neither digits nor like another's
    name ("run_3" is like "run_1"), as that of a note or of a mean that was not made.
    """
    shapes = {re.sub(r"\d+", "#", name) for name, printed in values.items() if _is_finite(printed)} | {"#"}
    return {
        name: printed for name, printed in values.items() if _is_finite(printed) or re.sub(r"\d+", "#", name) in shapes
    }


def _find_further_seeds(submission: Mapping[str, Any], by_seed: Mapping[str, Printed], metric: str) -> dict[str, float]:
    """Values of seeds that the record states it ran and does not count: an object with all its seeds, and more."""
    if not by_seed:
        return {}
    for each in _walk_objects(submission, DEPTH):
        values = _read_by_seed(each, metric)
        if len(values) == len(each) > len(by_seed) and all(
            seed in values and (abs(values[seed].value - printed.value) < 1e-6 or not _is_finite(printed))
            for seed, printed in by_seed.items()
        ):
            return {seed: value.value for seed, value in _keep_seeds(values).items() if seed not in by_seed}
    return {}


def _walk_objects(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict) and depth:
        yield value
        for each in value.values():
            yield from _walk_objects(each, depth - 1)
