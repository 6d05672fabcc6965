"""Builds the report's first page: each paper with what was found of it and a picture, and where to read on."""

from __future__ import annotations

from plumbline.report import study_page, verdict_pages
from plumbline.report.agreement_with_print import MARKS
from plumbline.report.page_frame import ReportPage
from plumbline.report.results_on_disk import ResultsOnDisk, RunCounts
from plumbline.report.study_front import StudyFront


def page(found: ResultsOnDisk, fronts: list[StudyFront], beside: list[ReportPage]) -> ReportPage:
    """Build the first page from what is said first of each study; `beside`: the pages of claims, audit, plan and
    verdicts.
    """
    content = {
        "studies": [(one, study_page.figure(one, one.picture) if one.picture else None) for one in fronts],
        "counts": RunCounts.of(found.runs),
        "packed": found.packed,
        "marks": MARKS,
        "verdicts": verdict_pages.listed(found),
        "audited": next(one for one in beside if one.path == "audit.html").content["grid"],
    }
    return ReportPage(path="index.html", title="Overview", template="index.html.j2", content=content, nav="Overview")
