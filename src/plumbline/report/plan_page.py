"""Builds the report's page of the plan: what each missing target costs, estimated when the report is made.

In a folder that was rebuilt from a bundle nothing is missing and nothing is there to train on: the page says what
the runs took that were packed.
"""

from __future__ import annotations

from typing import Any

from plumbline.plan import plan_page
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import table
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, PageTable, number, text
from plumbline.report.results_on_disk import ResultsOnDisk


def page(found: ResultsOnDisk) -> ReportPage:
    """Build the page of the plan, with a table that can be sorted."""
    content = _took(found) if found.packed else _planned(found)
    return ReportPage(path="plan.html", title="Plan", template="plan.html.j2", content=content, nav="Plan")


def _took(found: ResultsOnDisk) -> dict[str, Any]:
    """What the runs took that were packed, by study and size, as their manifests say."""
    rows = []
    for study in found.studies.values():
        runs = [run for run in found.of_study(study) if run.outcome and run.planned]
        for scale in dict.fromkeys(run.planned.spec.scale for run in runs if run.planned):
            here = [run for run in runs if run.planned and run.planned.spec.scale == scale]
            seconds = [run.manifest["wall_seconds"] for run in here if "wall_seconds" in run.manifest]
            devices = sorted({str(run.manifest.get("device_name", "not recorded")) for run in here})
            rows.append(
                [
                    text(study.name),
                    text(study.scale_label(scale)),
                    number(len(here), str(len(here))),
                    number(sum(seconds) / 60, f"{sum(seconds) / 60:,.1f}") if seconds else text(None),
                    text(", ".join(devices)),
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
    return {"packed": found.packed, "notes": "", "grid": grid, "beside": ""}


def _planned(found: ResultsOnDisk) -> dict[str, Any]:
    priced = estimator(found.project)
    frame = table(priced)
    shown = plan_page.whole(frame)
    columns = list(shown.columns)
    keys = {name: key for name, (key, _) in plan_page.COLUMNS.items()} | {"price": "price"}  # what cells are sorted by
    cells = [
        [
            number(frame[keys[name]][at], str(shown[name][at])) if name in keys else text(shown[name][at])
            for name in columns
        ]
        for at in frame.index
    ]
    # A row is named by its target: the study stands beside it.
    order = [columns.index("target"), *(at for at, name in enumerate(columns) if name != "target")]
    return {
        "packed": None,
        "notes": markdown_page.html("\n\n".join(plan_page.notes(priced, frame))),
        "grid": PageTable(
            id="plan",
            title="What each target costs.",
            heads=[ColumnHead(text=columns[at], numeric=columns[at] in keys) for at in order],
            rows=[[row[at] for at in order] for row in cells],
        ),
        "beside": markdown_page.html(plan_page.beside_papers(priced)),
    }
