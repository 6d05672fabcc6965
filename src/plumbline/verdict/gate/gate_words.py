"""Says what was found of a record: eight lines of Markdown for a comment, and one object of numbers.

Everything that others wrote stands in backquotes, in which neither HTML nor a mention of somebody means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plumbline.core.formats import format_count
from plumbline.verdict.formatting import format_freedom, format_value, quote_name, write_table
from plumbline.verdict.formatting import format_p as p_words
from plumbline.verdict.gate.examined_records import NOT_SHOWN, ExaminedRecord
from plumbline.verdict.gate.judgement import BoardNoise, Judgement
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.settings_comparison import SHOWN, SettingsComparison
from plumbline.verdict.judge import BaselineComparison

#: The line that a kind of fault stands in.
_LINE_OF = {
    "headline": "headline",
    "last digit": "headline",
    "metric": "headline",
    "code": "code",
    "configuration": "code",
    "evaluation": "code",
    NOT_SHOWN: "headline",
    "stop step": "stop",
}


def eight_lines(judged: Judgement, rules: Rules) -> list[str]:
    """Say what was found, in eight lines."""
    found = judged.evidence
    return [
        f"**{judged.verdict}**: record {quote_name(found.record.name)} by the rules of {rules.name}: {judged.reason}.",
        f"- Headline: {_with_faults(found, 'headline', found.headline)}.",
        f"- Runs: {_with_faults(found, 'runs', found.runs)}.",
        f"- Code and configuration: {_with_faults(found, 'code', found.code)}.",
        f"- Machine and versions: {found.machine}.",
        f"- Goal: {_goal(judged, rules)}.",
        f"- Predecessor: {_predecessor(judged, rules)}.",
        f"- Stop step: {found.stop}{_stop(judged, rules)}.",
    ]


def _with_faults(found: ExaminedRecord, line: str, said: str) -> str:
    faults = [fault for fault in found.faults if _LINE_OF.get(fault.kind, "runs") == line]
    if not faults:
        return said
    beside = [fault.words for fault in faults if fault.words != said]
    word = "not shown" if all(fault.kind == NOT_SHOWN for fault in faults) else "does not hold"
    return "; ".join([f"**{word}**: {said}" if len(beside) < len(faults) or said else f"**{word}**", *beside])


def _goal(judged: Judgement, rules: Rules) -> str:
    if rules.goal is None:
        return "the rules have none"
    test = judged.goal
    if test is None:
        return judged.why_not_goal or "no run to test"
    more = (
        f"; by the rules' own sigma {rules.goal.sigma:g}, p = {p_words(judged.p_rules)}"
        if judged.p_rules is not None
        else ""
    )
    reached = f"{quote_name(rules.metric)} {format_value(test.mean, test.sigma)} against {rules.goal.value:g}"
    return f"{reached}: {_p(judged, test)}{more}{_one_more(judged)}"


def _one_more(judged: Judgement) -> str:
    if judged.one_more is None:
        return ""
    return f"; with one more run the test holds with a chance of {100 * judged.one_more:.0f} %"


def _p(judged: Judgement, test: BaselineComparison) -> str:
    paid = f", times {judged.tries} for {judged.paid_for}: {p_words(test.p_corrected)}" if judged.tries > 1 else ""
    noise = f"sigma {test.sigma:.3g}, {judged.sigma_words or 'of both'}"
    degrees = "" if math.isinf(test.freedom) else f", {format_freedom(test.freedom)} degrees of freedom"
    return f"p = {p_words(test.p)}{paid} (level {test.terms.alpha:g}; {noise}{degrees})"


def _predecessor(judged: Judgement, rules: Rules) -> str:
    if rules.predecessor is None:
        return "the rules compare with none"
    changed = _changed(judged.changes)
    if judged.before is None or judged.predecessor is None:
        against = f"{quote_name(judged.before.record.name)}: " if judged.before is not None else ""
        return against + (judged.why_not_predecessor or "no run to test") + changed
    test = judged.predecessor
    step, earlier = judged.evidence.record.step, judged.before.record.step
    saved = ""
    if step is not None and earlier is not None and earlier != step:
        saved = f" with {abs(earlier - step):,} steps {'fewer' if step < earlier else 'more'}"
    beside = f"; Welch's p = {p_words(test.welch.p_greater)}" if not math.isnan(test.welch.p_greater) else ""
    beside += "" if judged.before.pools else "; its own logs do not hold what it says"
    beside += "" if rules.predecessor.required else "; not required"
    beside += _one_more(judged) if rules.goal is None else ""
    size = f"{'better' if test.gain >= 0 else 'worse'} by {format_value(abs(test.gain), test.sigma)}"
    return f"{size} than {quote_name(judged.before.record.name)}{saved}: {_p(judged, test)}{beside}{changed}"


def _changed(changes: SettingsComparison) -> str:
    """The printed settings in which a record differs from the one before."""
    said = [f"evaluated on {words}" for words in changes.sizes if words != changes.other_size]
    if changes.settings:
        said.append(
            f"{format_count(len(changes.settings), 'printed setting')} changed, {'; '.join(changes.settings[:SHOWN])}"
        )
    return "".join(f"; {words}" for words in said)


def _stop(judged: Judgement, rules: Rules) -> str:
    found = judged.evidence
    if found.looks > 1 and judged.goal is not None and rules.stopping.chosen == "allowed":
        return f"; the rules allow that, and paid for it would be p = {p_words(min(1.0, found.looks * judged.goal.p))}"
    number = (
        f"; {format_count(len(found.values), 'run')}, of any number by the rules"
        if rules.runs.chosen == "allowed"
        else ""
    )
    return number if found.values and not rules.runs.fixed else ""


def as_json(judged: Judgement, rules: Rules) -> dict[str, Any]:
    """Everything that was found, as an object."""
    found = judged.evidence
    record = found.record
    return {
        "record": record.name,
        "rules": rules.name,
        "verdict": judged.verdict,
        "exit_code": judged.exit_code,
        "reason": judged.reason,
        "date": record.date,
        "headline": None if record.headline is None else record.headline.value,
        "step": record.step,
        "runs": len(found.values),
        "runs_claimed": record.printed_n,
        "copies": found.copies,
        "mean": found.mean,
        "values": [each.value for each in found.values],
        "faults": [{"kind": fault.kind, "words": fault.words} for fault in found.faults],
        "notes": found.notes,
        "unread": record.unread,
        "printed_settings": {
            "the_same": found.settings.same,
            "set_aside": found.settings.aside,
            "others_that_differ": found.settings.others,
            "expected_to_differ": found.settings.expected,
        },
        "changed_settings": [*judged.changes.sizes, *judged.changes.settings],
        "looks": found.looks,
        "tries": judged.tries,
        "goal": judged.goal
        and _test(judged.goal) | {"p_by_the_rules": judged.p_rules, "one_more_run": judged.one_more},
        "why_no_goal": judged.why_not_goal,
        "predecessor": judged.predecessor
        and {"record": judged.before.record.name if judged.before else None}
        | _test(judged.predecessor)
        | {"p_welch": _finite(judged.predecessor.welch.p_greater)},
        "why_no_predecessor": judged.why_not_predecessor,
        "lines": eight_lines(judged, rules),
    }


def _test(test: BaselineComparison) -> dict[str, Any]:
    return {
        "p": test.p,
        "p_paid": test.p_corrected,
        "alpha": test.terms.alpha,
        "gain": test.gain,
        "sigma": test.sigma,
        "freedom": _finite(test.freedom),
        "outcome": str(test.outcome),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def board_table(judged: Sequence[Judgement], rules: Rules, noise: BoardNoise) -> str:
    """All records in a table, the kinds of what does not hold or is not shown, and the board's noise."""
    columns: dict[str, Callable[[Judgement], str]] = {
        "record": lambda each: quote_name(each.evidence.record.name[:60]),
        "headline": lambda each: str(each.evidence.record.headline or ""),
        "runs": lambda each: str(len(each.evidence.values)),
        "verdict": lambda each: each.verdict,
        "fault": lambda each: ", ".join(dict.fromkeys(fault.kind for fault in each.evidence.faults)) or "none",
        "p goal": lambda each: p_words(each.goal.p) if each.goal else "",
        "p predecessor": lambda each: p_words(each.predecessor.p) if each.predecessor else "",
    }
    sigma = noise.sigma
    said = (
        f"Sigma of {rules.metric} pooled over {format_count(noise.records, 'record')}: {sigma.sigma:.3g}, {sigma.df:g} "
        f"degrees of freedom; Bartlett's p that it is one sigma: {p_words(noise.bartlett)}."
        if sigma.sigma
        else "No record has two runs that can be read: no sigma."
    )
    return f"{write_table(columns, judged)}\n\n{said}"
