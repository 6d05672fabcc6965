"""Reads records as folders with a submission file each, and the logs beside it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import once
from plumbline.verdict.gate.bounded_reading import LARGEST, decimals, files_below, read_text
from plumbline.verdict.gate.records import Printed, Record
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.training_log import read_log

#: How deep an object is looked through for the values of further seeds; seeds of a record.
DEPTH, SEEDS = 4, 1_000


class _Number(float):
    """A number of a JSON file that knows how it was printed."""

    text: str

    def __new__(cls, text: str) -> _Number:
        """Read it."""
        one = super().__new__(cls, text)
        one.text = text
        return one


def read_submissions(folder: Path, rules: Rules) -> list[Record]:
    """Read the records of a folder, the oldest first.

    Raises:
        PlumblineError: there is no submission in it.
    """
    part = rules.submissions
    assert part is not None
    files = list(files_below(folder, (part.file,)))
    if not files:
        raise PlumblineError(f"{folder}: no {part.file} in it or below it (submissions.file of the rules)")
    records = [_record(path, folder, rules) for path in files if path.name == part.file]
    # The headline breaks ties of a day: the better one came later.
    better = 1 if rules.higher else -1
    records.sort(key=lambda one: (one.date[:10] or "9", better * one.headline.value if one.headline else math.inf))
    for order, record in enumerate(records):
        record.order = order
        _read_logs(record, folder, rules)
    return records


def _record(path: Path, folder: Path, rules: Rules) -> Record:
    part = rules.submissions
    assert part is not None
    name = path.parent.name if path.parent == folder else path.parent.relative_to(folder).as_posix()
    record = Record(name=path.parent.resolve().name if name in (".", "") else name, order=0, place=path.parent)
    try:
        read = json.loads(read_text(path), object_pairs_hook=once, parse_float=_Number)
        if not isinstance(read, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, RecursionError) as error:
        record.unread.append(f"{path.name} cannot be read as JSON ({error})")
        return record
    dated = re.match(r"\d{4}-\d{2}-\d{2}", path.parent.name)
    record.date = str(read.get(part.date) or (dated[0] if dated else ""))[:40]
    record.description = str(read.get("name", ""))[:200]
    there = {key: one for key in part.headline if (one := _printed(read.get(key))) and math.isfinite(one.value)}
    key = next(iter(there), None)
    if key is None:
        record.unread.append(f"{path.name} has no number {' or '.join(map(repr, part.headline))}")
    else:
        record.headline = there[key]
    record.by_seed = next((found for key in part.seeds if (found := _by_seed(read.get(key), rules))), {})
    if len(record.by_seed) > SEEDS:
        record.unread.append(f"{path.name} has {len(record.by_seed):,} seeds, and at most {SEEDS:,} are read")
        record.by_seed = dict(list(record.by_seed.items())[:SEEDS])
    record.printed_n = len(record.by_seed) or None
    record.left_out = _more_seeds(read, record.by_seed, rules.metric)
    return record


def _printed(value: Any) -> Printed | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Also of what is not a number, which the logs cannot give.
    if not abs(value) <= LARGEST:
        return None
    return Printed(float(value), decimals(getattr(value, "text", str(value))))


def _by_seed(given: Any, rules: Rules) -> dict[str, Printed]:
    """The values by seed: an object by seed, each a number or an object with the metric; or a list of such objects."""
    if isinstance(given, list):
        given = {str(each["seed"]): each for each in given if isinstance(each, dict) and "seed" in each}
    found = {}
    for seed, each in given.items() if isinstance(given, dict) else ():
        value = _printed(each.get(rules.metric) if isinstance(each, dict) else each)
        if value is not None:
            found[seed.removeprefix("seed_").removeprefix("seed")[:40]] = value
    return found


def _more_seeds(read: Mapping[str, Any], by_seed: Mapping[str, Printed], metric: str) -> dict[str, float]:
    """Values of seeds that the record says it ran and does not count: an object with all its seeds, and more."""
    if not by_seed:
        return {}
    for each in _objects(read, DEPTH):
        values = {
            seed: _printed(value.get(metric) if isinstance(value, dict) else value) for seed, value in each.items()
        }
        known = {seed: value.value for seed, value in values.items() if value is not None}
        if len(known) == len(each) > len(by_seed) and all(
            seed in known and abs(known[seed] - by_seed[seed].value) < 1e-6 for seed in by_seed
        ):
            return {seed: value for seed, value in known.items() if seed not in by_seed}
    return {}


def _objects(given: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(given, dict) and depth:
        yield given
        for each in given.values():
            yield from _objects(each, depth - 1)


def _read_logs(record: Record, folder: Path, rules: Rules) -> None:
    assert record.place is not None
    try:
        for file in files_below(record.place, rules.log.names):
            try:
                log = read_log(file, rules.forms, rules.other_forms)
            except PlumblineError as error:
                record.unread.append(str(error).replace(f"{folder}/", ""))
                continue
            if log.runs:
                record.logs.append(log)
    except PlumblineError as error:
        record.unread.append(str(error))
    if not record.logs:
        record.unread.append("no log of its folder holds an evaluation")
