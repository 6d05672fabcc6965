"""Builds a study's pages: a first one, its tables, figures, claims, printed numbers, interpretations and runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.audit.printed_tables import PrintedTables
from plumbline.report import claims_page, markdown_page, run_comparison, run_page, study_tables
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import RunLinks
from plumbline.report.results_on_disk import ResultsOnDisk, RunCounts, StudyProduct
from plumbline.report.study_front import StudyFront
from plumbline.specs.study_config import Study

#: What can be taken along of a product of each kind. A figure's png is its svg once more, at twice the size.
ENDINGS = {
    "table": (".csv", ".md", ".tex", ".all.tex", ".notes.tex", ".provenance.json"),
    "figure": (".svg", ".csv"),
}
#: Where a figure's file holds its size.
_SIZE = re.compile(r'<svg[^>]*\bviewBox="0 0 (\d+)(?:\.\d+)? (\d+)(?:\.\d+)?"')
#: From the pages in a study's folder to the report's.
ROOT = "../../"


@dataclass(frozen=True, kw_only=True)
class FigureOnPage:
    """A figure on a page: what it shows, its picture and the files offered for download, as paths from the report's
    folder. `size`: the picture's width and height, which keep its place until it is loaded; empty if it has none.
    `colour_scale`: its colours are those of a scale, which is read as it is drawn: on white in the dark, too.
    """

    name: str
    title: str
    picture: str
    files: dict[str, str]
    size: tuple[str, ...] = ()
    colour_scale: bool = False

    @property
    def id(self) -> str:
        """Where the page of figures has it."""
        return f"figure-{self.name}"


def build_pages(results: ResultsOnDisk, front: StudyFront) -> list[ReportPage]:
    """Build the pages of a study, its first one first, from whatever is there of it."""
    other_pages = [
        _build_tables(results, front),
        _build_figures(front),
        _build_claims(results, front.study),
        _build_audit(results, front.study),
        _build_interpretations(front),
        _build_runs(results, front.study),
        run_comparison.build_page(results, front.study),
    ]
    listed = [page for page in other_pages if page is not None]
    listed.insert(0, _build_first(results, front, listed))
    tabs = [(page.path, page.content["tab"]) for page in listed]
    return [replace(page, tabs=tabs) for page in listed]


def describe_figure(front: StudyFront, product: StudyProduct) -> FigureOnPage:
    """Describe a figure that is made."""
    downloads = {source.suffix.removeprefix("."): path for source, path in _list_downloads(product).items()}
    svg = product.path.with_suffix(".svg").read_text(encoding="utf-8", errors="replace")
    size_match = _SIZE.search(svg[:4096])
    return FigureOnPage(
        name=product.name,
        title=front.readme.title(product.name),
        picture=downloads["svg"],
        files=downloads,
        size=size_match.groups() if size_match else (),
        colour_scale="<image" in svg,  # the bar next to it
    )


def _build_first(results: ResultsOnDisk, front: StudyFront, other_pages: list[ReportPage]) -> ReportPage:
    study = front.study
    content: dict[str, Any] = {
        "tab": "Overview",
        "front": front,
        "picture": describe_figure(front, front.picture) if front.picture else None,
        "scales": _describe_scales(study, results.project.name),
        "command": results.command("all", studies=study.name),
        "found": markdown_page.to_html(front.readme.findings if study.code == study.name else ""),
        "beside": [(page.path, page.content["tab"], page.contents) for page in other_pages],
    }
    return ReportPage(
        path=f"{front.folder}.html",
        title=front.title,
        template="study.html.j2",
        content=content,
        nav=study.name,
        study=study.name,
    )


def _build_within_folder(study: Study, name: str, tab: str, content: dict[str, Any], **more: Any) -> ReportPage:
    """A page in the study's folder."""
    return ReportPage(
        path=f"studies/{study.name}/{name}.html",
        title=f"{study.name}: {tab.lower()}",
        template=f"study_{name}.html.j2",
        content={"tab": tab, "study": study} | content,
        study=study.name,
        **more,
    )


def _build_tables(results: ResultsOnDisk, front: StudyFront) -> ReportPage | None:
    sources = RunLinks(results=results, root=ROOT)
    grids, broken, files = [], {}, dict[Path, str]()
    for product in front.products:
        if product.kind != "table" or not product.made:
            continue
        downloads = _list_downloads(product)
        files |= downloads
        if problem := study_tables.describe_problem(product.path):
            broken[product.name] = problem
            continue
        links = {source.name.removeprefix(f"{product.name}."): f"{ROOT}{path}" for source, path in downloads.items()}
        grids.append(study_tables.read_page_table(product.path, sources, links))
    if not grids and not broken:
        return None
    contents = [(table.id, f"{table.name}: {table.title}") for table in grids]
    content = {"grids": grids, "broken": broken, "sources": sources}
    return _build_within_folder(front.study, "tables", "Tables", content, files=files, contents=contents)


def _build_figures(front: StudyFront) -> ReportPage | None:
    products = [product for product in front.products if product.kind == "figure" and product.made]
    if not products:
        return None
    figures = [describe_figure(front, product) for product in products]
    files = {source: path for product in products for source, path in _list_downloads(product).items()}
    contents = [(each.id, f"{each.name}: {each.title}") for each in figures]
    return _build_within_folder(front.study, "figures", "Figures", {"figures": figures}, files=files, contents=contents)


def _build_claims(results: ResultsOnDisk, study: Study) -> ReportPage | None:
    sources = RunLinks(results=results, root=ROOT)
    table = claims_page.build_table(results, study, sources, names_study=False)
    if table is None:
        return None
    content = {"claims": table, "verdicts": claims_page.count_verdicts(results, study), "sources": sources}
    return _build_within_folder(study, "claims", "Claims", content, files=claims_page.list_downloads(results, study))


def _build_audit(results: ResultsOnDisk, study: Study) -> ReportPage | None:
    printed = PrintedTables.read(study.name, study.root, Path(results.project.paths.results) / "audit.csv")
    if printed is None:
        return None
    contents = [(id, name) for id, name, _ in printed.tables]
    return _build_within_folder(study, "audit", "Printed numbers", {"printed": printed}, contents=contents)


def _build_interpretations(front: StudyFront) -> ReportPage | None:
    product = next(
        (candidate for candidate in front.products if candidate.kind == "interpretations" and candidate.made), None
    )
    if product is None:
        return None
    text = product.path.read_text(encoding="utf-8")
    content = {"interpretations": markdown_page.to_html(text, below=0, prefix="interpretation-")}
    contents = markdown_page.list_headings(text, prefix="interpretation-", levels=("h2", "h3"))
    return _build_within_folder(front.study, "interpretations", "Interpretations", content, contents=contents)


def _build_runs(results: ResultsOnDisk, study: Study) -> ReportPage:
    runs = results.of_study(study)
    return _build_within_folder(
        study, "runs", "Runs", {"runs": run_page.build_table(runs, ROOT), "counts": RunCounts.of(runs)}
    )


def _list_downloads(product: StudyProduct) -> dict[Path, str]:
    """What of a product is copied: source -> path from the report's folder."""
    sources = [product.path.with_suffix(ending) for ending in ENDINGS[product.kind]]
    return {source: f"files/{product.study}/{source.name}" for source in sources if source.exists()}


def _describe_scales(study: Study, preset: str) -> list[dict[str, Any]]:
    """Name, label here and in the paper of each scale that this preset has."""
    scales = study.definition["scales"]
    return [
        {"name": name, "here": entry[preset]["label"], "paper": entry.get("paper", {}).get("label", "")}
        for name, entry in scales.items()
        if preset in entry
    ]
