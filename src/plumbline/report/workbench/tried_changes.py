"""Gathers what was tried in a place of experiments, in the order of its ledger: tries, claims, budgets, screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.report.workbench.change_pages import name_end, shorten_names, write_name
from plumbline.stats.pooling import SigmaEstimate, pool_spreads
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.decision import budget_page
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision, read_decision
from plumbline.verdict.ledger import BUDGETS, SCREEN
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen import screen_page
from plumbline.verdict.screen.screen_effects import INTERVAL
from plumbline.verdict.screen.screen_runs import FRESH


@dataclass(frozen=True, kw_only=True)
class TriedChange:
    """One try, claim, screen, or try at several budgets, as its page's numbers have it.

    Attributes:
        path: the page as Markdown; its numbers and its picture lie next to it.
        title: as the person wrote it, as far as pages show it (`write_name`).
        kind: "try", "claim", "screen" or "budgets".
        runs: of the change itself; `baseline_runs`: those beside them.
        value: the mean that counts: of the fresh runs where there are any; None of what has none.
        counted_runs: how many runs `value` is the mean of.
        keep, discard: T at each look from which it was kept, or up to which it was discarded, and `fresh_runs` made
            after a keep; without looks its runs are so many, whatever they are.
        asked: the gain that was asked for.
        is_in_folder: of a trainer of one's own.
        gain: with its interval where one is known, in the metric's units, upwards.
        series: what is comparable with it: trainer, metric and budget.
    """

    path: Path
    title: str
    kind: str
    verdict: Outcome
    at: str
    sentence: str
    metric: str
    higher: bool
    series: tuple[str, ...]
    runs: tuple[ArmRun, ...] = ()
    baseline: str = ""
    baseline_runs: tuple[ArmRun, ...] = ()
    value: float | None = None
    counted_runs: int = 0
    keep: tuple[float, ...] = ()
    discard: tuple[float, ...] = ()
    fresh_runs: int = 0
    asked: float = 0.0
    is_in_folder: bool = False
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None

    @property
    def name(self) -> str:
        """The name of its page."""
        return self.path.stem

    @property
    def word(self) -> str:
        """How it ended; a screen keeps nothing."""
        return name_end(self.verdict, is_screen=self.kind == "screen")

    @property
    def moves_baseline(self) -> bool:
        """Whether what comes after it is compared with it: in a folder; a study's reference stays what it is."""
        return self.is_in_folder and self.kind == "try" and self.verdict.is_kept

    @property
    def baseline_value(self) -> float | None:
        """The mean of the baseline's runs beside it."""
        return _mean(self.baseline_runs)


def gather_changes(ledger: Path, pages: Path) -> tuple[list[TriedChange], list[str]]:
    """Read the page of everything that was decided, the newest last, and say of each that cannot be read why.

    Args:
        ledger: its file.
        pages: the folder of pages.

    Raises:
        PlumblineError: the ledger is not as it was written.
    """
    changes, unreadable = list[TriedChange](), list[str]()
    entries = [entry for entry in ledgers.read_unchanged(ledger)[0].entries if entry.verdict] if ledger.exists() else []
    kinds = {entry.page_name: entry.kind for entry in entries}
    names = reversed(dict.fromkeys(entry.page_name for entry in reversed(entries)))
    for name in names:
        path = pages / f"{name}.md"
        numbers = path.with_suffix(".json")
        if missing_names := [str(file) for file in (path, numbers) if not file.is_file()]:
            unreadable.append(f"{' and '.join(missing_names)}: not there; plumbline log has its sentence")
            continue
        try:
            changes.append(_READERS.get(kinds[name], _read_try)(path))
        except (PlumblineError, KeyError, TypeError, ValueError) as error:
            unreadable.append(str(error) if isinstance(error, PlumblineError) else f"{numbers}: {error!r}")
    return changes, unreadable


def pool_noise(changes: Iterable[TriedChange]) -> SigmaEstimate:
    """Pool the spread of a run over all arms of changes of one series, each run once.

    An arm is known by its runs, for two may have one name: every set of changes of a screen is an arm, and what was
    kept is the same arm as the baseline that it became.
    """
    arms: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    owners: dict[str, str] = {}
    for change in changes:
        by_name: dict[str, list[ArmRun]] = {}
        for run in (*change.runs, *change.baseline_runs):
            by_name.setdefault(run.arm, []).append(run)
        for name, runs in by_name.items():
            owner = next((owners[run.run_id] for run in runs if run.run_id in owners), f"{change.name}: {name}")
            for run in runs:
                owners[run.run_id] = owner
                if run.has_value and run.value is not None:
                    arms.setdefault((owner, run.fingerprint), {})[run.run_id, run.seed] = run.value
    return pool_spreads(list(values.values()) for values in arms.values() if len(values) > 1)


