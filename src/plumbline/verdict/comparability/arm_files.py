"""Checks what belongs to an arm: its source alone, and no file that a run wrote."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import name_some


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell which untracked files were left out of the candidate, and which new ones replace an installed module."""
    evidence = arms.evidence
    if evidence.left_out_files is None:
        return not_known("what belongs to the arms besides their source")
    sentences = []
    if evidence.left_out_files:
        sentences.append(
            f"{name_some(evidence.left_out_files)} {'are' if len(evidence.left_out_files) > 1 else 'is'} no part of "
            "the candidate, since runs write files of that name: git add FILE, if it is source"
        )
    if evidence.replaced_modules:
        sentences.append(
            f"{name_some(evidence.replaced_modules)}: new in the candidate, and imported in place of a module of that "
            "name that is installed, by what measures too"
        )
    return tell("; ".join(sentences)) if sentences else holds("the candidate has no untracked file that runs write")
