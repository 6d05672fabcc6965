"""Builds a study's page: how far it is, its tables, figures, claims, interpretations and runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.report import claims_page, markdown_page, run_page, study_tables
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import RunLinks
from plumbline.report.results_on_disk import STATES, ResultsOnDisk, StudyProduct
from plumbline.specs.study_config import Study

#: What can be taken along of a product of each kind. A figure's png is its svg once more, at twice the size.
ENDINGS = {
    "table": (".csv", ".md", ".tex", ".all.tex", ".notes.tex", ".provenance.json"),
    "figure": (".svg", ".csv"),
}


@dataclass(frozen=True, kw_only=True)
class FigureOnPage:
    """A figure on a study's page: its picture and the files offered for download, as paths from the page."""

    id: str
    name: str
    picture: str
    files: dict[str, str]


def page(found: ResultsOnDisk, study: Study) -> ReportPage:
    """Build the page of a study from whatever is there of it."""
    sources = RunLinks(found=found, root="../")
    products = found.products(study)
    files: dict[Path, str] = {}
    grids, figures, broken = [], [], {}
    for product in products:
        if not product.made or product.kind not in ENDINGS:
            continue
        along = _files(product, files)
        if product.kind == "figure":
            figures.append(_figure(product, along))
        elif problem := study_tables.problem(product.path):
            broken[product.name] = problem
        else:
            grids.append(study_tables.grid(product.path, sources, along))
    judged = claims_page.grid(found, study, sources, named=False)
    files |= claims_page.along(found, study) if judged else {}
    interpretations = next(
        (product for product in products if product.kind == "interpretations" and product.made), None
    )
    text = interpretations.path.read_text(encoding="utf-8") if interpretations else ""
    found_runs = found.of_study(study)
    content: dict[str, Any] = {
        "study": study,
        "states": counted(run_.state for run_ in found_runs),
        "scales": _scales(study, found.project.name),
        "products": products,
        "missing": [product for product in products if not product.made],
        "broken": broken,
        "command": found.command("all", studies=study.name),
        "grids": grids,
        "figures": figures,
        "claims": judged,
        "verdicts": claims_page.counts(found, study),
        "interpretations": markdown_page.html(text, below=2, prefix="interpretation-") if text else "",
        "runs": run_page.grid(found_runs, "../"),
        "sources": sources,
    }
    return ReportPage(
        path=f"studies/{study.name}.html",
        title=study.name,
        template="study.html.j2",
        content=content,
        nav=study.name,
        study=study.name,
        files=files,
    )


def counted(states: Any) -> list[tuple[str, int]]:
    """Count how many runs are in each state, for the states that occur."""
    counts = Counter(states)
    return [(state, counts[state]) for state in STATES if counts[state]]


def _files(product: StudyProduct, files: dict[Path, str]) -> dict[str, str]:
    """Remember what of a product is copied; gives ending -> path from the page."""
    along = {}
    for ending in ENDINGS[product.kind]:
        source = product.path.with_suffix(ending)
        if source.exists():
            files[source] = f"files/{product.study}/{source.name}"
            along[ending.removeprefix(".")] = f"../{files[source]}"
    return along


def _figure(product: StudyProduct, along: dict[str, str]) -> FigureOnPage:
    return FigureOnPage(id=f"figure-{product.name}", name=product.name, picture=along["svg"], files=along)


def _scales(study: Study, preset: str) -> list[dict[str, Any]]:
    """Name, label here and in the paper of each scale that this preset has."""
    scales = study.definition["scales"]
    return [
        {"name": name, "here": entry[preset]["label"], "paper": entry.get("paper", {}).get("label", "")}
        for name, entry in scales.items()
        if preset in entry
    ]
