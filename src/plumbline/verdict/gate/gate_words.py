"""Says what was found of a record: eight lines of Markdown for a comment, and one object of numbers.

Everything that others wrote stands in backquotes, in which neither HTML nor a mention of somebody means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plumbline.core.formats import format_count
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.formatting import format_freedom, format_p, format_value, quote, write_table
from plumbline.verdict.gate.examined_records import NOT_SHOWN, ExaminedRecord
from plumbline.verdict.gate.judgement import BoardNoise, Judgement
from plumbline.verdict.gate.rules import Rules
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


def write_lines(judgement: Judgement, rules: Rules) -> list[str]:
    """State what was found, in eight lines."""
    record = judgement.evidence
    return [
        f"**{judgement.verdict}**: record {quote(record.record.name)} by the rules of {rules.name}: "
        f"{judgement.reason}.",
        f"- Headline: {_add_faults(record, 'headline', record.headline)}.",
        f"- Runs: {_add_faults(record, 'runs', record.runs)}.",
        f"- Code and configuration: {_add_faults(record, 'code', record.code)}.",
        f"- Machine and versions: {record.machine}.",
        f"- Goal: {_describe_goal(judgement, rules)}.",
        f"- Predecessor: {_describe_predecessor(judgement, rules)}.",
        f"- Stop step: {record.stop}{_describe_stop(judgement, rules)}.",
    ]


def _add_faults(record: ExaminedRecord, line: str, text: str) -> str:
    faults = [fault for fault in record.faults if _LINE_OF.get(fault.kind, "runs") == line]
    if not faults:
        return text
    other_texts = [fault.words for fault in faults if fault.words != text]
    word = "not shown" if all(fault.kind == NOT_SHOWN for fault in faults) else "does not hold"
    return "; ".join([f"**{word}**: {text}" if len(other_texts) < len(faults) or text else f"**{word}**", *other_texts])


def _describe_goal(judgement: Judgement, rules: Rules) -> str:
    if rules.goal is None:
        return "the rules have none"
    test = judgement.goal
    if test is None:
        return judgement.why_not_goal or "no run to test"
    by_rules = (
        f"; by the rules' own sigma {rules.goal.sigma:g}, p = {format_p(judgement.p_rules)}"
        if judgement.p_rules is not None
        else ""
    )
    reached = f"{quote(rules.metric)} {format_value(test.mean, test.sigma)} against {rules.goal.value:g}"
    return f"{reached}: {_describe_p(judgement, test)}{by_rules}{_describe_one_more(judgement)}"


def _describe_one_more(judgement: Judgement) -> str:
    if judgement.one_more is None:
        return ""
    return f"; with one more run the test holds with a chance of {100 * judgement.one_more:.0f} %"


def _describe_p(judgement: Judgement, test: BaselineComparison) -> str:
    paid = (
        f", times {judgement.tries} for {judgement.paid_for}: {format_p(test.p_corrected)}"
        if judgement.tries > 1
        else ""
    )
    noise = f"sigma {test.sigma:.3g}, {judgement.sigma_words or 'of both'}"
    degrees = "" if math.isinf(test.freedom) else f", {format_freedom(test.freedom)} degrees of freedom"
    return f"p = {format_p(test.p)}{paid} (level {test.terms.alpha:g}; {noise}{degrees})"


def _describe_predecessor(judgement: Judgement, rules: Rules) -> str:
    if rules.predecessor is None:
        return "the rules compare with none"
    step, earlier_step = judgement.evidence.record.step, judgement.before.record.step if judgement.before else None
    saving = ""
    if step is not None and earlier_step is not None and earlier_step != step:
        saving = f" with {abs(earlier_step - step):,} steps {'fewer' if step < earlier_step else 'more'}"
    sentences = _describe_told(judgement.comparability, without=("finished", *(("equal budget",) if saving else ())))
    if judgement.before is None or judgement.predecessor is None:
        against = f"{quote(judgement.before.record.name)}: " if judgement.before is not None else ""
        return against + (judgement.why_not_predecessor or "no run to test") + sentences
    test = judgement.predecessor
    additions = f"; Welch's p = {format_p(test.welch.p_greater)}" if not math.isnan(test.welch.p_greater) else ""
    additions += "" if judgement.before.pools else "; its own logs do not hold what it says"
    additions += "" if rules.predecessor.required else "; not required"
    additions += _describe_one_more(judgement) if rules.goal is None else ""
    size = f"{'better' if test.gain >= 0 else 'worse'} by {format_value(abs(test.gain), test.sigma)}"
    comparison = f"{size} than {quote(judgement.before.record.name)}{saving}"
    return f"{comparison}: {_describe_p(judgement, test)}{additions}{sentences}"


def _describe_told(answers: Answers, *, without: Sequence[str]) -> str:
    """What the checks tell of a record and the one before it; `without`: those of which a line says it already."""
    return "".join(
        f"; {each.text}" for name, each in answers.items() if each.answer == Answer.TOLD and name not in without
    )


def _describe_stop(judgement: Judgement, rules: Rules) -> str:
    record = judgement.evidence
    if record.looks > 1 and judgement.goal is not None and rules.stopping.chosen == "allowed":
        return (
            "; the rules allow that, and paid for it would be p = "
            f"{format_p(min(1.0, record.looks * judgement.goal.p))}"
        )
    number = (
        f"; {format_count(len(record.values), 'run')}, of any number by the rules"
        if rules.runs.chosen == "allowed"
        else ""
    )
    return number if record.values and not rules.runs.fixed else ""


def judgement_to_json(judgement: Judgement, rules: Rules) -> dict[str, Any]:
    """Everything that was found, as an object."""
    examined = judgement.evidence
    record = examined.record
    return {
        "record": record.name,
        "rules": rules.name,
        "verdict": judgement.verdict,
        "exit_code": judgement.exit_code,
        "reason": judgement.reason,
        "date": record.date,
        "headline": None if record.headline is None else record.headline.value,
        "step": record.step,
        "runs": len(examined.values),
        "runs_claimed": record.printed_n,
        "copies": examined.copies,
        "mean": examined.mean,
        "values": [each.value for each in examined.values],
        "faults": [{"kind": fault.kind, "words": fault.words} for fault in examined.faults],
        "notes": examined.notes,
        "unread": record.unread,
        "printed_settings": {
            "the_same": examined.settings.same,
            "set_aside": examined.settings.aside,
            "others_that_differ": examined.settings.others,
            "expected_to_differ": examined.settings.expected,
        },
        "changed_settings": [*judgement.changes.sizes, *judgement.changes.settings],
        "comparability": every_check.answers_to_json(judgement.comparability),
        "looks": examined.looks,
        "tries": judgement.tries,
        "goal": judgement.goal
        and _test_to_json(judgement.goal) | {"p_by_the_rules": judgement.p_rules, "one_more_run": judgement.one_more},
        "why_no_goal": judgement.why_not_goal,
        "predecessor": judgement.predecessor
        and {"record": judgement.before.record.name if judgement.before else None}
        | _test_to_json(judgement.predecessor)
        | {"p_welch": _drop_infinite(judgement.predecessor.welch.p_greater)},
        "why_no_predecessor": judgement.why_not_predecessor,
        "lines": write_lines(judgement, rules),
    }


def _test_to_json(test: BaselineComparison) -> dict[str, Any]:
    return {
        "p": test.p,
        "p_paid": test.p_corrected,
        "alpha": test.terms.alpha,
        "gain": test.gain,
        "sigma": test.sigma,
        "freedom": _drop_infinite(test.freedom),
        "outcome": str(test.outcome),
    }


def _drop_infinite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_board_table(judgements: Sequence[Judgement], rules: Rules, noise: BoardNoise) -> str:
    """All records in a table, the kinds of what does not hold or is not shown, and the board's noise."""
    columns: dict[str, Callable[[Judgement], str]] = {
        "record": lambda each: quote(each.evidence.record.name[:60]),
        "headline": lambda each: str(each.evidence.record.headline or ""),
        "runs": lambda each: str(len(each.evidence.values)),
        "verdict": lambda each: each.verdict,
        "fault": lambda each: ", ".join(dict.fromkeys(fault.kind for fault in each.evidence.faults)) or "none",
        "p goal": lambda each: format_p(each.goal.p) if each.goal else "",
        "p predecessor": lambda each: format_p(each.predecessor.p) if each.predecessor else "",
    }
    sigma = noise.sigma
    sigma_sentence = (
        f"Sigma of {rules.metric} pooled over {format_count(noise.records, 'record')}: {sigma.sigma:.3g}, {sigma.df:g} "
        f"degrees of freedom; Bartlett's p that it is one sigma: {format_p(noise.bartlett)}."
        if sigma.sigma
        else "No record has two runs that can be read: no sigma."
    )
    return f"{write_table(columns, judgements)}\n\n{sigma_sentence}"
