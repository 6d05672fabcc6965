"""Builds the page that compares two methods or runs of a study: their curves, gradient norms and scores task by task.

The page holds the curves of all runs of the study that ended, a few hundred points each, and its script draws any two
over each other. Next to them stands a table of what each method reached, for whoever reads without a script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from plumbline.core.run_files import COMPLETED, DIVERGED
from plumbline.report import run_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.results_on_disk import FoundRun, ResultsOnDisk
from plumbline.report.workbench.drawn_curves import DIGITS, embed_json
from plumbline.specs.study_config import Run, Study

#: Points of a curve on the page at most. Of a longer one each point stands for so many steps of equal number: for the
#: mean of their losses, and the largest of their gradient norms.
POINTS = 200
#: The page's scripts, next to the report's own.
SCRIPTS = ("chart.js", "compare.js")

Numbers = list[float | None]


def build_page(results: ResultsOnDisk, study: Study) -> ReportPage | None:
    """Build the page of a study; None if fewer than two of its runs have ended and can be read."""
    entries = [(found_run, run) for key, run in study.runs.items() if _can_be_compared(found_run := results.run(key))]
    if len(entries) < 2:
        return None
    data = _collect_data(results, study, entries)
    content = {
        "tab": "Compare",
        "study": study,
        "data": embed_json(data),
        "grid": _build_table(data),
        "left_out": len(study.runs) - len(entries),
        "links": {found_run.key: make_link(found_run, study.name) for found_run, _ in entries},
    }
    return ReportPage(
        path=f"studies/{study.name}/compare.html",
        title=f"{study.name}: two runs compared",
        template="study_compare.html.j2",
        content=content,
        study=study.name,
        scripts=SCRIPTS,
    )


def make_link(run: FoundRun, study: str) -> str:
    """Give the link from the report's folder to the page where a run is compared."""
    assert run.planned is not None
    spec = run.planned.spec
    return f"studies/{study}/compare.html#scale={spec.scale}&b={spec.method}/{run.last}"


def _can_be_compared(run: FoundRun) -> bool:
    paths = [run.folder / name for name in (run_page.METRICS, run_page.OUTCOME)]
    is_undamaged = all(path.exists() and not run_page.describe_damage(run, path) for path in paths)
    return run.state in (COMPLETED, DIVERGED) and not run.other_spec and is_undamaged


def _collect_data(results: ResultsOnDisk, study: Study, entries: list[tuple[FoundRun, Run]]) -> dict[str, Any]:
    """Scale -> method -> its runs with their curves and scores, as the page's script reads them."""
    scales: dict[str, dict[str, Any]] = {}
    for found_run, run in entries:
        scale, method = run.spec.scale, run.spec.method
        entry = scales.setdefault(scale, {"name": scale, "label": study.scale_label(scale), "methods": {}})
        methods = entry["methods"]
        if method not in methods:
            methods[method] = {"name": method, "label": study.label(method), "runs": []}
        methods[method]["runs"].append(_collect_run(results, found_run, run))
    listed = [entry | {"methods": list(entry["methods"].values())} for entry in scales.values()]
    return {"reference": study.reference or "", "scales": listed}


def _collect_run(results: ResultsOnDisk, found_run: FoundRun, run: Run) -> dict[str, Any]:
    logged = pq.read_table(
        found_run.folder / run_page.METRICS, columns=["step", "split", "loss", "grad_norm"]
    ).to_pydict()
    trained = _select_rows(logged, "train")
    step, loss, norm = bin_rows(trained)
    validated = _select_rows(logged, "validation")
    validation_step, validation_loss, _ = bin_rows(validated)
    return {
        "seed": found_run.last,
        "page": found_run.page,
        "state": found_run.state,
        "final": _round(found_run.outcome.get("validation_loss")),
        "step": step,
        "loss": loss,
        "norm": norm,
        "every": _count_rows_a_point(trained),
        "held_step": validation_step,
        "held": validation_loss,
        "held_every": _count_rows_a_point(validated),
        "tasks": _read_scores(results, found_run, run),
    }


