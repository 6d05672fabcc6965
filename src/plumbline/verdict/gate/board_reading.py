"""Reads the records of a board and compares each with its own logs: its runs, headline, code, settings, stop step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and, quote_name
from plumbline.verdict.gate.examined_records import (
    LAST_DIGIT,
    LEFT_OUT,
    NOT_SHOWN,
    STOP,
    TOO_FEW,
    ExaminedRecord,
    count_runs,
)
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.settings_comparison import (
    NAMED,
    SHOWN,
    is_expected,
    is_measured_or_name,
    over_runs,
    plain,
)
from plumbline.verdict.sources.records import Record, read_table
from plumbline.verdict.sources.submissions import read_records
from plumbline.verdict.sources.training_log import LoggedRun, TrainingLog

#: Lines of a code that are compared.
COMPARED = 20_000


def examine(record: Record, rules: Rules, root: Path) -> ExaminedRecord:
    """Examine a record's evidence; `root`: the board's folder, below which files are named."""
    found = ExaminedRecord(record=record)
    count_runs(found, rules, root)
    _runs(found, rules, root)
    _headline(found, rules)
    logs = _logs_of(found)
    _code(found, logs, rules, root)
    _settings(found, logs, rules, root)
    _machine(found, logs)
    _stop(found, rules)
    return found


def _logs_of(found: ExaminedRecord) -> list[TrainingLog]:
    files = {each.file for each in found.values}
    return [log for log in found.record.logs if log.file in files]


def _runs(found: ExaminedRecord, rules: Rules, root: Path) -> None:
    record, values = found.record, found.values
    lost = [each for each in values if each.value is None]
    if lost:
        words = f"{format_count(len(lost), 'run')} of {len(values)} ended without a number ({_files(lost, root)})"
        found.blame("diverged", words)
    if record.left_out:
        every = [*(each.value for each in record.by_seed.values()), *record.left_out.values()]
        words = (
            f"{len(every)} runs were made and {len(record.by_seed)} are counted; the mean of all is "
            f"{math.fsum(every) / len(every):.6g}"
        )
        found.blame(LEFT_OUT, words)
    if values and len(values) < rules.runs.least:
        found.blame(TOO_FEW, f"{format_count(len(values), 'run')}, where {rules.runs.least} are required")
    if values and rules.runs.fixed and len(values) != rules.runs.fixed:
        words = f"{format_count(len(values), 'run')}, where the rules fix {rules.runs.fixed}"
        found.blame(TOO_FEW, words)
    seeds = [each.seed for each in values if each.seed]
    twice = sorted(seed for seed, times in Counter(seeds).items() if times > 1)
    said = f"seeds {', '.join(seeds[:12])}{', ...' if len(seeds) > 12 else ''}" if seeds else "no log says its seed"
    if twice:
        found.notes.append(f"Seed {join_with_and(twice[:5])} stands in several runs of other values.")
    small = {int(seed) for seed in seeds if len(seed) < 4}
    holes = sorted(set(range(max(small) + 1)) - small - {0})[:8] if len(small) == len(set(seeds)) >= 3 else []
    if holes and max(small) < 2 * len(small):
        found.notes.append(f"No run has seed {join_with_and([str(each) for each in holes])}.")
    copies = (
        f"; {format_count(found.copies, 'copy', 'copies')} of a run in another file, counted once"
        if found.copies
        else ""
    )
    found.runs = (
        f"{format_count(len(values), 'run')} from {found.origin} ({said}){copies}" if values else "none could be read"
    )
    if record.unread:
        found.notes.append(f"Not read: {'; '.join(record.unread[:3])}.")
        found.runs += f"; not read: {quote_name(record.unread[0][:200])}"
        found.runs += f" and {len(record.unread) - 1} more" if len(record.unread) > 1 else ""


def _headline(found: ExaminedRecord, rules: Rules) -> None:
    record = found.record
    if record.headline is None:
        found.headline = "none is printed that can be read"
        found.blame("headline" if record.logs else NOT_SHOWN, found.headline)
        return
    computed = found.mean
    if rules.headline.of == "time":
        times = [log.runs[0].evaluations[-1].time for log in record.logs if log.file == record.linked]
        computed = times[0] / rules.headline.divisor if times and times[0] is not None else None
    if computed is None:
        found.headline = f"{record.headline} is printed, and no log that was read says it"
        if rules.headline.differs == "fault":
            found.blame(NOT_SHOWN, found.headline)
        return
    more = record.headline.decimals + 2
    logs = "the log" if rules.headline.of == "time" else "the logs"
    said = f"{record.headline} printed, {computed:.{more}f} computed from {logs}"
    found.headline, found.headline_agrees = said, record.headline.fits(computed)
    if not found.headline_agrees:
        other = f"; it is {found.instead}" if found.instead else ""
        near = abs(computed - record.headline.value) < 2 * 10.0**-record.headline.decimals and not found.instead
        found.headline = f"{said}: they differ{' in the last digit' if near else ''}{other}"
        # Where runs are lacking, their mean is not expected to be that of all.
        lacking = {"runs", "truncated", "duplicate"} & {fault.kind for fault in found.faults}
        if rules.headline.differs == "fault" and not lacking:
            found.blame(LAST_DIGIT if near else "headline", found.headline)


def _code(found: ExaminedRecord, logs: Sequence[TrainingLog], rules: Rules, root: Path) -> None:
    if not logs:
        found.code = "no log, no code"
        return
    without = [log for log in logs if not log.code]
    by_hash: dict[str, TrainingLog] = {}
    for log in logs:
        if log.code:
            by_hash.setdefault(log.code_hash, log)
    if not by_hash:
        found.code = f"none of {format_count(len(logs), 'log')} holds its code"
        if rules.same.code_in_log:
            found.blame("code", found.code)
        return
    lacking = f"; {format_count(len(without), 'log')} without code" if without else ""
    if without and rules.same.code_in_log:
        found.blame("code", f"{format_count(len(without), 'log')} of {len(logs)} without code")
    first, *others = by_hash.values()
    if not others:
        found.code = f"the same in {format_count(len(logs) - len(without), 'log')}{lacking}"
        return
    differing: list[str] = []
    for other in others:
        one, two = (Counter(line.strip() for line in log.code.split("\n")[:COMPARED]) for log in (first, other))
        differing += [line for line in ((one - two) + (two - one)) if line]
    meant = [line for line in dict.fromkeys(differing) if not _allowed(line, rules.same.code_may_differ)]
    found.code = f"{len(by_hash)} versions in {format_count(len(logs), 'log')}{lacking}"
    if meant:
        found.code += (
            f"; {format_count(len(meant), 'line')} differ, first "
            f"{join_with_and([quote_name(line[:80]) for line in meant[:SHOWN]])}"
        )
        found.blame("code", found.code)
    else:
        found.code += "; they differ in lines that may, or in blanks"


def _allowed(line: str, words: Sequence[str]) -> bool:
    return any(word in line.lower() for word in words)


def _settings(found: ExaminedRecord, logs: Sequence[TrainingLog], rules: Rules, root: Path) -> None:
    """Compare the settings of the parts of logs that hold nothing else, and those that are printed elsewhere."""
    most = max((len(log.settings) for log in logs), default=0)
    told = [log for log in logs if 2 * len(log.settings) > most]
    listed_keys = dict.fromkeys(key for log in told for key in log.settings)
    differing, others = list[str](), list[str]()
    for key in listed_keys if len(told) > 1 else ():
        values = Counter(log.settings.get(key, "not printed") for log in told)
        if len({plain(value) for value in values}) < 2:
            continue
        if is_expected(key, [[*values]], rules.same.configuration_may_differ):
            continue
        if is_measured_or_name(key):
            others.append(key)
        else:
            differing.append(
                f"{quote_name(key)} is {join_with_and([quote_name(value[:30]) for value in list(values)[:3]])}"
            )
    compared = over_runs(found.values, rules.same.configuration_may_differ, root, listed_keys)
    compared.others = [*others, *compared.others]
    found.settings = compared
    for words in compared.sizes:
        found.blame("evaluation", words)
    differing += compared.settings
    if differing:
        differ = format_count(len(differing), "setting differs", "settings differ")
        words = f"{differ} between the runs: {'; '.join(differing[:SHOWN])}"
        found.blame("configuration", words)
    if not found.values:
        return
    where = f"in {format_count(len(found.values), 'run')}"
    found.code += f"; {format_count(compared.same, 'printed setting')} the same {where}" if compared.same else ""
    found.code += "" if compared.same or differing or compared.sizes else f"; no setting is printed {where}"
    if compared.aside:
        few = join_with_and([quote_name(key) for key in compared.aside[:NAMED]])
        found.code += f"; set aside, as not of all runs or as measured: {few}"
        found.code += f" and {len(compared.aside) - NAMED} more" if len(compared.aside) > NAMED else ""
    if compared.others:
        few = join_with_and([quote_name(key) for key in compared.others[:NAMED]])
        found.code += f"; differ too, and are none of the hyper-parameters that are known: {few}"
        found.code += f" and {len(compared.others) - NAMED} more" if len(compared.others) > NAMED else ""
    if compared.expected:
        found.code += f"; differ as expected (seeds, times, places, machines): {compared.expected}"


def _machine(found: ExaminedRecord, logs: Sequence[TrainingLog]) -> None:
    machines = Counter(log.machine for log in logs if log.machine)
    versions = Counter(", ".join(log.versions) for log in logs if log.versions)
    said = [quote_name(each) for each in [*list(machines)[:3], *list(versions)[:3]]]
    found.machine = "; ".join(said) if said else "no log says its machine or its versions"
    if len(machines) > 1 or len(versions) > 1:
        found.machine += (
            f" ({format_count(len(machines), 'machine')}, {format_count(len(versions), 'set')} of versions)"
        )
    silent = sum(not log.machine for log in logs)
    if said and silent:
        found.machine += f"; {format_count(silent, 'log')} of {len(logs)} say nothing"


def _stop(found: ExaminedRecord, rules: Rules) -> None:
    step, runs = found.record.step, found.values
    if step is None or not runs or any(run.planned is None for run in runs):
        ends = {max(run.steps or (), default=0) for run in runs} - {0}
        found.stop = f"by the runs' end, {_span(ends)}" if ends else "no step is claimed"
        return
    if all(run.planned == step for run in runs):
        found.stop = f"step {step:,} is where every run was to end"
        return
    common = set.intersection(*({*(run.steps or ())} - {0} for run in runs))
    found.looks = _close_looks(sorted(common), step)
    found.stop = (
        f"step {step:,} of {_span({run.planned or 0 for run in runs})} planned; one of {found.looks} that were "
        "evaluated more closely than the steps before"
    )
    if rules.stopping.chosen == "refused":
        found.blame(STOP, found.stop)


def _close_looks(steps: Sequence[int], claimed: int) -> int:
    """How many evaluated steps there were to choose from: those closer together than the run's usual distance, and
    those from the claimed one on.
    """
    distances = [later - before for before, later in pairwise(steps)]
    if not distances:
        return 1
    usual = max(Counter(distances), key=lambda each: (Counter(distances)[each], each))
    first = distances.index(usual)
    close = {later for distance, later in zip(distances[first:], steps[first + 1 :]) if distance < usual}
    return max(1, len(close | {step for step in steps if step >= claimed}))


def _span(steps: set[int]) -> str:
    return f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"


def _files(values: Sequence[RunEvidence], root: Path) -> str:
    return join_with_and([quote_name(format_path(each.file or "", root)) for each in values[:3]])


def read_board(folder: Path, rules: Rules) -> list[ExaminedRecord]:
    """Read and examine every record, the oldest first.

    Raises:
        PlumblineError: there is no such folder, or it holds no records as the rules describe them.
    """
    if not folder.is_dir():
        raise PlumblineError(f"{folder}: no such folder; name the one that holds the records")
    if rules.table is not None:
        records = read_table(folder, rules.table, rules.log)
    else:
        assert rules.submissions is not None
        records = read_records(folder, rules.submissions, rules.log, rules.metric, higher=rules.higher)
    if not records:
        raise PlumblineError(f"{folder}: no record in the table that the rules name")
    board = [examine(record, rules, folder) for record in records]
    _across(board, folder)
    return board


def find(board: list[ExaminedRecord], record: str | None) -> ExaminedRecord:
    """The record of a name; the newest where none is given.

    Raises:
        UsageError: none has the name.
    """
    if record is None:
        return board[-1]
    names = [each.record.name for each in board]
    if record not in names:
        raise UsageError(f"--record {record!r} is none of the {len(names)} records{nearest(record, names)}")
    return board[names.index(record)]


def _across(board: list[ExaminedRecord], folder: Path) -> None:
    """Note each run that another record's folder holds too."""
    ends: dict[tuple[object, str], list[tuple[ExaminedRecord, LoggedRun]]] = {}
    for found in board:
        shared = dict[str, tuple[int, str]]()
        logged: dict[tuple[Path | None, int | None], LoggedRun]
        logged = {(run.file, run.place): run for log in found.record.logs for run in log.runs}
        for run in [logged[each.file, each.place] for each in found.values if (each.file, each.place) in logged]:
            for key in list(run.values.items())[-3:]:
                for other, one in ends.get(key, ())[:50]:
                    if other is not found and one.file != run.file and run.same_as(one):
                        times = shared.get(other.record.name, (0, ""))[0]
                        shared[other.record.name] = (times + 1, format_path(one.file, folder))
                        break
                else:
                    continue
                break
            for key in list(run.values.items())[-3:]:
                ends.setdefault(key, []).append((found, run))
        for record, (times, file) in shared.items():
            found.notes.append(
                f"{times} of its runs stand in the folder of {quote_name(record)} too ({quote_name(file)}, say)."
            )
