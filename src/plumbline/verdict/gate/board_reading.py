"""Reads the records of a board and compares each with its own logs: its runs, headline, code, settings, stop step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.stats.repeated_curves import SHARE, find_repeated_curves
from plumbline.verdict.comparability.settings_comparison import (
    NAMED,
    SHOWN,
    compare_runs,
    is_expected,
    is_measured_or_name,
    normalize_value,
)
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.gate.counted_runs import choose_runs
from plumbline.verdict.gate.examined_records import (
    LAST_DIGIT,
    LEFT_OUT,
    NOT_SHOWN,
    TOO_FEW,
    ExaminedRecord,
)
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.stop_steps import examine_stop
from plumbline.verdict.sources.records import Record, read_table
from plumbline.verdict.sources.submissions import read_records
from plumbline.verdict.sources.training_log import LoggedRun, TrainingLog

#: Lines of a code that are compared.
COMPARED = 20_000


def examine(record: Record, rules: Rules, root: Path) -> ExaminedRecord:
    """Examine a record's evidence; `root`: the board's folder, below which files are named."""
    examined = ExaminedRecord(record=record)
    choose_runs(examined, rules, root)
    _examine_runs(examined, rules, root)
    _examine_headline(examined, rules)
    logs = _list_logs(examined)
    _examine_code(examined, logs, rules, root)
    _examine_settings(examined, logs, rules, root)
    _examine_machine(examined, logs)
    examine_stop(examined, rules)
    return examined


def _list_logs(examined: ExaminedRecord) -> list[TrainingLog]:
    files = {each.file for each in examined.values}
    return [log for log in examined.record.logs if log.file in files]


def _examine_runs(examined: ExaminedRecord, rules: Rules, root: Path) -> None:
    record, values = examined.record, examined.values
    lost_runs = [each for each in values if each.value is None]
    if lost_runs:
        files = _format_files(lost_runs, root)
        text = f"{format_count(len(lost_runs), 'run')} of {len(values)} ended without a number ({files})"
        examined.blame("diverged", text)
    if record.left_out:
        every = [*(each.value for each in record.by_seed.values()), *record.left_out.values()]
        finite = [value for value in every if math.isfinite(value)]
        tail = f", but for {len(every) - len(finite)} without a number," if len(finite) < len(every) else ""
        text = (
            f"{len(every)} runs were made and {len(record.by_seed)} are counted; the mean of all{tail} is "
            f"{math.fsum(finite) / len(finite):.6g}"
        )
        examined.blame(LEFT_OUT, text)
    if values and len(values) < rules.runs.least:
        examined.blame(TOO_FEW, f"{format_count(len(values), 'run')}, where {rules.runs.least} are required")
    if values and rules.runs.fixed and len(values) != rules.runs.fixed:
        text = f"{format_count(len(values), 'run')}, where the rules fix {rules.runs.fixed}"
        examined.blame(TOO_FEW, text)
    seeds = [each.seed for each in values if each.seed]
    twice = sorted(seed for seed, times in Counter(seeds).items() if times > 1)
    seeds_text = (
        f"seeds {', '.join(seeds[:12])}{', ...' if len(seeds) > 12 else ''}" if seeds else "no log says its seed"
    )
    if twice:
        text = (
            f"{format_count(len(seeds), 'run')} have {format_count(len(set(seeds)), 'seed')}: seed "
            f"{join_with_and(twice[:5])} stands in several, which are one run each but for the machine's noise; make "
            "runs of other seeds"
        )
        examined.blame("duplicate", text)
    _examine_curves(examined, root)
    numbers = {int(seed) for seed in seeds if len(seed) < 4}
    holes = sorted(set(range(max(numbers) + 1)) - numbers - {0})[:8] if len(numbers) == len(set(seeds)) >= 3 else []
    if holes and max(numbers) < 2 * len(numbers):
        examined.notes.append(f"No run has seed {join_with_and([str(each) for each in holes])}.")
    copies = (
        f"; {format_count(examined.copies, 'copy', 'copies')} of a run in another file, counted once"
        if examined.copies
        else ""
    )
    examined.runs = (
        f"{format_count(len(values), 'run')} from {examined.origin} ({seeds_text}){copies}"
        if values
        else "none could be read"
    )
    examined.runs += f"; {examined.uncounted}" if examined.uncounted else ""
    if record.unread:
        examined.notes.append(f"Not read: {'; '.join(record.unread[:3])}.")
        examined.runs += f"; not read: {quote(record.unread[0][:200])}"
        examined.runs += f" and {len(record.unread) - 1} more" if len(record.unread) > 1 else ""


def _examine_curves(examined: ExaminedRecord, root: Path) -> None:
    """Note runs that repeat another one, as two logs of one seed do, whatever they say of it."""
    runs = [each for each in examined.values if each.curve]
    repeats = find_repeated_curves([each.curve or {} for each in runs])
    if not repeats:
        return
    first = repeats[0]
    files = [runs[place].file for place in (first.earlier, first.later)]
    names = join_with_and([quote(format_path(file, root)) for file in files if file is not None])
    examined.blame(
        "duplicate",
        f"{names} are one run: their mean distance is {first.share:.3f} of the median distance of its runs, and runs "
        f"of different seeds are not below {SHARE:g}; make runs of other seeds",
    )


def _examine_headline(examined: ExaminedRecord, rules: Rules) -> None:
    record = examined.record
    if record.headline is None:
        examined.headline = "none is printed that can be read"
        examined.blame("headline" if record.logs else NOT_SHOWN, examined.headline)
        return
    computed = examined.mean
    if rules.headline.of == "time":
        times = [log.runs[0].evaluations[-1].time for log in record.logs if log.file == record.linked]
        computed = times[0] / rules.headline.divisor if times and times[0] is not None else None
    if computed is None:
        examined.headline = f"{record.headline} is printed, and no log that was read says it"
        if rules.headline.differs == "fault":
            examined.blame(NOT_SHOWN, examined.headline)
        return
    decimals = record.headline.decimals + 2
    logs = "the log" if rules.headline.of == "time" else "the logs"
    text = f"{record.headline} printed, {computed:.{decimals}f} computed from {logs}"
    examined.headline, examined.headline_agrees = text, record.headline.fits(computed)
    if not examined.headline_agrees:
        reason = f"; it is {examined.instead}" if examined.instead else ""
        is_near = abs(computed - record.headline.value) < 2 * 10.0**-record.headline.decimals and not examined.instead
        examined.headline = f"{text}: they differ{' in the last digit' if is_near else ''}{reason}"
        # Where runs are lacking, their mean is not expected to be that of all.
        lacking = {"runs", "truncated", "duplicate"} & {fault.kind for fault in examined.faults}
        if rules.headline.differs == "fault" and not lacking:
            examined.blame(LAST_DIGIT if is_near else "headline", examined.headline)


def _examine_code(examined: ExaminedRecord, logs: Sequence[TrainingLog], rules: Rules, root: Path) -> None:
    if not logs:
        examined.code = "no log, no code"
        return
    bare_logs = [log for log in logs if not log.code]
    by_hash: dict[str, TrainingLog] = {}
    for log in logs:
        if log.code:
            by_hash.setdefault(log.code_hash, log)
    if not by_hash:
        examined.code = f"none of {format_count(len(logs), 'log')} holds its code"
        if rules.same.code_in_log:
            examined.blame("code", examined.code)
        return
    lacking = f"; {format_count(len(bare_logs), 'log')} without code" if bare_logs else ""
    if bare_logs and rules.same.code_in_log:
        examined.blame("code", f"{format_count(len(bare_logs), 'log')} of {len(logs)} without code")
    first, *other_logs = by_hash.values()
    if not other_logs:
        examined.code = f"the same in {format_count(len(logs) - len(bare_logs), 'log')}{lacking}"
        return
    differing: list[str] = []
    for other_log in other_logs:
        first_lines, other_lines = (
            Counter(line.strip() for line in log.code.split("\n")[:COMPARED]) for log in (first, other_log)
        )
        differing += [line for line in ((first_lines - other_lines) + (other_lines - first_lines)) if line]
    lines = [line for line in dict.fromkeys(differing) if not _may_line_differ(line, rules.same.code_may_differ)]
    examined.code = f"{len(by_hash)} versions in {format_count(len(logs), 'log')}{lacking}"
    if lines:
        examined.code += (
            f"; {format_count(len(lines), 'line')} differ, first "
            f"{join_with_and([quote(line[:80]) for line in lines[:SHOWN]])}"
        )
        examined.blame("code", examined.code)
    else:
        examined.code += "; they differ in lines that may, or in blanks"


def _may_line_differ(line: str, markers: Sequence[str]) -> bool:
    return any(word in line.lower() for word in markers)


def _examine_settings(examined: ExaminedRecord, logs: Sequence[TrainingLog], rules: Rules, root: Path) -> None:
    """Compare the settings of the parts of logs that hold nothing else, and those that are printed elsewhere."""
    most_settings = max((len(log.settings) for log in logs), default=0)
    logs_with_settings = [log for log in logs if 2 * len(log.settings) > most_settings]
    keys = dict.fromkeys(key for log in logs_with_settings for key in log.settings)
    differing, other_keys = list[str](), list[str]()
    for key in keys if len(logs_with_settings) > 1 else ():
        values = Counter(log.settings.get(key, "not printed") for log in logs_with_settings)
        if len({normalize_value(value) for value in values}) < 2:
            continue
        if is_expected(key, [[*values]], rules.same.configuration_may_differ):
            continue
        if is_measured_or_name(key):
            other_keys.append(key)
        else:
            differing.append(f"{quote(key)} is {join_with_and([quote(value[:30]) for value in list(values)[:3]])}")
    runs = [each for each in examined.values if each.file is not None]
    comparison = compare_runs(runs, rules.same.configuration_may_differ, root, keys)
    comparison.others = [*other_keys, *comparison.others]
    examined.settings = comparison
    for text in comparison.sizes:
        examined.blame("evaluation", text)
    differing += comparison.settings
    if differing:
        count = format_count(len(differing), "setting differs", "settings differ")
        text = f"{count} between the runs: {'; '.join(differing[:SHOWN])}"
        examined.blame("configuration", text)
    if not runs:
        return
    where = f"in {format_count(len(runs), 'run')}"
    examined.code += f"; {format_count(comparison.same, 'printed setting')} the same {where}" if comparison.same else ""
    examined.code += "" if comparison.same or differing or comparison.sizes else f"; no setting is printed {where}"
    if comparison.aside:
        names = join_with_and([quote(key) for key in comparison.aside[:NAMED]])
        examined.code += f"; set aside, as not of all runs or as measured: {names}"
        examined.code += f" and {len(comparison.aside) - NAMED} more" if len(comparison.aside) > NAMED else ""
    if comparison.others:
        names = join_with_and([quote(key) for key in comparison.others[:NAMED]])
        examined.code += f"; differ too, and are none of the hyper-parameters that are known: {names}"
        examined.code += f" and {len(comparison.others) - NAMED} more" if len(comparison.others) > NAMED else ""
    if comparison.expected:
        examined.code += f"; differ as expected (seeds, times, places, machines): {comparison.expected}"


def _examine_machine(examined: ExaminedRecord, logs: Sequence[TrainingLog]) -> None:
    machines = Counter(log.machine for log in logs if log.machine)
    versions = Counter(", ".join(log.versions) for log in logs if log.versions)
    names = [quote(each) for each in [*list(machines)[:3], *list(versions)[:3]]]
    examined.machine = "; ".join(names) if names else "no log says its machine or its versions"
    if len(machines) > 1 or len(versions) > 1:
        examined.machine += (
            f" ({format_count(len(machines), 'machine')}, {format_count(len(versions), 'set')} of versions)"
        )
    silent = sum(not log.machine for log in logs)
    if names and silent:
        examined.machine += f"; {format_count(silent, 'log')} of {len(logs)} say nothing"


def _format_files(values: Sequence[RunEvidence], root: Path) -> str:
    return join_with_and(
        [quote(format_path(each.file, root)) if each.file else f"seed {quote(each.seed or '')}" for each in values[:3]]
    )


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
    _note_shared_runs(board, folder)
    return board


def find_record(board: list[ExaminedRecord], record: str | None) -> ExaminedRecord:
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


def _note_shared_runs(board: list[ExaminedRecord], folder: Path) -> None:
    """Note each run that another record's folder holds too."""
    ends: dict[tuple[object, str], list[tuple[ExaminedRecord, LoggedRun]]] = {}
    for examined in board:
        shared = dict[str, tuple[int, str]]()
        logged: dict[tuple[Path | None, int | None], LoggedRun]
        logged = {(run.file, run.place): run for log in examined.record.logs for run in log.runs}
        for run in [logged[each.file, each.place] for each in examined.values if (each.file, each.place) in logged]:
            for key in list(run.values.items())[-3:]:
                for other_record, other_run in ends.get(key, ())[:50]:
                    if other_record is not examined and other_run.file != run.file and run.same_as(other_run):
                        times = shared.get(other_record.record.name, (0, ""))[0]
                        shared[other_record.record.name] = (times + 1, format_path(other_run.file, folder))
                        break
                else:
                    continue
                break
            for key in list(run.values.items())[-3:]:
                ends.setdefault(key, []).append((examined, run))
        for record, (times, file) in shared.items():
            examined.notes.append(
                f"{times} of its runs stand in the folder of {quote(record)} too ({quote(file)}, say)."
            )
