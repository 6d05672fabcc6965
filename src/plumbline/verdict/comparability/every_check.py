"""Examines a comparison: every check, in the order of pages, and what its answers mean for the verdict.

A new check is a file here and a line in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plumbline.verdict.comparability import carried_state, equal_budget, fresh_runs, processes, seed_beside_rerun
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import write_grid

#: Name of a check, as pages and JSON have it -> what answers it.
CHECKS: Mapping[str, Callable[[ComparedArms], CheckAnswer]] = {
    "processes": processes.check,
    "seeds beside a rerun": seed_beside_rerun.check,
    "nothing is carried": carried_state.check,
    "fresh runs agree": fresh_runs.check,
    "equal budget": equal_budget.check,
}
#: Check -> what it answered.
Answers = Mapping[str, CheckAnswer]


def examine(arms: ComparedArms) -> dict[str, CheckAnswer]:
    """Ask every check about a comparison."""
    return {name: check(arms) for name, check in CHECKS.items()}


def describe_refusal(answers: Answers) -> str:
    """State why there is no verdict, with the remedy; empty if no check refuses."""
    return "; ".join(each.text for each in answers.values() if each.answer == Answer.REFUSES)


def list_told(answers: Answers) -> list[str]:
    """List the sentences that stand beside the verdict."""
    return [_as_sentence(each.text) for each in answers.values() if each.answer == Answer.TOLD]


def write_answers(answers: Answers) -> str:
    """Write the table of a page: each check, its answer and what it says."""
    rows = [(name, str(each.answer), _as_sentence(each.text)) for name, each in answers.items()]
    return write_grid(("check", "answer", "what it says"), rows) if rows else ""


def answers_to_json(answers: Answers) -> dict[str, Any]:
    """Convert answers to JSON values: check -> answer, text, numbers."""
    return {
        name: {"answer": str(each.answer), "text": each.text, "numbers": dict(each.numbers)}
        for name, each in answers.items()
    }


def answers_from_json(values: Mapping[str, Any]) -> dict[str, CheckAnswer]:
    """Read what `answers_to_json`, or a decision's record, holds."""
    return {
        name: CheckAnswer(Answer(each["answer"]), each["text"], each.get("numbers", {}))
        for name, each in values.items()
    }


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
