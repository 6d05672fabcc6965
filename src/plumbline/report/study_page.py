"""Builds a study's pages: a first one, its tables, figures, claims, interpretations and runs, and two runs compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
#: Where a figure says how large it is.
_SIZE = re.compile(r'<svg[^>]*\bviewBox="0 0 (\d+)(?:\.\d+)? (\d+)(?:\.\d+)?"')
#: From the pages in a study's folder to the report's.
ROOT = "../../"


@dataclass(frozen=True, kw_only=True)
class FigureOnPage:
    """A figure on a page: what it shows, its picture and the files offered for download, as paths from the report's
    folder. `size`: the picture's width and height, which keep its place until it is loaded; empty where it has none.
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


def pages(found: ResultsOnDisk, front: StudyFront) -> list[ReportPage]:
    """Build the pages of a study, its first one first, from whatever is there of it."""
    beside = [
        _tables(found, front),
        _figures(front),
        _claims(found, front.study),
        _interpretations(front),
        _runs(found, front.study),
        run_comparison.page(found, front.study),
    ]
    listed = [one for one in beside if one is not None]
    listed.insert(0, _first(found, front, listed))
    tabs = [(one.path, one.content["tab"]) for one in listed]
    return [replace(one, tabs=tabs) for one in listed]


def figure(front: StudyFront, product: StudyProduct) -> FigureOnPage:
    """Describe a figure that is made."""
    along = {source.suffix.removeprefix("."): path for source, path in _along(product).items()}
    svg = product.path.with_suffix(".svg").read_text(encoding="utf-8", errors="replace")
    drawn = _SIZE.search(svg[:4096])
    return FigureOnPage(
        name=product.name,
        title=front.readme.title(product.name),
        picture=along["svg"],
        files=along,
        size=drawn.groups() if drawn else (),
        colour_scale="<image" in svg,  # the bar beside it
    )


def _first(found: ResultsOnDisk, front: StudyFront, beside: list[ReportPage]) -> ReportPage:
    study = front.study
    content: dict[str, Any] = {
        "tab": "Overview",
        "front": front,
        "picture": figure(front, front.picture) if front.picture else None,
        "scales": _scales(study, found.project.name),
        "command": found.command("all", studies=study.name),
        "found": markdown_page.html(front.readme.found if study.code == study.name else ""),
        "beside": [(one.path, one.content["tab"], one.contents) for one in beside],
    }
    return ReportPage(
        path=f"{front.folder}.html",
        title=front.title,
        template="study.html.j2",
        content=content,
        nav=study.name,
        study=study.name,
    )


def _within(study: Study, name: str, tab: str, content: dict[str, Any], **more: Any) -> ReportPage:
    """A page in the study's folder."""
    return ReportPage(
        path=f"studies/{study.name}/{name}.html",
        title=f"{study.name}: {tab.lower()}",
        template=f"study_{name}.html.j2",
        content={"tab": tab, "study": study} | content,
        study=study.name,
        **more,
    )


def _tables(found: ResultsOnDisk, front: StudyFront) -> ReportPage | None:
    sources = RunLinks(found=found, root=ROOT)
    grids, broken, files = [], {}, dict[Path, str]()
    for product in front.products:
        if product.kind != "table" or not product.made:
            continue
        along = _along(product)
        files |= along
        if problem := study_tables.problem(product.path):
            broken[product.name] = problem
            continue
        named = {source.name.removeprefix(f"{product.name}."): f"{ROOT}{path}" for source, path in along.items()}
        grids.append(study_tables.grid(product.path, sources, named))
    if not grids and not broken:
        return None
    contents = [(one.id, f"{one.name}: {one.title}") for one in grids]
    content = {"grids": grids, "broken": broken, "sources": sources}
    return _within(front.study, "tables", "Tables", content, files=files, contents=contents)


def _figures(front: StudyFront) -> ReportPage | None:
    made = [product for product in front.products if product.kind == "figure" and product.made]
    if not made:
        return None
    figures = [figure(front, product) for product in made]
    files = {source: path for product in made for source, path in _along(product).items()}
    contents = [(one.id, f"{one.name}: {one.title}") for one in figures]
    return _within(front.study, "figures", "Figures", {"figures": figures}, files=files, contents=contents)


def _claims(found: ResultsOnDisk, study: Study) -> ReportPage | None:
    sources = RunLinks(found=found, root=ROOT)
    judged = claims_page.grid(found, study, sources, named=False)
    if judged is None:
        return None
    content = {"claims": judged, "verdicts": claims_page.counts(found, study), "sources": sources}
    return _within(study, "claims", "Claims", content, files=claims_page.along(found, study))


def _interpretations(front: StudyFront) -> ReportPage | None:
    product = next((one for one in front.products if one.kind == "interpretations" and one.made), None)
    if product is None:
        return None
    text = product.path.read_text(encoding="utf-8")
    content = {"interpretations": markdown_page.html(text, below=0, prefix="interpretation-")}
    contents = markdown_page.headings(text, prefix="interpretation-", levels=("h2", "h3"))
    return _within(front.study, "interpretations", "Interpretations", content, contents=contents)


def _runs(found: ResultsOnDisk, study: Study) -> ReportPage:
    runs = found.of_study(study)
    return _within(study, "runs", "Runs", {"runs": run_page.grid(runs, ROOT), "counts": RunCounts.of(runs)})


def _along(product: StudyProduct) -> dict[Path, str]:
    """What of a product is copied: source -> path from the report's folder."""
    there = [product.path.with_suffix(ending) for ending in ENDINGS[product.kind]]
    return {source: f"files/{product.study}/{source.name}" for source in there if source.exists()}


def _scales(study: Study, preset: str) -> list[dict[str, Any]]:
    """Name, label here and in the paper of each scale that this preset has."""
    scales = study.definition["scales"]
    return [
        {"name": name, "here": entry[preset]["label"], "paper": entry.get("paper", {}).get("label", "")}
        for name, entry in scales.items()
        if preset in entry
    ]
