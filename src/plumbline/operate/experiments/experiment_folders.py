"""Names where experiments lie that are compared with each other: pages, ledger and bank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.decision import decision_page, decision_records
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.decision_sentences import sentence
from plumbline.verdict.decision.outcome import Decision
from plumbline.verdict.ledger import Ledger
from plumbline.verdict.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class ExperimentFolders:
    """Where experiments lie that are compared with each other: a preset's, or those of a trainer of one's own.

    Attributes:
        pages: the folder of pages.
        work: the folder of the bank, which one process at a time holds.
        ledger: the ledger, one for everything that is compared here.
        where: which place it is, as the end of a sentence: `at preset demo`.
        first: the command that makes the first experiment here.
        lacking: what is not here, as the begin of an error where nothing was tried yet; empty where all is.
    """

    pages: Path
    work: Path
    ledger: Path
    where: str
    first: str
    lacking: str = ""

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.work / "runs.jsonl")

    def tried(self) -> Ledger:
        """Read the ledger."""
        return ledgers.read(self.ledger)

    def decisions(self) -> list[Path]:
        """List the decisions, the newest last: in the order of the ledger, which no clock can change."""
        names = [entry.name for entry in self.tried().entries if entry.verdict]
        newest = reversed(dict.fromkeys(reversed(names)))
        return [path for name in newest if (path := self.pages / f"{name}.json").exists()]

    def withdraw(self, name: str, why: str) -> None:
        """Take a keep back that was a mistake, in its page and in the ledger."""
        decision, entries = decision_records.read(self.pages / f"{name}.json"), self.tried().entries
        entry = next(one for one in reversed(entries) if one.name == name and one.verdict)
        lost = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, estimate=None, p=None, at=process_record.now())
        lost = replace(lost, sentence=sentence(lost, reason=why))
        said = replace(entry, verdict=lost.verdict, sentence=lost.sentence, at=lost.at)
        with ledgers.entered(self.ledger, [said]) as ledger:
            lost = replace(lost, ledger=ledgers.statement(ledger, self.pages))
            decision_page.write(lost, self.pages / f"{name}.md")

    def named(self, name: str | None, *, kept: bool = False, claims: bool = True) -> Decision:
        """Read a decision by its name, the words of what was tried or its number in the log, or the newest one.

        `kept`: of a kept one.

        Without `claims` words mean the try, not what `plumbline confirm` made of it.

        Raises:
            PlumblineError: there is none.
        """
        known = self.decisions()
        if name is not None:
            there = {path.stem: path for path in known}
            words = {} if name in there else self._by_words(known, claims=claims and not kept)
            if name.isdecimal() and name not in words:
                words = self._by_number(there)
            if name not in {**there, **words}:
                like = nearest(name, [*there, *words]) or "; plumbline log lists them"
                raise PlumblineError(f"there is no experiment {name!r} {self.where}{like}")
            decision = decision_records.read({**there, **words}[name])
            if kept and (decision.verdict != Outcome.KEEP or decision.terms.claim):
                which = "is a claim" if decision.terms.claim else f"ended as '{decision.verdict}'"
                raise PlumblineError(
                    f"{name} {which}, and only what a try kept is run again for a claim: fresh seeds for what was not "
                    "kept are a second chance that nothing paid for"
                )
            return decision
        for path in reversed(known):
            decision = decision_records.read(path)
            if not kept or (decision.verdict == Outcome.KEEP and not decision.terms.claim):
                return decision
        what = "that was kept" if kept else "yet"
        raise PlumblineError(f"{self.lacking}there is no experiment {what} {self.where}: {self.first}")

    def _by_number(self, there: Mapping[str, Path]) -> dict[str, Path]:
        """Find the decisions by the numbers of their tries, which a ledger never changes."""
        tried = (one for one in self.tried().entries if one.is_try)
        return {str(number): there[one.name] for number, one in enumerate(tried, start=1) if one.name in there}

    @staticmethod
    def _by_words(paths: list[Path], *, claims: bool) -> dict[str, Path]:
        """Find the newest decision by the words of what was tried."""
        decisions = ((path, decision_records.read(path).terms) for path in paths)
        return {terms.candidate: path for path, terms in decisions if claims or not terms.claim}
