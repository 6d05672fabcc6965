"""Gathers what the first page and a study's own one show first: the paper, what was found, and a picture.

Nothing here knows a study by its name. A table states what it found in its first lines, claims in their verdicts, the
audit in its rows; the picture is the figure that sets most printed numbers next to runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.core.csv_text import read_rows
from plumbline.report import claims_page
from plumbline.report.page_table import HtmlCell, text_cell
from plumbline.report.results_on_disk import ResultsOnDisk, RunCounts, StudyProduct
from plumbline.report.study_tables import describe_problem
from plumbline.results.tables import provenance
from plumbline.results.tables.shown_table import PRESET_LINE
from plumbline.specs import study_folders
from plumbline.specs.study_config import Study

#: How many tables stand on the first page with what they found, and how many claims that state more than a number.
TABLES, CLAIMS = 2, 2
#: Headings of a study's README (studies/README.md).
TARGETS, FOUND = "Targets", "What was found here"
#: A row of the table of targets: names in back quotes, and what they show.
_ROW = re.compile(r"^\|\s*(`[^|]+`)\s*\|\s*(.+?)\s*\|$", flags=re.MULTILINE)
#: A file next to the README in brackets, which the report has not.
_BESIDE = re.compile(r"\s*\(\[[^\]]*\]\((?!https?:)[^)]*\)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyReadme:
    """The content of a study's README. `targets`: name -> what it shows; `findings`: Markdown; or empty."""

    targets: dict[str, str]
    findings: str

    def title(self, target: str) -> str:
        """Describe what a target shows, or give its name with spaces if the README does not describe it."""
        target_text = self.targets.get(target, target.replace("_", " "))
        return target_text[:1].upper() + target_text[1:]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimInBrief:
    """A claim on a first page: its text, its verdict as a cell, and why."""

    text: str
    verdict: HtmlCell
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditCount:
    """How many of the audit's checks of a paper's printed numbers do not hold."""

    mismatches: int
    checks: int


@dataclass(frozen=True, kw_only=True)
class StudyFront:
    """What is shown first of a study. `leads`: table -> what it found, if its first lines state that; `picture`:
    the figure that stands for the study, None if none is made; `audited`: None if nothing was.
    """

    study: Study
    readme: StudyReadme
    products: list[StudyProduct]
    runs: RunCounts
    leads: dict[str, list[str]]
    claims: list[ClaimInBrief]
    verdicts: list[tuple[str, int]]
    audited: AuditCount | None
    picture: StudyProduct | None

    @property
    def title(self) -> str:
        """The paper's short title; the study's own where it extends another one, or has no paper."""
        own_paper = self.study.paper if self.study.code == self.study.name else None
        return own_paper.short if own_paper else str(self.study.definition["title"])

    @property
    def brief(self) -> dict[str, list[str]]:
        """The first thing that each of the first tables found."""
        return {table: findings[:1] for table, findings in list(self.leads.items())[:TABLES]}

    @property
    def more(self) -> dict[str, list[str]]:
        """What tables found besides."""
        more_findings = {table: findings[len(self.brief.get(table, ())) :] for table, findings in self.leads.items()}
        return {table: findings for table, findings in more_findings.items() if findings}

    @property
    def folder(self) -> str:
        """Where the study's pages lie in the report, next to its first one."""
        return f"studies/{self.study.name}"

    @property
    def is_begun(self) -> bool:
        """Whether there is a run or a product of it."""
        return self.runs.has_any or any(product.made for product in self.products)

    @property
    def missing(self) -> list[StudyProduct]:
        """The products that are not made."""
        return [product for product in self.products if not product.made]


def gather_front(results: ResultsOnDisk, study: Study) -> StudyFront:
    """Gather what is shown first of a study from whatever is there of it."""
    products = results.products(study)
    return StudyFront(
        study=study,
        readme=read_readme(study),
        products=products,
        runs=RunCounts.of(results.of_study(study)),
        leads=_collect_leads(products),
        claims=_select_claims(results, study),
        verdicts=claims_page.count_verdicts(results, study),
        audited=_count_audit(results, study),
        picture=_choose_picture(study, products),
    )


def _collect_leads(products: list[StudyProduct]) -> dict[str, list[str]]:
    """Table -> what stands above it before its preset, of those that have that."""
    leads = {}
    for product in products:
        if product.kind != "table" or not product.made or describe_problem(product.path):
            continue
        above = provenance.read(product.path)["warnings"]
        place = next((place for place, line in enumerate(above) if line.startswith(PRESET_LINE)), 0)
        if place:
            leads[product.name] = list(above[:place])
    return leads


def _select_claims(results: ResultsOnDisk, study: Study) -> list[ClaimInBrief]:
    """The first claims that rest on runs and state more than a number: of an order, a sign, which methods."""
    rows = [row for row in claims_page.read_claims(results, study) if row["runs"] and row.get("kind") != "number"]
    return [
        ClaimInBrief(
            text=row["text"], verdict=text_cell(claims_page.format_verdict(row["verdict"])), why=row.get("why", "")
        )
        for row in rows[:CLAIMS]
    ]


def _count_audit(results: ResultsOnDisk, study: Study) -> AuditCount | None:
    path = Path(results.project.paths.results) / "audit.csv"
    if study.code != study.name or not path.exists() or not fingerprint_file.is_unchanged(path):
        return None
    with open(path, encoding="utf-8", newline="") as handle:
        verdicts = [row["verdict"] for row in read_rows(handle) if row["study"] == study.name]
    return AuditCount(mismatches=verdicts.count("mismatch"), checks=len(verdicts)) if verdicts else None


def _choose_picture(study: Study, products: list[StudyProduct]) -> StudyProduct | None:
    """The figure that shows runs next to most of the paper's numbers; the first one of several."""
    figures = [product for product in products if product.kind == "figure" and product.made]
    targets = study.definition["targets"]
    return max(
        figures,
        key=lambda figure: (bool(targets[figure.name]["runs"]), len(targets[figure.name]["published"])),
        default=None,
    )


def read_readme(study: Study) -> StudyReadme:
    """Read the README of the folder that a study's tables and figures are from."""
    path = study_folders.folder(study.code, study.root) / study_folders.README
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return StudyReadme(
        targets=_read_targets(_find_section(text, TARGETS)),
        findings=_BESIDE.sub("", _find_section(text, FOUND)).strip(),
    )


def _find_section(text: str, heading: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def _read_targets(section: str) -> dict[str, str]:
    """Read each target with its description."""
    targets: dict[str, str] = {}
    for names, target_text in _ROW.findall(section):
        listed = re.findall(r"`([^`]+)`", names)
        targets |= dict(zip(listed, split_parts(target_text, len(listed)), strict=True))
    return targets


def split_parts(cell: str, count: int) -> list[str]:
    """Split the text of a row of `count` targets, one part each, or the whole for all if it has no such parts."""
    signs = ("; ", ", and ", *([", "] if count > 2 else []))  # between two a comma alone may be anything
    return next((split for sign in signs if len(split := cell.split(sign)) == count), [cell] * count)
