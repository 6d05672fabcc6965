"""Remembers by what a folder's candidates are measured, so that an edit of `plumbline.toml` alone does not change that:
which files measure, and what a metric of this name is, with its better direction.
"""

from __future__ import annotations

from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.formatting import name_some
from plumbline.verdict.own_trainer.fixed_files import select

#: What is to be done where it is meant.
_ANEW = "To measure otherwise from now on: rm -r .plumbline, and plumbline setup-trainer"


def record_fixed(baseline: FolderBaseline) -> None:
    """Remember which files measure."""
    recorded = set(baseline.session.get("fixed", ()))
    if new := set(baseline.file.metric.fixed) - recorded:
        baseline.record_session(fixed=sorted(recorded | new))


def record_metric(baseline: FolderBaseline, bank: Bank) -> None:
    """Remember what the metric is, where a run of the baseline has a value of it: until then it may be put right."""
    recorded, called = baseline.session.get("metrics", {}), baseline.file.metric.called
    trainer = baseline.trainer()
    runs = bank.list_runs(trainer.group, baseline.arm.method)
    if called not in recorded and any(run.has_value for run in runs):
        baseline.record_session(metrics=recorded | {called: _describe_metric(baseline)})


def list_lost(baseline: FolderBaseline) -> list[str]:
    """List what of `plumbline.toml` is no longer as it was when the baseline was measured by it."""
    refusals, file = list[str](), baseline.file
    lost_patterns = set(baseline.session.get("fixed", ())) - set(file.metric.fixed)
    wider = [pattern for pattern in file.metric.fixed if not set("?[") & {*pattern}]  # a * has all of another pattern
    if freed := sorted(lost_patterns - {*select(lost_patterns, wider)}):
        refusals.append(
            f"metric.fixed of plumbline.toml has lost {name_some(freed)}, by which the baseline was measured; write it "
            f"again. {_ANEW}"
        )
    now, called = _describe_metric(baseline), file.metric.called
    for key, value in baseline.session.get("metrics", {}).get(called, now).items():
        if now[key] != value:
            refusals.append(
                f"metric.{key} of plumbline.toml is {now[key]!r}, and was {value!r} when `{called}` was measured "
                f"before: write that again, or give the other metric a name of its own (metric.name). {_ANEW}"
            )
    return refusals


def _describe_metric(baseline: FolderBaseline) -> dict[str, str]:
    part = baseline.file.metric
    return {"pattern": part.pattern, "json": part.json, "file": part.file, "direction": part.direction}
