"""Builds the report's first page: how far each study is, what its claims came to, and where to read on."""

from __future__ import annotations

from typing import Any

from plumbline.report import study_page as of_study
from plumbline.report.agreement_with_print import MARKS
from plumbline.report.page_frame import ReportPage
from plumbline.report.results_on_disk import ResultsOnDisk


def page(found: ResultsOnDisk, studies: list[ReportPage], beside: list[ReportPage]) -> ReportPage:
    """Build the first page from the pages of the studies and those `beside` them (claims, audit, plan, verdicts)."""
    entries: list[dict[str, Any]] = []
    for one in studies:
        content = one.content
        products = content["products"]
        entries.append(
            {
                "page": one,
                "title": content["study"].definition["title"],
                "paper": content["study"].paper,
                "states": content["states"],
                "scales": content["scales"],
                "made": sum(product.made for product in products),
                "products": len(products),
                "verdicts": content["verdicts"],
            }
        )
    content = {
        "studies": entries,
        "beside": beside,
        "states": of_study.counted(run.state for run in found.runs),
        "marks": MARKS,
        "audited": next(one for one in beside if one.path == "audit.html").content["grid"],
    }
    return ReportPage(path="index.html", title="Overview", template="index.html.j2", content=content, nav="Overview")
