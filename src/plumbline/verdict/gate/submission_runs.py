"""Finds the runs of a submission in its logs: the printed value of each seed in the log of that seed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from operator import attrgetter
from pathlib import Path

from plumbline.core.files import shown
from plumbline.verdict.formatting import counted, listed, name
from plumbline.verdict.gate.records import CountedRuns, Printed, Record, RunValue
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.training_log import Evaluation, LoggedRun


def of_submission(record: Record, distinct: Sequence[LoggedRun], found: CountedRuns, rules: Rules, root: Path) -> None:
    """Find the runs that a submission counts; where it prints no seeds, those of all its logs."""
    if record.by_seed:
        _by_printed_seed(record, distinct, found, root)
        return
    label = _last_label(distinct)
    chosen = [
        RunValue(run, each.value, each.label)
        for run in distinct
        if (each := next((one for one in reversed(run.evaluations) if label is None or one.label == label), None))
    ]
    found.values, found.origin = tuple(chosen), "all logs of its folder"
    if len(chosen) < len(distinct):
        found.faults.append(
            ("metric", f"{len(distinct) - len(chosen)} of {len(distinct)} logs end with another metric")
        )
    if record.headline is None or not chosen:
        return
    mean = math.fsum(each.value for each in chosen) / len(chosen)
    alone = [each for each in chosen if record.headline.fits(each.value)]
    if not record.headline.fits(mean) and alone and len(chosen) > 1:
        best = (max if rules.higher else min)(each.value for each in chosen)
        which = "the best" if record.headline.fits(best) else "one"
        found.instead = f"{which} of {len(chosen)} runs alone"
    elif not record.headline.fits(mean):
        other = next(
            (one.label for run in distinct for one in run.evaluations if record.headline.fits(one.value)), None
        )
        found.instead = f"the value of {name(other or 'another line')}" if other is not None else ""


def _last_label(runs: Sequence[LoggedRun]) -> str | None:
    """The label of the last line that most runs end with."""
    labels = Counter(run.evaluations[-1].label for run in runs)
    return labels.most_common(1)[0][0] if labels else None


def _by_printed_seed(record: Record, distinct: Sequence[LoggedRun], found: CountedRuns, root: Path) -> None:
    """Find the printed value of each seed in the log of that seed."""
    matched: dict[str, list[tuple[LoggedRun, Evaluation]]] = {}
    without, differing = list[str](), list[str]()
    for seed, printed in record.by_seed.items():
        own = [run for run in distinct if run.seed == seed]
        if not own and seed in found.copied_seeds:
            own = [found.copied_seeds[seed]]
        hits = _hits(own, printed) or _hits([run for run in distinct if not run.seed], printed)
        elsewhere = [] if hits else _elsewhere(seed, record, distinct)
        if hits:
            matched[seed] = hits
        elif elsewhere:
            found.faults.append(
                (
                    "headline",
                    f"the value of seed {name(seed)} stands in a log of another seed, {_where(elsewhere, root)}",
                )
            )
            matched[seed] = elsewhere
        elif own:
            differing.append(seed)
            matched[seed] = [(run, run.evaluations[-1]) for run in own[:1]]
        else:
            without.append(seed)
    if without:
        found.faults.append(("runs", f"no log of seed {listed([name(each) for each in without[:5]])}"))
    label = _common_label(matched, differing, found)
    ended = [
        seed
        for seed in differing
        if label is not None and label not in {x.label for x in matched[seed][0][0].evaluations}
    ]
    for seed in ended:
        where = name(shown(matched[seed][0][0].file, root))
        found.faults.append(("truncated", f"{where} ends before the line {name(label or '')} that the other logs have"))
        differing.remove(seed)
        del matched[seed]
    if differing:
        of = f"{counted(len(differing), 'seed')}, {listed([name(each) for each in differing[:5]])},"
        words = f"the printed value of {of} is in no line of its log that the rules name"
        found.faults.append(("headline", words))
    values, used = [], list[LoggedRun]()
    for hits in matched.values():
        run, one = next(((run, one) for run, one in hits if label is None or one.label == label), hits[0])
        if any(run is each for each in used):
            found.faults.append(("duplicate", f"the values of two seeds are of one run, {name(shown(run.file, root))}"))
            continue
        used.append(run)
        if not math.isfinite(one.value):
            one = hits[0][1]
        values.append(RunValue(run, one.value, one.label))
    found.values, found.origin = tuple(values), "the logs of its seeds"
    spare = len(distinct) - len(used)
    if spare > 0:
        found.notes.append(f"{counted(spare, 'further run')} of its folder are not among its seeds.")


def _elsewhere(seed: str, record: Record, distinct: Sequence[LoggedRun]) -> list[tuple[LoggedRun, Evaluation]]:
    """Where the printed value of a seed stands in the log of another one, to all of its many digits."""
    printed = record.by_seed[seed]
    taken = {other for other, one in record.by_seed.items() if other != seed and one.value == printed.value}
    runs = [run for run in distinct if run.seed and run.seed != seed and run.seed not in taken]
    return _hits(runs, printed) if printed.decimals >= 6 else []


def _where(hits: Sequence[tuple[LoggedRun, Evaluation]], root: Path) -> str:
    return name(shown(hits[0][0].file, root))


def _hits(runs: Sequence[LoggedRun], printed: Printed) -> list[tuple[LoggedRun, Evaluation]]:
    """Where a printed value stands, the most exactly printed first."""
    found = []
    for run in runs:
        begin = bisect_left(run.by_value, printed.value - printed.edge, key=attrgetter("value"))
        for each in takewhile(lambda one: one.value <= printed.value + printed.edge, run.by_value[begin:]):
            found.append((run, each))
    return sorted(found, key=lambda one: -len(one[1].printed))


def _common_label(
    matched: dict[str, list[tuple[LoggedRun, Evaluation]]], differing: Sequence[str], found: CountedRuns
) -> str | None:
    labels = [{one.label for _, one in hits} for seed, hits in matched.items() if seed not in differing]
    if not labels:
        return None
    shared = set.intersection(*labels)
    if not shared:
        names = listed([name(each or "no label") for each in sorted(set.union(*labels))[:4]])
        found.faults.append(
            ("metric", f"the printed values of the seeds are of different lines of their logs: {names}")
        )
        return None
    # The most exact of them.
    first = next(iter(matched.values()))
    return next((one.label for _, one in first if one.label in shared), min(shared))
