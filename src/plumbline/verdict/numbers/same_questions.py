"""Compares how two models were asked: prompts, shots, versions of tasks, and what else the files of lm-eval say.

Where what was asked differs, a difference of scores says nothing of the models, and there is no verdict. What differs
without changing a question is told; what the files do not say is named as not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.verdict.formatting import counted, listed, name
from plumbline.verdict.numbers.readers.lm_eval_items import OF_RUN, OF_TASK, LmEvalItem, LmEvalModel
from plumbline.verdict.seed_values import CannotBeJudgedError

#: Which items a run took, and with what program, changes no question: the items themselves are compared.
TOLD = ("limit", "version of lm-eval")
#: What every prompt shows: where all prompts are known to be the same, it need not be known.
IN_PROMPTS = ("shots", "chat template", "system instruction", "few-shot examples as turns", "hash of the task")


@dataclass(frozen=True, kw_only=True, slots=True)
class SameQuestions:
    """What stands beside a verdict: `notes` on what differs or was chosen, and what is not known."""

    notes: tuple[str, ...]
    not_known: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Both in a line; empty where there is nothing to say."""
        unknown = f"Not known, as the files do not say it: {listed(self.not_known)}." if self.not_known else ""
        return " ".join([*self.notes, unknown]).strip()


def compare_questions(names: Sequence[str], ours: LmEvalModel, theirs: LmEvalModel) -> SameQuestions:
    """Compare the tasks that both models were scored on.

    Raises:
        CannotBeJudgedError: a task was not asked in the same way.
    """
    notes, not_known = [*ours.notes, *theirs.notes], dict[str, None]()
    if ours.model and ours.model == theirs.model:
        notes.append(f"Both folders name one model, {name(ours.model[:200])}.")
    for side, model in zip(names, (ours, theirs)):
        if not model.model and model.dates > 1:
            not_known[f"whether the files of {model.dates} dates in {name(side)} are of one model"] = None
    for task in sorted(ours.items.keys() & theirs.items.keys()):
        asked = ours.asked.get(task, {}), theirs.asked.get(task, {})
        known = {what: [each[what] for each in asked if what in each] for what in (*OF_TASK, *OF_RUN)}
        differ = {what: values for what, values in known.items() if len(set(values)) > 1}
        items = {what: _compare_items(what, ours.items[task], theirs.items[task]) for what in ("prompt", "target")}
        others = [f"the {what}s of {counted(number, 'item')}" for what, number in items.items() if number]
        refused = [f"the {what}: {_both(values)}" for what, values in differ.items() if what not in TOLD] + others
        if refused:
            raise CannotBeJudgedError(
                f"{name(names[0])} and {name(names[1])} were not asked the same in {name(task)}, they differ in "
                f"{listed(refused)}; score both with the same version of lm-eval, tasks, shots and templates"
            )
        for what in TOLD:
            if what in differ:
                both = f"{name(names[0])} and {name(names[1])} differ in the {what} of {name(task)}"
                notes.append(f"{both}: {_both(differ[what])}.")
        not_known |= {f"{what}s": None for what, number in items.items() if number is None}
        shown = items["prompt"] == 0
        lacking = [
            what for what, values in known.items() if len(values) < 2 and what not in (*TOLD, "hash of the task")
        ]
        not_known |= dict.fromkeys(what for what in lacking if not (shown and what in IN_PROMPTS))
    return SameQuestions(notes=tuple(notes), not_known=tuple(not_known))


def _compare_items(what: str, ours: dict[str, LmEvalItem], theirs: dict[str, LmEvalItem]) -> int | None:
    """On how many items of a task the prompts, or the targets, differ; None where it is not known of every item."""
    differ, known = 0, True
    for key in ours.keys() & theirs.keys():
        one, other = getattr(ours[key], what), getattr(theirs[key], what)
        if not one or not other or (one.partition(":")[0] != other.partition(":")[0] and what == "prompt"):
            known = False
        else:
            differ += one != other
    return differ if known or differ else None


def _both(values: Sequence[str]) -> str:
    return " and ".join(name(value[:60]) for value in values)