def _read_try(path: Path) -> TriedChange:
    decision = read_decision(path.with_suffix(".json"))
    terms, estimate = decision.terms, decision.estimate
    all_runs = (*decision.runs, *decision.fresh)
    counted = decision.fresh_values or decision.candidate_values
    finite = {name: _none_unless_finite(getattr(estimate, name, None)) for name in ("median", "low", "high")}
    return TriedChange(
        path=path,
        title=write_name(terms.candidate),
        kind="claim" if terms.claim else "try",
        verdict=decision.verdict,
        at=decision.at,
        sentence=shorten_names(decision.sentence, terms.candidate, terms.baseline),
        metric=terms.metric,
        higher=terms.higher,
        series=(terms.trainer, terms.metric, terms.budget, str(decision.asked.get("trainer", ""))),
        runs=tuple(run for run in all_runs if run.arm != BASELINE),
        baseline=write_name(terms.baseline),
        baseline_runs=tuple(run for run in all_runs if run.arm == BASELINE),
        value=fmean(counted) if counted else None,
        counted_runs=len(counted),
        keep=decision.boundary.keep,
        discard=decision.boundary.discard,
        fresh_runs=terms.fresh_runs,
        asked=terms.minimum_gain,
        is_in_folder="arms" in decision.asked,
        gain=_choose_gain(decision, finite["median"]),
        gain_low=finite["low"],
        gain_high=finite["high"],
    )


def _choose_gain(decision: Decision, estimated: float | None) -> float | None:
    """The gain that is told; of a try without an estimate that of its last look."""
    if estimated is not None or not decision.looks:
        return estimated
    return _none_unless_finite(decision.looks[-1].gain)


def _read_budgets(path: Path) -> TriedChange:
    decision = budget_page.read(path.with_suffix(".json"))
    terms, all_runs = decision.terms, [run for each in decision.at_budgets for run in each.runs]
    return TriedChange(
        path=path,
        title=write_name(terms.candidate),
        kind="budgets",
        verdict=decision.verdict,
        at=decision.at,
        sentence=shorten_names(decision.sentence, terms.candidate, terms.baseline),
        metric=terms.metric,
        higher=terms.higher,
        series=(terms.trainer, terms.metric, *terms.budgets),
        runs=tuple(run for run in all_runs if run.arm != BASELINE),
        baseline=write_name(terms.baseline),
        baseline_runs=tuple(run for run in all_runs if run.arm == BASELINE),
    )


def _read_screen(path: Path) -> TriedChange:
    decision = screen_page.read(path.with_suffix(".json"))
    terms, levels = decision.terms, dict(decision.chosen)
    of_set, of_baseline, of_design = list[ArmRun](), list[ArmRun](), list[ArmRun]()
    for each in decision.runs:
        changed = {factor for factor, level in levels.items() if each.request.settings.get(factor) == level}
        if each.request.part != FRESH:
            of_design.append(each.run)
        else:
            (of_set if changed else of_baseline).append(each.run)
    values, gain = _values(of_set), decision.confirmation
    low, high = gain.interval(INTERVAL) if gain else (None, None)
    return TriedChange(
        path=path,
        title=f"screen of {len(decision.design.factors)} ideas",
        kind="screen",
        verdict=decision.verdict,
        at=decision.at,
        sentence=shorten_names(decision.sentence, terms.baseline),
        metric=terms.metric,
        higher=terms.higher,
        series=(terms.trainer, terms.metric, terms.budget, str(decision.asked.get("trainer", ""))),
        runs=(*of_design, *of_set),
        baseline=write_name(terms.baseline),
        baseline_runs=tuple(of_baseline),
        value=fmean(values) if values else None,
        counted_runs=len(values),
        gain=gain.gain if gain else None,
        gain_low=low,
        gain_high=high,
    )


_READERS: Mapping[str, Any] = {BUDGETS: _read_budgets, SCREEN: _read_screen}


def _values(runs: Sequence[ArmRun]) -> list[float]:
    return [run.value for run in runs if run.has_value and run.value is not None]


def _mean(runs: Sequence[ArmRun]) -> float | None:
    values = _values(runs)
    return fmean(values) if values else None


def _none_unless_finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None
