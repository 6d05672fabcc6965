"""Writes the report: every page, the style and script beside them, and a copy of each file that a page links to."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

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

#: Files beside the pages, as they are.
ASSETS = ("report.css", "report.js", "compare.js")


@dataclass(kw_only=True)
class ReportSite:
    """A report while it is made: its pages are written to `folder`, which will replace the old report's as a whole."""

    found: ResultsOnDisk
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
            "slug": markdown_page.slug,
            "forcss": _for_css,
            "badge": lambda words: BADGES.get(words, "odd"),
            "breakable": _breakable,
        }

    def write(self, page: ReportPage, nav: list[ReportPage]) -> None:
        """Write one page, and copy the files that it links to; `nav`: the pages in the list of pages."""
        banner = PresetWarning.of(self.found.project.name, self.found.texts(page.study))
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


def build(planned: Project, out: Path) -> int:
    """Build the report of what is there of a project, and replace the folder of `out` (the first page) by it as a
    whole.

    Returns:
        How many pages it has.
    """
    found = ResultsOnDisk(project=planned)
    folder = out.parent.resolve()  # where a link leads: the link stays
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    site = ReportSite(found=found, folder=made)
    try:
        count = _written(site)
        replace_folder(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return count


def _written(site: ReportSite) -> int:
    found = site.found
    fronts = [study_front.front(found, one) for one in found.studies.values()]
    studies = [page for one in fronts for page in study_page.pages(found, one)]
    beside = [claims_page.page(found), audit_page.page(found), plan_page.page(found), verdict_pages.page(found)]
    # Last of all: by now every page has named the runs that it opens.
    runs = run_page.index(found)
    pages = [_overview(found, fronts, beside), *studies, *beside, runs]
    pages += verdict_pages.verdict_pages(found)
    nav = [page for page in pages if page.nav]
    used, compared = run_page.used(found), _compared(pages)
    for page in pages:
        site.write(page, nav)
    for one in found.runs:
        site.write(run_page.page(found, one, used.get(one.key, []), compared.get(one.key)), nav)
    for name in ASSETS:
        asset = resources.files("plumbline.report").joinpath("assets", name)
        (site.folder / name).write_text(asset.read_text(encoding="utf-8"), encoding="utf-8")
    return len(pages) + len(found.runs)


def _overview(found: ResultsOnDisk, fronts: list[StudyFront], beside: list[ReportPage]) -> ReportPage:
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


def _compared(pages: list[ReportPage]) -> dict[str, list[tuple[str, str]]]:
    """Run's key -> the studies that compare it with their others, each with the link to where it does."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in pages:
        for key, link in page.content.get("links", {}).items():
            found.setdefault(key, []).append((page.study, link))
    return found


def _for_css(words: str) -> str:
    """A text within a string of a style sheet."""
    return re.sub(r"[^A-Za-z0-9 _./,-]", " ", words)


def _breakable(key: str) -> Markup:
    """A path that may be broken after its slashes."""
    return Markup("/<wbr>").join(key.split("/"))


def replace_folder(made: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which `made` may be afterwards.

    A reader sees the one or the other, never a half. Where folders can change places there is no moment without a
    report; elsewhere (NFS) there is none between two renames, and an old one comes back if the second fails.
    """
    if not folder.exists():
        os.replace(made, folder)
    elif not swap_paths(made, folder):
        gone = made.with_name(f"{made.name}.old")
        os.replace(folder, gone)
        try:
            os.replace(made, folder)
        except BaseException:
            os.replace(gone, folder)
            raise
        shutil.rmtree(gone, ignore_errors=True)
