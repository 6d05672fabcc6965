"""Checks that no run read what another one had left outside of its own copy: a checkpoint, a cache, a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and

#: By how many seconds the clock of a file system may lag.
_LAG = 0.02
#: Paths that are named.
_NAMED = 3
_REMEDY = (
    "give each run its own: write it below the folder, into what run.output names, or into its temporary folder "
    "(TMPDIR); where it is data that every run may find, plumbline setup-trainer --again takes runs that do"
)


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse where a run read a file that another had written; tell of files that were written and read by none."""
    by_arm = [[run for run in arms.runs_of(arm) if run.read_outside is not None] for arm in _list_arms(arms)]
    for arm, runs in zip(_list_arms(arms), by_arm):
        for reader in runs:
            for path, writer_arm, writer in _find_writers(reader, arms):
                mine = f"seed {reader.seed} of {arms.label(arm)}"
                theirs = f"seed {writer.seed} of {arms.label(writer_arm)}"
                return refuse(f"{mine} read {path}, which {theirs} had left there: {_REMEDY}", path=path)
    if not all(by_arm):
        return not_known("which files outside of their copies the runs read and wrote")
    every = [run for runs in by_arm for run in runs]
    paths = sorted({path for run in every for path in run.written_outside or ()})
    if paths:
        tail = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        return tell(
            f"runs wrote outside of their copies, and none of them read it: {join_with_and(paths[:_NAMED])}{tail}",
            files=len(paths),
        )
    return holds("no Python of a run read what another run had left outside of its copy")


def _list_arms(arms: ComparedArms) -> Sequence[str]:
    return tuple(dict.fromkeys((arms.baseline, arms.candidate)))


def _find_writers(reader: RunEvidence, arms: ComparedArms) -> Iterator[tuple[str, str, RunEvidence]]:
    """Find the files that a run read and another one had left, each with the arm and the run that did."""
    began, ended = _read_times(reader)
    for path, write_time in (reader.read_outside or {}).items():
        for arm in _list_arms(arms):
            for writer in arms.runs_of(arm):
                if writer is reader:
                    continue
                from_, until = _read_times(writer)
                is_earlier = write_time < began and from_ - _LAG <= write_time <= until
                has_written = path in (writer.written_outside or ()) and path not in (reader.written_outside or ())
                if is_earlier or (has_written and from_ < ended):
                    yield path, arm, writer


def _read_times(run: RunEvidence) -> tuple[float, float]:
    """When a run began and ended, in seconds since the epoch; an empty time where that is not known."""
    began = run.start_time
    if began is None or run.seconds is None:
        return float("inf"), float("-inf")
    return began, began + run.seconds
