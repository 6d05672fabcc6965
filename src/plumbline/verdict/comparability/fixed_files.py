"""Checks that what measures is the baseline's in both arms: the files that a folder names as fixed."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import name_some


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse a candidate that touches a file which measures, tell where its runs read others of them than the
    baseline's do, and name those that are fixed otherwise.
    """
    evidence = arms.evidence
    if changes := _list_changes(arms):
        return refuse(
            f"{'; '.join(changes)}: no run may write there, since that is what it is measured by; take it out of the "
            "code, and restore those files"
        )
    if evidence.fixed_files is None:
        where = "" if evidence.changed_files is None else ": metric.fixed of plumbline.toml names none"
        return not_known(f"which files measure{where}")
    changed = evidence.changed_files or {}
    if touched := [name for name in evidence.fixed_files if name in changed]:
        return refuse(
            f"it changes what measures: {name_some([f'{name} {changed[name]}' for name in touched])} (metric.fixed "
            "of plumbline.toml), and both arms have to be measured alike; take that out (git restore FILE, rm of a new "
            "one; of a screen, the idea). To measure otherwise from now on, commit that alone, rm "
            ".plumbline/baseline.json, and plumbline setup-trainer: what is committed is the baseline then"
        )
    if added := _list_added(arms):
        return refuse(
            f"{'; '.join(added)}, and nothing else does: it changes what measures; take the file out, or name it in "
            "metric.fixed of plumbline.toml, commit that alone and set up again (rm .plumbline/baseline.json)"
        )
    ours, theirs = (_list_readings(arms, arm) for arm in (arms.candidate, arms.baseline))
    sentences = []
    if ours is not None and theirs is not None:
        read_files = {file for _, file in ours[0]}
        if unread_files := sorted({file for _, file in theirs[1]} - read_files):
            return refuse(
                f"no run of {arms.label(arms.candidate)} read {name_some(unread_files)}, as all runs of "
                f"{arms.label(arms.baseline)} do (metric.fixed of plumbline.toml): something else measures it; have "
                "the same files read, or commit that alone and set up again (rm .plumbline/baseline.json)"
            )
        sentences += [
            f"{program} read {file}, which no run of {arms.label(arms.baseline)} does"
            for program, file in sorted(ours[0] - theirs[0])
        ]
        sentences += [
            f"no {program} read {file}, as all runs of {arms.label(arms.baseline)} do"
            for program, file in sorted(theirs[1] - ours[0])
        ]
    if sentences:
        return tell(f"of what measures: {'; '.join(sentences)}")
    return holds(f"both arms have {name_some(evidence.fixed_files)} of the baseline")


def _list_changes(arms: ComparedArms) -> list[str]:
    """What runs changed of what measures them, by arm and file."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for arm in (arms.baseline, arms.candidate):
        for run in arms.runs_of(arm):
            for file in run.changed_fixed or ():
                seeds.setdefault((arms.label(arm), file), []).append(str(run.seed))
    return [f"{file} changed while seed {name_some(each)} of {label} ran" for (label, file), each in seeds.items()]


def _list_added(arms: ComparedArms) -> list[str]:
    """New files of the candidate that programs which measure read, and no program that does not, as where an evaluator
    takes all files of a folder.
    """
    changed, fixed = arms.evidence.changed_files or {}, set(arms.evidence.fixed_files or ())
    new = {name for name, lines in changed.items() if lines.endswith("(new)")}
    readings = {
        (program, file)
        for run in arms.runs_of(arms.candidate)
        for program, files in (run.readers or {}).items()
        for file in new.intersection(files)
    }
    other_files = {file for program, file in readings if program not in fixed}
    return [
        f"{program} read {file}, which is new"
        for program, file in sorted(readings)
        if program in fixed and file not in other_files
    ]


def _list_readings(arms: ComparedArms, arm: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]]] | None:
    """Which program read which file: in any run of an arm, and in all of them; None where that is not known."""
    runs, fixed = [run for run in arms.runs_of(arm) if run.value is not None], set(arms.evidence.fixed_files or ())
    each = [
        {(program, file) for program, files in run.readers.items() for file in files if file in fixed}
        for run in runs
        if run.readers is not None
    ]
    return (set().union(*each), set.intersection(*each)) if each and len(each) == len(runs) else None
