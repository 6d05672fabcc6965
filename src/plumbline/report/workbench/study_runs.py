"""Finds the runs of a project's tries among those on disk, by their ids, with their curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from plumbline.core.files import read_json
from plumbline.report import run_page
from plumbline.report.results_on_disk import FoundRun, ResultsOnDisk
from plumbline.report.workbench.made_run import MadeRun, find_uses
from plumbline.report.workbench.printed_curves import FEWEST, LARGEST, Point, average_points
from plumbline.report.workbench.tried_changes import TriedChange

#: Split of the logged rows -> what its loss is called.
QUANTITIES = {"validation": "validation loss", "train": "training loss"}


def gather_study_runs(results: ResultsOnDisk, changes: Sequence[TriedChange]) -> dict[str, MadeRun]:
    """Find every run of these changes that is there, by its id; each has its page in the report from then on."""
    uses, folder = find_uses(changes), Path(results.project.paths.work) / "runs"
    runs = {}
    for path in sorted(folder.glob("*/*/*/*/outcome.json")) if uses else ():
        outcome = read_json(path)
        key = str(outcome.get("run_id", "")) if isinstance(outcome, dict) else ""
        if key in uses and key not in runs:
            change = uses[key][-1]
            own_run = next((run for run in change.runs if run.run_id == key), None)
            run = own_run or next(run for run in change.baseline_runs if run.run_id == key)
            on_disk = results.run(path.parent.relative_to(folder).as_posix())
            runs[key] = MadeRun(
                run=run,
                title=change.title if own_run else change.baseline,
                page=on_disk.page,
                curves=_read_curves(on_disk),
                changes=uses[key],
                metric=change.metric,
            )
    return runs


def _read_curves(run: FoundRun) -> dict[str, list[Point]]:
    path = run.folder / run_page.METRICS
    if not path.exists() or run_page.describe_damage(run, path):
        return {}
    logged = pq.read_table(path, columns=["step", "split", "loss"]).to_pydict()
    rows = list(zip(logged["step"], logged["split"], logged["loss"]))
    curves = {
        name: [
            (float(step), loss) for step, of, loss in rows if of == split and loss is not None and abs(loss) < LARGEST
        ]
        for split, name in QUANTITIES.items()
    }
    return {name: average_points(points) for name, points in curves.items() if len(points) >= FEWEST}
