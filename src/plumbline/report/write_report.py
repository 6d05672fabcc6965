"""Writes the report of a project: every page of what is there of it."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.project import Project
from plumbline.project.paths import EXPERIMENTS
from plumbline.report import (
    audit_page,
    claims_page,
    plan_page,
    run_page,
    study_front,
    study_page,
)
from plumbline.report.agreement_with_print import MARKS
from plumbline.report.page_frame import PresetWarning, ReportPage
from plumbline.report.report_site import ReportSite, replace_report
from plumbline.report.results_on_disk import ResultsOnDisk, RunCounts
from plumbline.report.study_front import StudyFront
from plumbline.report.workbench import change_pages
from plumbline.report.workbench.study_runs import gather_study_runs
from plumbline.report.workbench.tried_changes import gather_changes
from plumbline.report.workbench.workbench_pages import SCRIPTS, Workbench, link_to


def build_report(planned: Project, out: Path) -> int:
    """Build the report of what is there of a project, and replace the folder of `out` (the first page) by it as a
    whole.

    Returns:
        How many pages it has.
    """
    results = ResultsOnDisk(project=planned)

    def choose_banner(page: ReportPage) -> PresetWarning:
        return PresetWarning.of(results.project.name, results.texts(page.study))

    return replace_report(out, lambda folder: _write_pages(ReportSite(folder=folder, banner=choose_banner), results))


def _write_pages(site: ReportSite, results: ResultsOnDisk) -> int:
    bench = _gather_tries(results)
    runs_shown = {each.name: bench.show_runs(place) for place, each in enumerate(bench.changes)}
    tried = change_pages.build_change_pages(Path(results.project.paths.results), runs_shown)
    fronts = [study_front.gather_front(results, front) for front in results.studies.values()]
    studies = [page for front in fronts for page in study_page.build_pages(results, front)]
    other_pages = [
        claims_page.build_page(results),
        audit_page.build_page(results),
        plan_page.build_page(results),
        _build_tried_page(tried, bench),
    ]
    # Last of all: by now every page has named the runs that it opens.
    runs = run_page.build_index(results)
    pages = [_build_overview(results, fronts, other_pages), *studies, *other_pages, runs, *tried]
    pages += [bench.build_comparison()] if bench.runs else []
    nav = [page for page in pages if page.nav]
    tables_by_run, comparisons_by_run = run_page.find_tables_by_run(results), _find_comparisons(pages)
    tried_by_page = {made_run.page: made_run for made_run in bench.runs.values()}
    for page in pages:
        site.write(page, nav)
    for run in results.runs:
        uses, comparisons = tables_by_run.get(run.key, []), comparisons_by_run.get(run.key, [])
        if made_run := tried_by_page.get(run.page):
            uses = [*uses, *((f"the try of {each.title}", link_to(each)) for each in made_run.changes)]
            comparisons = [*comparisons, ("what was tried", f"compare.html#show={made_run.run.run_id}")]
        site.write(run_page.build_page(results, run, uses, comparisons), nav)
    site.write_assets()
    return len(pages) + len(results.runs)


def _gather_tries(results: ResultsOnDisk) -> Workbench:
    paths = results.project.paths
    try:
        changes, unreadable = gather_changes(Path(paths.verdict_ledger), Path(paths.results) / EXPERIMENTS)
    except PlumblineError as error:  # a ledger that was edited: the rest of the report says what it says
        changes, unreadable = [], [str(error)]
    runs = gather_study_runs(results, changes)
    return Workbench(title=results.project.name, changes=changes, unreadable=unreadable, runs=runs)


def _build_tried_page(tried: list[ReportPage], bench: Workbench) -> ReportPage:
    """The page that lists what was tried; where nothing was, it describes how to."""
    return ReportPage(
        path="verdicts.html",
        title="Verdicts",
        template="verdicts.html.j2",
        content={"verdicts": change_pages.sort_pages(tried), "tried": bench.summarize()},
        nav="Verdicts",
        scripts=SCRIPTS if bench.changes else (),
    )


def _build_overview(results: ResultsOnDisk, fronts: list[StudyFront], other_pages: list[ReportPage]) -> ReportPage:
    """Build the first page from what is shown first of each study of which there is something; `other_pages`: the pages
    of claims, audit, plan and what was tried.
    """
    pages = {page.path: page for page in other_pages}
    begun_fronts = [front for front in fronts if front.is_begun]
    other_fronts = [front for front in fronts if not front.is_begun]
    content = {
        "studies": [
            (front, study_page.describe_figure(front, front.picture) if front.picture else None)
            for front in begun_fronts
        ],
        "count": len(fronts),
        "audits": [front for front in other_fronts if front.audited],
        "unmade": other_fronts,
        "command": results.command(
            "all", studies=", ".join(front.study.name for front in other_fronts if begun_fronts)
        ),
        "counts": RunCounts.of(results.runs),
        "packed": results.packed,
        "marks": MARKS,
        "audited": pages["audit.html"].content["grid"],
    }
    content |= pages["verdicts.html"].content
    return ReportPage(
        path="index.html",
        title="Overview",
        template="index.html.j2",
        content=content,
        nav="Overview",
        scripts=pages["verdicts.html"].scripts,
    )


def _find_comparisons(pages: list[ReportPage]) -> dict[str, list[tuple[str, str]]]:
    """Run's key -> the studies that compare it with their others, each with the link to where it does."""
    links: dict[str, list[tuple[str, str]]] = {}
    for page in pages:
        for key, link in page.content.get("links", {}).items():
            links.setdefault(key, []).append((page.study, link))
    return links