def bin_rows(rows: Sequence[tuple[int, float | None, float | None]]) -> tuple[list[int], Numbers, Numbers]:
    """Bring the rows of a curve (step, loss, gradient norm) to at most `POINTS` points.

    A point of several rows stands at the last one's step. One whose losses are not all finite has no loss, and likewise
    for norms: a gap is not drawn over.
    """
    every = _count_rows_a_point(rows)
    parts = [rows[first : first + every] for first in range(0, len(rows), every)]
    losses = [_summarize_finite([row[1] for row in part], fmean) for part in parts]
    norms = [_summarize_finite([row[2] for row in part], max) for part in parts]
    return [part[-1][0] for part in parts], losses, norms


def _count_rows_a_point(rows: Sequence[object]) -> int:
    """How many rows of a curve one of its points stands for."""
    return max(1, math.ceil(len(rows) / POINTS))


def _summarize_finite(values: list[float | None], summarize: Any) -> float | None:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return _round(summarize(finite)) if len(finite) == len(values) else None


def _round(value: float | None) -> float | None:
    """A number with the digits that the page has; None for none, and for what is not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def _select_rows(logged: dict[str, list[Any]], split: str) -> list[tuple[int, float | None, float | None]]:
    rows = zip(logged["step"], logged["split"], logged["loss"], logged["grad_norm"], strict=True)
    return [(step, loss, norm) for step, split_of_row, loss, norm in rows if split_of_row == split]


def _read_scores(results: ResultsOnDisk, found_run: FoundRun, run: Run) -> dict[str, float | None]:
    """Task -> the run's score by which the study judges it; empty if it has none."""
    path = Path(results.project.paths.scores(run))
    if not run.suite or not path.exists() or run_page.describe_damage(found_run, path):
        return {}
    return {row["task"]: _round(row["value"]) for row in pq.read_table(path).to_pylist() if row["primary"]}


def _build_table(data: dict[str, Any]) -> PageTable:
    """What each method reached: its final loss over its seeds, and how far that is from the reference's."""
    reference = data["reference"]
    heads = [
        ColumnHead(text="method"),
        ColumnHead(text="size"),
        ColumnHead(text="runs", numeric=True),
        ColumnHead(text="validation loss", numeric=True),
        ColumnHead(text="lowest", kind="of its seeds", numeric=True),
        ColumnHead(text="highest", kind="of its seeds", numeric=True),
        ColumnHead(text="minus the reference's", numeric=True),
        ColumnHead(text="diverged", numeric=True),
    ]
    heads = heads if reference else [head for head in heads if head.text != "minus the reference's"]
    rows = []
    for scale in data["scales"]:
        finals = {method["name"]: _list_final_losses(method) for method in scale["methods"]}
        base = fmean(finals[reference]) if finals.get(reference) else None
        for method in scale["methods"]:
            values = finals[method["name"]]
            mean = fmean(values) if values else None
            difference = None if mean is None or base is None or method["name"] == reference else mean - base
            several = len(values) > 1
            cells: list[HtmlCell] = [
                text_cell(method["label"], href=f"#scale={scale['name']}&b={method['name']}"),
                text_cell(scale["label"]),
                number_cell(len(method["runs"]), str(len(method["runs"]))),
                _number_cell(mean, ".4f"),
                _number_cell(min(values) if several else None, ".4f"),
                _number_cell(max(values) if several else None, ".4f"),
                *([_number_cell(difference, "+.4f")] if reference else []),
                number_cell(*_count_diverged(method)),
            ]
            rows.append(cells)
    return PageTable(id="reached", title="What each method reached.", heads=heads, rows=rows)


def _list_final_losses(method: dict[str, Any]) -> list[float]:
    return [run["final"] for run in method["runs"] if run["final"] is not None and run["state"] == COMPLETED]


def _count_diverged(method: dict[str, Any]) -> tuple[int, str]:
    count = sum(run["state"] == DIVERGED for run in method["runs"])
    return count, str(count)


def _number_cell(value: float | None, form: str) -> HtmlCell:
    return number_cell(value, "" if value is None else format(value, form))
