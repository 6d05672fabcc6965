"""A verdict on a modification of one's own in a plan: what its page reads, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import canonical_json, sha256_file, sha256_text
from plumbline.specs import code
from plumbline.specs.study_config import expected_digest

if TYPE_CHECKING:
    from plumbline.specs.mine import Mine
    from plumbline.specs.study_config import Run

#: The folder of verdicts below results/ and below a preset's folder of results.
FOLDER = "verdict"


class OwnVerdict:
    """The part of a `plumbline.project.project.Plan` about a file of one's own (`mine`); without one there is no page."""

    mine: Mine | None
    root: Path
    results: str
    work: str
    run_file: Callable[[Run, str], str]
    scores_file: Callable[[Run], str]

    @property
    def verdict_pages(self) -> list[str]:
        """The page and its numbers, as files below a folder of results."""
        return [f"{FOLDER}/{self.mine.name}{ending}" for ending in (".md", ".json")] if self.mine else []

    @property
    def verdict_ledger(self) -> str:
        """The ledger of everything that was tried at this preset."""
        return f"{self.results}/{FOLDER}/ledger.jsonl"

    @property
    def verdict_checks(self) -> str:
        """What the checks before any training found."""
        return f"{self.work}/{FOLDER}/{self.mine.name if self.mine else ''}/checks.json"

    def verdict_files(self) -> list[str]:
        """What the page reads: every run of its study, their scores, and the printed numbers."""
        if self.mine is None:
            return []
        runs = list(self.mine.study.runs.values())
        names = ("outcome.json", "manifest.json", "metrics.parquet")
        paths = [self.run_file(run, name) for run in runs for name in names]
        paths += [self.scores_file(run) for run in runs if run.spec.suite]
        return paths + [self.mine.asked["published"]] * bool(self.mine.asked["published"])

    def verdict_expected(self) -> str:
        """Changes with the runs that the page needs."""
        return expected_digest(list(self.mine.study.runs.values())) if self.mine else ""

    def verdict_made_of(self) -> str:
        """Changes with the page's code, with what the file asks, with the printed tables and the earlier pages that it
        cites, and with what else was tried against its baselines: every p is multiplied by that."""
        if self.mine is None:
            return ""
        from plumbline.experiment import earlier, ledger, order, tries

        known = ledger.read(self.root / self.verdict_ledger)
        counted = tries.counted(known, tries.entries(self.mine))
        files = code.product_files(code.PACKAGE / "experiment" / "own.py")
        labels = {method: self.mine.study.label(method) for method in self.mine.compared}
        cited: list[Any] = [sha256_file(path) for path in order.files(self.mine.study.code, self.root)]
        cited += earlier.known((self.root / self.verdict_ledger).parent, but=self.mine.name)
        asked = [self.mine.asked, self.mine.against, labels, counted, cited, self.verdict_expected()]
        return sha256_text(canonical_json([code.tree_hash(files), asked]))[:16]

    def checks_made_of(self) -> str:
        """Changes with the code of the checks and of the models, and with the models that are checked."""
        from plumbline.experiment.checks_fingerprint import of_checks

        return of_checks(self.mine) if self.mine else ""

    def refuse_verdict(self, path: str) -> None:
        """Answer a page of a verdict that no file was given for.

        Raises:
            PlumblineError: it is one.
        """
        parts = path.split("/")[1:]
        if FOLDER not in parts[:2] or len(parts) > 3:
            return
        name = Path(path).stem
        if self.mine is None:
            raise PlumblineError(f"{path} is a verdict on a file of your own: add --config mine=my/{name}.yaml")
        raise PlumblineError(
            f"{path}: the verdict on {self.mine.path} is {'/'.join(path.split('/')[:-1])}/{self.mine.name}.md"
            f"{nearest(name, [self.mine.name])}"
        )
