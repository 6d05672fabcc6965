"""The report in a plan: where it is, what it is made from, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.files import canonical_json, sha256_file, sha256_text
from plumbline.project.verdicts import FOLDER as VERDICTS
from plumbline.specs import code

if TYPE_CHECKING:
    from plumbline.specs.study_config import Study

#: The folder of the report below results/ and below a preset's folder of results, and its first page.
FOLDER = "report"
INDEX = f"{FOLDER}/index.html"


class Reported:
    """The part of a `plumbline.project.project.Plan` about the report."""

    config: dict[str, Any]
    studies: dict[str, Study]
    root: Path
    results: str
    products: Callable[[str], list[str]]
    verdict_pages: list[str]

    @property
    def report_index(self) -> str:
        """The report's first page; the others, style, script and copied files lie beside it."""
        return f"{self.results}/{INDEX}"

    def report_files(self) -> list[str]:
        """What it shows: every product of the configured studies, the audit, and the verdict that is asked for."""
        made = [path for study in self.studies for path in self.products(study)]
        verdict = [path for path in self.verdict_pages if path.endswith(".md")]
        return [f"{self.results}/{path}" for path in [*made, "audit.csv", *verdict]]

    def report_made_of(self) -> str:
        """Changes with the pages' code, templates, style and script, with what the studies' YAML says, and with the
        verdicts that are there: which file of one's own asked for one may not be known any more."""
        folder = code.PACKAGE / FOLDER
        files = code.product_files(folder / "__main__.py")
        parts = [path for name in ("templates", "assets") for path in sorted((folder / name).iterdir())]
        parts += sorted((self.root / self.results / VERDICTS).glob("*.md"))
        looks = [[path.name, sha256_file(path)] for path in parts if path.is_file()]
        sheets = [study.sheet for study in self.studies.values()]
        return sha256_text(canonical_json([code.tree_hash(files), looks, sheets]))[:16]
