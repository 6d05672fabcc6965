"""Examines a comparison: every check, in the order of pages, and what its answers mean for the verdict.

A new check is a file here and a line in `CHECKS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from plumbline.verdict.comparability import (
    arm_files,
    carried_state,
    equal_budget,
    finished,
    fixed_files,
    fresh_runs,
    guards,
    held_out,
    independence,
    processes,
    same_questions,
    seed_beside_rerun,
    seeds,
    spread,
    whole_model,
)
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.evidence_table import write_budgets_of_methods, write_evidence_table
from plumbline.verdict.formatting import quote, write_grid

#: Name of a check, as pages and JSON have it -> what answers it.
CHECKS: Mapping[str, Callable[[ComparedArms], CheckAnswer]] = {
    "processes": processes.check,
    "finished": finished.check,
    "seed has an effect": seeds.check,
    "seeds beside a rerun": seed_beside_rerun.check,
    "runs are independent": independence.check,
    "one sigma": spread.check,
    "fresh runs agree": fresh_runs.check,
    "equal budget": equal_budget.check,
    "fixed files": fixed_files.check,
    "arm files": arm_files.check,
    "nothing is carried": carried_state.check,
    "same questions": same_questions.check,
    "whole model": whole_model.check,
    "held-out apart": held_out.check,
}
#: Methods that have a table each on one page, and sentences beside one verdict, at most.
FEW, MOST_TOLD = 3, 6
#: Check -> what it answered.
Answers = Mapping[str, CheckAnswer]


def examine(arms: ComparedArms) -> dict[str, CheckAnswer]:
    """Ask every check about a comparison, and the guards where it has some."""
    answers = {name: check(arms) for name, check in CHECKS.items()}
    return answers | ({guards.NAME: guards.check(arms)} if arms.guards else {})


def describe_refusal(answers: Answers) -> str:
    """State why there is no verdict, with the remedy; empty if no check refuses."""
    return "; ".join(each.text for each in answers.values() if each.answer == Answer.REFUSES)


def list_told(answers: Answers) -> list[str]:
    """List the sentences that stand beside the verdict."""
    return [_as_sentence(each.text) for each in answers.values() if each.answer == Answer.TOLD]


def write_answers(answers: Answers) -> str:
    """Write what a page says of a comparison: what its runs took and how they fall, and each check that answers.

    Checks that know nothing are listed in one line; the JSON beside the page has their reasons.
    """
    not_known = [name for name, each in answers.items() if each.answer == Answer.NOT_KNOWN]
    rows = [
        (name, str(each.answer), _as_sentence(each.text)) for name, each in answers.items() if name not in not_known
    ]
    grid = write_grid(("check", "answer", "what it says"), rows) if rows else ""
    note = f"Not known here: {', '.join(not_known)}." if not_known else ""
    return "\n\n".join(filter(None, (write_evidence_table(answers), grid, note)))


def list_told_of_methods(answers: Mapping[str, Answers]) -> list[str]:
    """List the sentences that stand beside the verdicts on several methods, each once; `answers`: by method."""
    sentences = [*dict.fromkeys(sentence for each in answers.values() for sentence in list_told(each))]
    excess = len(sentences) - MOST_TOLD
    return sentences if excess <= 0 else [*sentences[:MOST_TOLD], f"The page has {excess} more of these."]


def write_answers_of_methods(answers: Mapping[str, Answers]) -> str:
    """Write what the verdicts on several methods stand on: tables of each of a few, else what is told and refused.

    `answers`: by method. What is not known stands there too, once for all methods of which it is not.
    """
    if len(answers) <= FEW:
        parts = []
        for method, of_method in answers.items():
            parts += [*([f"{quote(method)}:"] if len(answers) > 1 else []), write_answers(of_method)]
        return "\n\n".join(filter(None, parts))
    rows, not_known = [], Counter[tuple[str, str]]()
    for method, of_method in answers.items():
        for name, each in of_method.items():
            if each.answer in (Answer.TOLD, Answer.REFUSES):
                rows.append((quote(method), name, str(each.answer), _as_sentence(each.text)))
            not_known[name, each.text] += each.answer == Answer.NOT_KNOWN
    table = write_grid(("method", "check", "answer", "what it says"), rows) if rows else ""
    gaps = [
        f"{name}{'' if number == len(answers) else f' of {number} methods'} ({text})"
        for (name, text), number in not_known.items()
        if number
    ]
    note = f"Not known here: {'; '.join(gaps)}. Every other check holds." if gaps else "Every other check holds."
    return "\n\n".join(filter(None, (write_budgets_of_methods(answers), table, note)))


def answers_to_json(answers: Answers) -> dict[str, Any]:
    """Convert answers to JSON values: check -> answer, text, numbers."""
    return {
        name: {"answer": str(each.answer), "text": each.text, "numbers": dict(each.numbers)}
        for name, each in answers.items()
    }


def answers_from_json(values: Mapping[str, Any]) -> dict[str, CheckAnswer]:
    """Read what `answers_to_json`, or a decision's record, holds: the checks in the order of pages."""
    places = {name: place for place, name in enumerate(CHECKS)}
    return {
        name: CheckAnswer(Answer(each["answer"]), each["text"], each.get("numbers", {}))
        for name, each in sorted(values.items(), key=lambda entry: places.get(entry[0], len(places)))
    }


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
