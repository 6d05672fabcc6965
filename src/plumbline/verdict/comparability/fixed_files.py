"""Checks that what measures is the baseline's in both arms: the files that a folder names as fixed."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import name_some


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse a candidate that touches a file which measures, and name those that are fixed otherwise."""
    evidence = arms.evidence
    if evidence.fixed_files is None:
        where = "" if evidence.changed_files is None else ": metric.fixed of plumbline.toml names none"
        return not_known(f"which files measure{where}")
    changed = evidence.changed_files or {}
    if touched := [name for name in evidence.fixed_files if name in changed]:
        return refuse(
            f"it changes what measures: {name_some([f'{name} {changed[name]}' for name in touched])} (metric.fixed "
            "of plumbline.toml), and both arms have to be measured alike; undo that (git restore FILE, rm of a new "
            "one). To measure otherwise from now on, commit that alone, rm .plumbline/baseline.json, and plumbline "
            "setup-trainer: what is committed is the baseline then"
        )
    return holds(f"both arms have {name_some(evidence.fixed_files)} of the baseline")
