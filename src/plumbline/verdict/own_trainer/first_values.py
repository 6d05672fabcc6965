"""Reads the first values that a run printed, of its metric and of its losses: two seeds that have an effect differ in
them, whatever rounding and an unsteady order of sums make of the last value.

Where they do not, the seed of the trainer may be without effect, which is explained here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.escape_sequences import LINE_END, decode
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.requests import Result
from plumbline.verdict.own_trainer.trainer_file import INJECT, MetricPart

#: Where the metric is printed with so many digits, two equal values of different seeds are no accident; where with
#: fewer, as the accuracy of a few hundred examples is, so many are none.
_DIGITS, _EQUAL = 5, 5
_BY_HAND = "let the trainer take its seed from the command line or the environment"

#: Values that are kept, bytes of a log's begin in which they are looked for, and seconds that this may take.
COUNT, BYTES, SECONDS = 5, 2**20, 5.0
#: The part of a value by which rounding makes it differ, at most, in a run's first steps.
ROUNDING = 1e-3
#: Digits behind the point by which equal values of two runs are no accident.
DECIMALS = 3
#: A loss, or another held-out measure, with a fraction: whole numbers behind such a name are counts and settings.
NAMED_VALUE = re.compile(
    r"(?<![A-Za-z])((?:[A-Za-z]+[ _/.-])?(?:loss|nll|ppl|perplexity|bpb|bpc|entropy|acc|accuracy|val|valid|validation))"
    r"[\"'`)\]]{0,3}\s?[:=|]{0,2}\s?[\"'`(\[]{0,3}([-+]?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.])",
    re.IGNORECASE,
)


def read_first_values(part: MetricPart, log: Path, folder: Path) -> list[str]:
    """List the first values that a run printed, or wrote into the file of its metric, each as it stands there.

    A value that is printed again right after itself, as a progress bar does, counts once. Nothing where the reading
    takes too long.
    """
    try:
        with metric.alarm(SECONDS):
            rows = _read_rows(part, folder) if part.json else iter(())
            return [text for _, text in islice(_skip_repeats(_read_log(part, log), rows), COUNT)]
    except PlumblineError:
        return []


def are_one_run(*firsts: Sequence[str] | None) -> bool:
    """Whether runs printed the same first values to all digits, as many as are kept: their seeds had no effect.

    Values of fewer than `DECIMALS` may be equal by chance, and show nothing.
    """
    if any(len(text.lower().partition("e")[0].partition(".")[2]) < DECIMALS for each in firsts for text in each or ()):
        return False
    full_lists = [tuple(each) for each in firsts if each is not None and len(each) == COUNT]
    return len(full_lists) == len(firsts) > 1 and len(set(full_lists)) == 1


def are_apart(*firsts: Sequence[str] | None) -> bool:
    """Whether what runs printed first shows that their seeds had an effect: all printed as many values as are kept, and
    two of them differ in one by more than rounding does.
    """
    if len(firsts) < 2 or any(each is None or len(each) < COUNT for each in firsts):
        return False
    for texts in zip(*(each or () for each in firsts)):
        values = [value for text in texts if (value := metric.number(text)) is not None]
        if max(values) - min(values) > ROUNDING * max(map(abs, values)):
            return True
    return False


def _skip_repeats(*sources: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    last: dict[str, str] = {}
    for source in sources:
        for name, text in source:
            if last.get(name) != text:
                last[name] = text
                yield name, text


def _read_log(part: MetricPart, log: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of each value of a log's begin, in the order of its lines."""
    try:
        with open(log, "rb") as file:
            head = file.read(BYTES)
    except OSError:
        return
    pattern = re.compile(part.pattern) if part.pattern else metric.METRIC_LINE
    for line in LINE_END.split(head):
        text = decode(line[: metric.LONGEST])
        matches = {each.start(2): (each[1].lower(), each[2]) for each in NAMED_VALUE.finditer(text)}
        for match in pattern.finditer(text) if not part.json else ():
            if match[pattern.groups] and (part.pattern or match[1] == part.name):
                matches[match.start(pattern.groups)] = part.called, match[pattern.groups]
        for _, (name, value) in sorted(matches.items()):
            if metric.number(value) is not None:
                yield name, value


def _read_rows(part: MetricPart, folder: Path) -> Iterator[tuple[str, str]]:
    """The values of the file of rows that has the metric."""
    file, _, key = part.json.rpartition(":")
    try:
        with open(folder / file, "rb") as rows_file:
            lines = rows_file.read(BYTES).split(b"\n")
    except OSError:
        return
    rows: list[Any] = metric.read_whole_file(folder / file)[::-1] or [metric.read_row(decode(line)) for line in lines]
    for row in rows:
        for text in (metric.find_below(row, key), *_find_losses(row)):
            if text is not None:
                yield key, str(text)


def _find_losses(row: Any) -> list[str]:
    """The losses of a row of JSON, by the names that they have in a log too."""
    return [each[2] for each in NAMED_VALUE.finditer(json.dumps(row))] if isinstance(row, dict) else []


def explain_no_effect(way: str, result: Result, results: Mapping[int, Result]) -> str:
    """State that the seed has no effect on an arm, by what is known of its runs; empty where it may have one.

    Args:
        way: how the trainer is given its seed (`run.seed` of `plumbline.toml`).
        result: of the run that ended last, and has a value.
        results: of all finished runs of the arm by their seeds, this one among them.
    """
    if way == INJECT and not result.shifted and (result.left_alone or not result.seeded):
        modules = ", ".join(result.left_alone)
        reason = "no Python of it could be reached (write PYTHONPATH=src:$PYTHONPATH where the command sets it)"
        reason = f"{modules} is left alone" if modules else reason
        return f"run.seed: 'inject' has no effect: no call that sets a seed was seen, and {reason}; {_BY_HAND}"
    texts = {each.text for each in results.values()}
    digits = len(re.sub(r"\D|[eE].*", "", result.text).strip("0"))
    same_first = are_one_run(*(each.printed_first for each in results.values()))
    if not same_first and (len(texts) > 1 or len(results) < (2 if digits >= _DIGITS else _EQUAL)):
        return ""
    seeds = ", ".join(map(str, sorted(results)))
    first = ", ".join(result.printed_first or ())
    gave = f"all gave {result.text}" if len(texts) == 1 else f"all printed {first} first"
    none = not any(each.shifted for each in results.values())
    if way == INJECT:
        calls = "no call that sets a seed was seen" if none else f"calls were shifted ({', '.join(result.shifted)})"
        remedy = f"{calls}; {_BY_HAND}"
    else:
        remedy = 'the trainer ignores its seed; where it fixes one in the code, write seed = "inject"'
    return f"run.seed: {way!r} has no effect: seeds {seeds} {gave}; {remedy}"
