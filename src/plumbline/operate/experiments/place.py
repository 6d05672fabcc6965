"""Names where a preset's experiments lie: pages, ledger and bank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.experiment.decision import records
from plumbline.experiment.decision.bank import Bank
from plumbline.experiment.decision.outcome import Decision
from plumbline.project import Project

#: The folder of pages below a preset's folder of results, and of the bank below its folder of work.
FOLDER = "experiment"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a preset's experiments lie: pages, ledger and bank."""

    project: Project

    @property
    def pages(self) -> Path:
        """The folder of pages."""
        return Path(self.project.paths.results) / FOLDER

    @property
    def work(self) -> Path:
        """The folder of the bank, which one process at a time holds."""
        return Path(self.project.paths.work) / FOLDER

    @property
    def ledger(self) -> Path:
        """The ledger, one for everything that is compared at this preset."""
        return Path(self.project.paths.verdict_ledger)

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.work / "runs.jsonl")

    def decisions(self) -> list[Path]:
        """List the decisions, the newest last."""
        return sorted(self.pages.glob("*.json"), key=lambda path: path.stat().st_mtime)

    def named(self, name: str | None, *, kept: bool = False) -> Decision:
        """Read a decision by its name, or the newest one.

        Raises:
            PlumblineError: there is none.
        """
        known = self.decisions()
        if name is not None:
            there = [path.stem for path in known]
            if name not in there:
                raise PlumblineError(
                    f"there is no experiment {name!r} at preset {self.project.name}{nearest(name, there)}"
                )
            return records.read(self.pages / f"{name}.json")
        for path in reversed(known):
            decision = records.read(path)
            if not kept or (decision.verdict == "keep" and not decision.terms.claim):
                return decision
        what = "that was kept" if kept else "yet"
        raise PlumblineError(f"there is no experiment {what} at preset {self.project.name}: plumbline try METHOD")
