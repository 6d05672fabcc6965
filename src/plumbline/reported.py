"""The report in a plan: where it is, what it is made from, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.files import canonical_json, sha256_text
from plumbline.own_verdict import FOLDER as VERDICTS
from plumbline.specs import code

if TYPE_CHECKING:
    from plumbline.specs.sheet import Study

#: The folder of the report below results/ and below a preset's folder of results, and its first page.
FOLDER = "report"
INDEX = f"{FOLDER}/index.html"


class Reported:
    """The part of a `plumbline.project.Plan` about the report."""

    config: dict[str, Any]
    studies: dict[str, Study]
    root: Path
    results: str
    products: Callable[[str], list[str]]

    @property
    def report_index(self) -> str:
        """The report's first page; the others, style, script and copied files lie beside it."""
        return f"{self.results}/{INDEX}"

    def report_files(self) -> list[str]:
        """What it shows: every product of the configured studies, the audit, and verdicts that are there."""
        made = [f"{self.results}/{path}" for study in self.studies for path in self.products(study)]
        verdicts = sorted((self.root / self.results / VERDICTS).glob("*.md"))
        return [*made, f"{self.results}/audit.csv", *(path.relative_to(self.root).as_posix() for path in verdicts)]

    def report_made_of(self) -> str:
        """Changes with the pages' code, templates, style and script, and with what the studies' YAML says."""
        folder = code.PACKAGE / FOLDER
        files = code.product_files(folder / "__main__.py")
        parts = [path for name in ("templates", "assets") for path in sorted((folder / name).iterdir())]
        looks = [sha256_text(path.read_text(encoding="utf-8")) for path in parts]
        sheets = [study.sheet for study in self.studies.values()]
        return sha256_text(canonical_json([code.tree_hash(files), looks, sheets]))[:16]
