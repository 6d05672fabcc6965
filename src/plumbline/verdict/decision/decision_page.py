"""Writes the page of a decision: the sentence to quote, the picture, runs and looks, what was checked, the limits.

Beside the page (`x.md`) stand its picture (`x.svg`) and every number of it (`x.json`); a terminal shows a table of its
runs, a line for each look, and the sentence at the end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from plumbline.core.errors import visible
from plumbline.core.formats import format_count, format_percent, format_seconds
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.verdict.comparability import every_check
from plumbline.verdict.decision.decision_sentences import (
    describe_look,
    describe_margin,
    describe_session,
    format_gain,
    format_interval,
    name_next_step,
)
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision
from plumbline.verdict.decision.run_table import write_run_table
from plumbline.verdict.formatting import format_value, quote, write_grid
from plumbline.verdict.guard_limit import write_guards
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.page import VerdictPage, escape_tags, list_implausible, print_in_terminal, write_list
from plumbline.verdict.picture import DecisionPicture, PicturedArm, PicturedGain, PicturedPath

if TYPE_CHECKING:
    from rich.table import Table

    from plumbline.verdict.decision.budget_course import BudgetDecision

#: Changed files that a terminal lists.
MOST_FILES = 10
#: What the picture shows, where it cannot be seen.
ALT = "values by arm{by_time}, the gain and its interval, the path of T and its boundary"


def write(decision: Decision, page: Path) -> None:
    """Write the page, its picture and its numbers."""
    make_page(decision).write(page, decision_to_json(decision))


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """Every number of a decision as JSON has them: what is not finite is null."""
    import msgspec

    values: dict[str, Any] = json.loads(msgspec.json.encode(decision))
    return values | {"exit_code": decision.exit_code}


def make_picture(decision: Decision) -> DecisionPicture:
    """State what is drawn of a decision."""
    terms, estimate, looks = decision.terms, decision.estimate, decision.looks
    runs_text = f"{len(decision.fresh_values)} fresh" if decision.fresh else str(len(decision.candidate_values))
    against = f"{runs_text} against {len(decision.fresh_baseline_values or decision.baseline_values)} runs"
    gains = [
        PicturedGain(name=terms.candidate, middle=estimate.median, low=estimate.low, high=estimate.high, note=against)
        for estimate in ([estimate] if estimate is not None else [])
    ]
    timed = list(zip_longest((*decision.runs, *decision.fresh), decision.order))
    path = None
    if looks and not terms.claim:
        looks_seen = [(look.k, look.t) for look in looks]
        path = PicturedPath(looks=looks_seen, keep=decision.boundary.keep, discard=decision.boundary.discard)
    return DecisionPicture(
        title=f"{terms.candidate} against {terms.baseline}: {decision.verdict}",
        metric=terms.metric,
        higher=terms.higher,
        arms=[
            _picture_arm(f"fresh: {label}" if fresh else label, arm, runs, fresh=fresh)
            for fresh, runs in ((False, timed[: len(decision.runs)]), (True, timed[len(decision.runs) :]))
            for arm, label in ((BASELINE, terms.baseline), (terms.candidate, terms.candidate))
            if runs or not fresh
        ],
        gains=gains,
        interval=format_percent(estimate.level) if estimate is not None else "",
        asked=terms.minimum_gain,
        path=path,
    )


def _picture_arm(label: str, arm: str, timed: Sequence[tuple[ArmRun, int | None]], *, fresh: bool) -> PicturedArm:
    arm_runs = [(run, place) for run, place in timed if run.arm == arm]
    with_values = [(run, place) for run, place in arm_runs if run.has_value]
    return PicturedArm(
        name=label,
        values=[(str(run.seed), run.value) for run, _ in with_values if run.value is not None],
        lost=[run.outcome for run, _ in arm_runs if not run.has_value],
        baseline=arm == BASELINE,
        fresh=fresh,
        places=[place for _, place in with_values if place is not None],
    )


def make_page(decision: Decision) -> VerdictPage:
    """Make the page of a decision: its sentence, its picture, and its sections as Markdown."""
    terms, picture = decision.terms, make_picture(decision)
    sections = {
        "What decides": describe_test(decision),
        "Runs": _write_runs(decision),
        "Looks": _write_looks(decision) if decision.looks else "",
        "What it cost": _describe_cost(decision),
        "Ledger": escape_tags(decision.ledger),
        "What it stands on": "\n\n".join(
            filter(None, (every_check.write_answers(decision.comparability), write_changes(decision)))
        ),
        "Limits": write_list(list_limits(decision)),
    }
    return VerdictPage(
        title=f"{quote(terms.candidate)} against {quote(terms.baseline)}",
        sentence=decision.sentence,
        told=every_check.list_told(decision.comparability),
        picture=picture,
        alt=ALT.format(by_time=" and in the order of time" if picture.runs_in_order else ""),
        sections=sections,
        checks=decision.checks,
    )


def describe_test(decision: Decision) -> str:
    """State what decides, at which level, and what was settled beforehand."""
    terms, design = decision.terms, decision.terms.design
    direction = "higher" if terms.higher else "lower"
    required = ""
    if terms.minimum_gain:
        required = f" beyond the {format_gain(terms.minimum_gain, decision)} that are required"
    if terms.as_good_as:
        required = f", and the margin of {describe_margin(decision)}, within which it is as good"
    sentences = [
        f"{quote(terms.metric)}, {direction} is better; named before the runs, and it alone decides. T is the gain "
        f"over the mean of the baseline's runs{required}, over its standard error."
    ]
    if decision.equal_seeds:
        sentences.append(EQUAL)
    elif terms.claim:
        sentences.append(f"One test of fresh runs, one-sided at {terms.alpha:g}: the number to claim.")
    else:
        start = f", from run {design.first_keep} on" if design.first_keep > 1 else ""
        sentences.append(
            f"After each run of the candidate, {design.most} at most, T is compared with a boundary that spends a "
            f"one-sided error of {terms.alpha:g} over all looks{start} (group-sequential t, Lan and DeMets 1983; the "
            f"boundary is computed to {decision.boundary.error:.1g})."
        )
        if design.allow_wider:
            sentences.append(
                "Where the candidate's runs spread more widely than the baseline's, Welch's test counts if it is the "
                "stricter one: T is then the one with its p."
            )
        if terms.as_good_as:
            sentences.append(
                f"A candidate is discarded early where a change that does nothing would seldom look so poor: "
                f"{format_percent(design.futility)} of those that do nothing are lost by it."
            )
        elif design.target_gain_sigmas is not None:
            sentences.append(
                f"A candidate is discarded early where a gain of {design.target_gain_sigmas:g} sigma would seldom look "
                f"so poor: {format_percent(design.futility)} of candidates that gain so much are lost by it."
            )
        if terms.fresh_runs:
            sentences.append(
                f"What is kept runs {terms.fresh_runs} times again with fresh seeds, in turn with as many fresh runs "
                f"of the baseline: it stays kept where its runs beat those at {FRESH_LEVEL:g}, one-sided, and their "
                "gain is the one that is told; else it is undecided, and has no second try."
            )
        sentences.append(describe_session(decision))
    if terms.guards:
        sentences.append(
            f"Guards, which can only withhold a keep: {quote(write_guards(terms.guards))} (x: times the baseline's "
            "median; else the difference to its mean)."
        )
    return " ".join(sentences)


def _write_runs(decision: Decision) -> str:
    terms = decision.terms
    other_metrics = list(dict.fromkeys(name for run in (*decision.runs, *decision.fresh) for name in run.others))
    sigma = decision.looks[-1].sigma if decision.looks else math.nan
    rows = [([quote(label)], run) for label, run in _label_runs(decision)]
    table = write_run_table(["run of"], rows, terms.metric, terms.unit, sigma=sigma, other_metrics=other_metrics)
    if other_metrics:
        table += f"\n\nBeside it, not deciding: {', '.join(map(quote, other_metrics))}."
    return table


def _label_runs(decision: Decision) -> list[tuple[str, ArmRun]]:
    """Every run, beside whose it is and what it was made for."""
    labels = {BASELINE: decision.terms.baseline}
    marked = [(run, " (drift check)" if run.sentinel else "") for run in decision.runs]
    marked += [(run, " (fresh)") for run in decision.fresh]
    return [(labels.get(run.arm, decision.terms.candidate) + mark, run) for run, mark in marked]


def _write_looks(decision: Decision) -> str:
    boundary, rows = decision.boundary, []
    for look in decision.looks:
        keep, discard = (_format_bound(side[look.k - 1]) for side in (boundary.keep, boundary.discard))
        values = (format_value(look.gain, look.sigma), f"{look.sigma:.3g}", f"{look.df:g}", f"{look.t:.3f}")
        rows.append((str(look.k), *values, keep, discard, name_next_step(look, boundary)))
    columns = ("runs of the candidate", "difference of the means", "sigma", "degrees of freedom", "T", "kept from")
    flatters = ""
    if (decision.verdict.is_kept or decision.is_unconfirmed) and not decision.terms.claim:
        gain_of = "that of the fresh runs" if decision.fresh else "the estimate after stopping"
        gain_source = f"{gain_of} does: {format_interval(decision)}" if decision.estimate else "`confirm` does"
        flatters = (
            "\n\nThe difference of the means flatters what was kept; it tells no gain. "
            f"{gain_source[0].upper()}{gain_source[1:]}."
        )
    return write_grid((*columns, "discarded up to", "then"), rows) + flatters


def _format_bound(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "none"


def _describe_cost(decision: Decision) -> str:
    ours = sum(run.arm != BASELINE for run in decision.runs)
    base = len(decision.runs) - ours
    sentences = [
        f"{format_count(ours, 'run')} of the candidate, {format_seconds(decision.seconds, 'second')}, against {base} "
        f"of the baseline, {format_seconds(decision.bank_seconds, 'second')}, which the next candidate uses again."
    ]
    if decision.fresh:
        took = format_seconds(sum(run.seconds or 0.0 for run in decision.fresh), "second")
        sentences.append(
            f"{format_count(len(decision.fresh), 'fresh run')} of both arms, {took}: where it is kept, its own are the "
            "next candidate's baseline; else the baseline's join those that it has."
        )
    if decision.fixed_runs is not None:
        sentences.append(
            "Deciding with a number of runs fixed beforehand, with the same chance, would take "
            f"{decision.fixed_runs} of the candidate."
        )
    return " ".join(sentences)


def write_changes(decision: Decision | BudgetDecision) -> str:
    """Write which files and flags differ from the baseline; empty where that is not known."""
    if decision.changed_files is None:
        return ""
    flags = f"Flags that differ: {quote(' '.join(decision.terms.differs))}." if decision.terms.differs else ""
    if not decision.changed_files:
        return f"No file differs from the baseline. {flags}".strip()
    rows = [(quote(name), lines) for name, lines in decision.changed_files.items()]
    return "\n\n".join(filter(None, (write_grid(("changed file", "lines"), rows), flags)))


def describe_changes(decision: Decision) -> str:
    """State in a line which files and flags differ from the baseline; empty where that is not known."""
    changed = decision.changed_files
    if changed is None:
        return ""
    listed = ", ".join(f"{name} {lines}" for name, lines in changed.items())
    if len(changed) > MOST_FILES:
        listed = f"{len(changed):,} files, which the page lists"
    flags = " ".join(decision.terms.differs)
    return f"Changed: {'; '.join(filter(None, (listed or 'no file', flags and f'flags {flags}')))}."


def list_limits(decision: Decision) -> list[str]:
    """List what the decision does not say and what it assumes."""
    terms = decision.terms
    trainer = ", ".join(quote(part) for part in (terms.trainer, terms.budget) if part)
    sentences = [
        f"A decision is about these runs{f': {trainer}' if trainer else ''}. {escape_tags(terms.scope)}".strip()
    ]
    if terms.differs:
        sentences.append(f"{quote(terms.candidate)} differs in its recipe as well: {quote(', '.join(terms.differs))}.")
    sentences += map(escape_tags, decision.notes)
    if not decision.equal_seeds:
        sentences.append(CLAIMED if terms.claim else LOOKED)
    if terms.as_good_as and decision.verdict == Outcome.AS_GOOD and not decision.equal_seeds:
        sentences.append(MARGIN)
    if decision.changed_files is not None:
        sentences.append(UNSEEN)
    if not terms.claim and decision.verdict == Outcome.KEEP:
        sentences.append(FRESH if decision.fresh else STOPPED)
    return sentences


#: What the checks of a folder's commits cannot show.
UNSEEN = (
    "No check shows what code means. Where one program trains and measures, its number may be made up, of another unit "
    "or of other data, or the best of several trainings or moments; a clock of its own may be another one; and runs "
    "have the rights of whoever makes them. The changed files are where that would stand. A program of its own that "
    "measures, named in `metric.fixed`, is out of a change's reach."
)
#: What a keep's number leaves out: by benchmarks/experiment_rules.md, and by simulation in the tests.
STOPPED = (
    "What is kept is no claim yet. Stopping is allowed for in its estimate; that only what looked good is kept is not, "
    "and cannot be: of simulated changes that do nothing those that were kept show 1.2 sigma. `plumbline confirm` runs "
    "it again with fresh seeds, and its number has no such selection."
)
FRESH = (
    "What is kept is no claim yet. Its gain is that of fresh runs of both arms, but only what they confirm is kept: of "
    "simulated changes that do nothing those that were kept show 0.8 sigma. `plumbline confirm` runs both again with "
    "fresh seeds, and its number has no such selection."
)
#: What decides where all values are equal, and what being as good leaves open.
EQUAL = (
    "Both arms were run with the same seeds first, and their values are equal to all digits at each of them, while "
    "those of different seeds differ: no test is needed, and no other run."
)
MARGIN = (
    "As good within a margin is not equal: what is kept so may be worse by nearly the margin, and several such changes "
    "one after another by the sum of theirs."
)


#: What the promised error rests on, and by how much it is off elsewhere by benchmarks/experiment_rules.md.
NORMAL = (
    "The error is as promised if runs are independent and normal, and a change that does nothing spreads as its "
    "baseline does. In simulations (benchmarks/experiment_rules.md) heavy tails (t with 3 degrees of freedom, 5 % "
    "outliers) keep {tails} of changes that do nothing where {level} are promised; a candidate that spreads twice as "
    "wide as its baseline is kept in {wide}."
)
LOOKED = NORMAL.format(tails="3 to 4 %", level="5 %", wide="up to 10 %")
CLAIMED = NORMAL.format(tails="2 %", level="2.5 %", wide="3 %")


def print_decision(decision: Decision, closing: Sequence[str] = (), *, file: TextIO | None = None) -> None:
    """Print what a terminal shows of a decision; into a file or pipe in 80 columns and without colours.

    `closing`: lines after the sentence.
    """
    from rich.text import Text

    looks = [describe_look(look, decision.boundary) for look in decision.looks]
    changes = [line] if (line := describe_changes(decision)) else []
    notes = (
        *changes,
        *decision.notes,
        *list_implausible(decision.checks),
        *every_check.list_told(decision.comparability),
    )
    parts: list[Table | Text] = [_runs_in_terminal(decision), *map(Text, ["", *looks, *([""] if looks else [])])]
    print_in_terminal(parts, notes, decision.sentence, closing, file=file)


def _runs_in_terminal(decision: Decision) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    terms, sigma = decision.terms, decision.looks[-1].sigma if decision.looks else None
    unit = f" ({visible(terms.unit)})" if terms.unit else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("run of", overflow="fold")
    table.add_column("seed", justify="right")
    table.add_column(f"{visible(terms.metric)}{unit}", justify="right", overflow="fold")
    if sigma is not None:
        table.add_column("sigmas better than the baseline's mean", justify="right", overflow="fold", max_width=24)
    values = decision.baseline_values
    mean = sum(value / len(values) for value in values) if values else 0.0
    for label, run in _label_runs(decision):
        cells = [visible(label), str(run.seed), visible(run.outcome), *([""] if sigma is not None else [])]
        if run.has_value and run.value is not None:
            cells[2] = f"{run.value:.6g}" if sigma is None else format_value(run.value, sigma)
            if sigma is not None:
                cells[3] = f"{(run.value - mean if terms.higher else mean - run.value) / sigma:+.1f}"
        table.add_row(*map(Text, cells))
    return table
