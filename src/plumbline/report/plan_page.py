"""Builds the report's page of the plan: what each missing target costs, estimated when the report is made.

In a folder that was rebuilt from a bundle nothing is missing and nothing is there to train on: the page shows what
the runs took that were packed.
"""

from __future__ import annotations

from typing import Any

from plumbline.plan import plan_page
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import make_table
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, PageTable, number_cell, text_cell
from plumbline.report.results_on_disk import ResultsOnDisk


def build_page(results: ResultsOnDisk) -> ReportPage:
    """Build the page of the plan, with a table that can be sorted."""
    content = _describe_packed_runs(results) if results.packed else _describe_plan(results)
    return ReportPage(path="plan.html", title="Plan", template="plan.html.j2", content=content, nav="Plan")


def _describe_packed_runs(results: ResultsOnDisk) -> dict[str, Any]:
    """What the runs took that were packed, by study and size, as their manifests state."""
    rows = []
    for study in results.studies.values():
        runs = [run for run in results.of_study(study) if run.outcome and run.planned]
        for scale in dict.fromkeys(run.planned.spec.scale for run in runs if run.planned):
            runs_of_scale = [run for run in runs if run.planned and run.planned.spec.scale == scale]
            seconds = [run.manifest["wall_seconds"] for run in runs_of_scale if "wall_seconds" in run.manifest]
            devices = sorted({str(run.manifest.get("device_name", "not recorded")) for run in runs_of_scale})
            rows.append(
                [
                    text_cell(study.name),
                    text_cell(study.scale_label(scale)),
                    number_cell(len(runs_of_scale), str(len(runs_of_scale))),
                    number_cell(sum(seconds) / 60, f"{sum(seconds) / 60:,.1f}") if seconds else text_cell(None),
                    text_cell(", ".join(devices)),
                ]
            )
    heads = [
        ColumnHead(text="study"),
        ColumnHead(text="size"),
        ColumnHead(text="runs", numeric=True),
        ColumnHead(text="training (minutes)", numeric=True),
        ColumnHead(text="device"),
    ]
    grid = PageTable(id="plan", title="What the runs took.", heads=heads, rows=rows)
    return {"packed": results.packed, "notes": "", "grid": grid, "beside": ""}


def _describe_plan(results: ResultsOnDisk) -> dict[str, Any]:
    estimates = estimator(results.project)
    frame = make_table(estimates)
    page_frame = plan_page.round_table(frame)
    columns = list(page_frame.columns)
    keys = {name: key for name, (key, _) in plan_page.COLUMNS.items()} | {"price": "price"}  # what cells are sorted by
    cells = [
        [
            number_cell(frame[keys[name]][place], str(page_frame[name][place]))
            if name in keys
            else text_cell(page_frame[name][place])
            for name in columns
        ]
        for place in frame.index
    ]
    # A row is named by its target: the study stands next to it.
    order = [columns.index("target"), *(place for place, name in enumerate(columns) if name != "target")]
    return {
        "packed": None,
        "notes": markdown_page.to_html("\n\n".join(plan_page.list_notes(estimates, frame))),
        "grid": PageTable(
            id="plan",
            title="What each target costs.",
            heads=[ColumnHead(text=columns[place], numeric=columns[place] in keys) for place in order],
            rows=[[row[place] for place in order] for row in cells],
        ),
        "beside": markdown_page.to_html(plan_page.compare_with_papers(estimates)),
    }
