"""Writes the report: every page, the style and script next to them, and a copy of each file that a page links to."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from plumbline.core import temporary_files
from plumbline.core.files import name_in_errors, swap_paths
from plumbline.project import Project
from plumbline.report import (
    audit_page,
    claims_page,
    markdown_page,
    plan_page,
    run_page,
    study_front,
    study_page,
    verdict_pages,
)
from plumbline.report.agreement_with_print import MARKS
from plumbline.report.page_frame import PresetWarning, ReportPage
from plumbline.report.page_table import BADGES
from plumbline.report.results_on_disk import ResultsOnDisk, RunCounts
from plumbline.report.study_front import StudyFront

#: Files next to the pages, as they are.
ASSETS = ("report.css", "report.js", "compare.js")


@dataclass(kw_only=True)
class ReportSite:
    """A report while it is made: its pages are written to `folder`, which will replace the old report's as a whole."""

    results: ResultsOnDisk
    folder: Path
    environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        self.environment = Environment(
            loader=PackageLoader("plumbline.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters |= {
            "slug": markdown_page.make_slug,
            "forcss": _escape_for_css,
            "badge": lambda text: BADGES.get(text, "odd"),
            "breakable": _make_breakable,
        }

    def write(self, page: ReportPage, nav: list[ReportPage]) -> None:
        """Write one page, and copy the files that it links to; `nav`: the pages in the list of pages."""
        banner = PresetWarning.of(self.results.project.name, self.results.texts(page.study))
        root = "../" * page.path.count("/")
        content: dict[str, Any] = page.content | {"page": page, "nav": nav, "root": root, "banner": banner}
        path = self.folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with name_in_errors(path):
            path.write_text(self.environment.get_template(page.template).render(content), encoding="utf-8")
        for source, name in page.files.items():
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def build_report(planned: Project, out: Path) -> int:
    """Build the report of what is there of a project, and replace the folder of `out` (the first page) by it as a
    whole.

    Returns:
        How many pages it has.
    """
    results = ResultsOnDisk(project=planned)
    folder = out.parent.resolve()  # where a link leads: the link stays
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_files.make_folder(folder) as new_folder:
        count = _write_pages(ReportSite(results=results, folder=new_folder))
        replace_folder(new_folder, folder)
    return count


def _write_pages(site: ReportSite) -> int:
    results = site.results
    fronts = [study_front.gather_front(results, front) for front in results.studies.values()]
    studies = [page for front in fronts for page in study_page.build_pages(results, front)]
    other_pages = [
        claims_page.build_page(results),
        audit_page.build_page(results),
        plan_page.build_page(results),
        verdict_pages.build_page(results),
    ]
    # Last of all: by now every page has named the runs that it opens.
    runs = run_page.build_index(results)
    pages = [_build_overview(results, fronts, other_pages), *studies, *other_pages, runs]
    pages += verdict_pages.build_verdict_pages(results)
    nav = [page for page in pages if page.nav]
    used, compared = run_page.find_tables_by_run(results), _find_comparisons(pages)
    for page in pages:
        site.write(page, nav)
    for front in results.runs:
        site.write(run_page.build_page(results, front, used.get(front.key, []), compared.get(front.key)), nav)
    for name in ASSETS:
        asset = resources.files("plumbline.report").joinpath("assets", name)
        (site.folder / name).write_text(asset.read_text(encoding="utf-8"), encoding="utf-8")
    return len(pages) + len(results.runs)


def _build_overview(results: ResultsOnDisk, fronts: list[StudyFront], other_pages: list[ReportPage]) -> ReportPage:
    """Build the first page from what is shown first of each study; `other_pages`: the pages of claims, audit, plan and
    verdicts.
    """
    content = {
        "studies": [
            (front, study_page.describe_figure(front, front.picture) if front.picture else None) for front in fronts
        ],
        "counts": RunCounts.of(results.runs),
        "packed": results.packed,
        "marks": MARKS,
        "verdicts": verdict_pages.sort_verdict_pages(results),
        "audited": next(front for front in other_pages if front.path == "audit.html").content["grid"],
    }
    return ReportPage(path="index.html", title="Overview", template="index.html.j2", content=content, nav="Overview")


def _find_comparisons(pages: list[ReportPage]) -> dict[str, list[tuple[str, str]]]:
    """Run's key -> the studies that compare it with their others, each with the link to where it does."""
    links: dict[str, list[tuple[str, str]]] = {}
    for page in pages:
        for key, link in page.content.get("links", {}).items():
            links.setdefault(key, []).append((page.study, link))
    return links


def _escape_for_css(text: str) -> str:
    """A text within a string of a style sheet."""
    return re.sub(r"[^A-Za-z0-9 _./,-]", " ", text)


def _make_breakable(key: str) -> Markup:
    """A path that may be broken after its slashes."""
    return Markup("/<wbr>").join(key.split("/"))


def replace_folder(new_folder: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which `new_folder` may be afterwards.

    A reader sees one or the other, never a mixture. Where folders can change places there is no moment without a
    report; elsewhere (NFS) there is none between two renames, and an old one comes back if the second fails.
    """
    if not folder.exists():
        os.replace(new_folder, folder)
    elif not swap_paths(new_folder, folder):
        gone = temporary_files.choose_path(folder)
        os.replace(folder, gone)
        try:
            os.replace(new_folder, folder)
        except BaseException:
            os.replace(gone, folder)
            raise
        shutil.rmtree(gone, ignore_errors=True)
