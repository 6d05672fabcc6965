"""Judges the log of a search that keeps a change whenever the metric improves, against what selection alone gives.

Who keeps the best of a hundred runs has a gain though no change does anything: the best of a hundred draws of the
noise. How large it is, is simulated: every change does nothing, all runs are independent draws from one normal law, and
what is kept is what beats the best so far, in as many steps as the log has. The start is repeated as often as in the
log, and its sigma computed from those repeats alone, so that the test pays for sigma being an estimate:

    T = (gain of the last kept run over the start's mean) / sigma,  p = share of simulated searches with T as large

which is exact for any number of repeats, if the assumption holds. A log that also dropped improvements, or kept what
was no improvement, gained less than its best so far: for it the test errs on the side of "does not survive".

Runs of a commit after its first know nothing of the selection: of the start, they are the noise floor; of a kept
change, they are the fair measurement of it, and where the last kept one has some, they decide (by `judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.experiment.comparison_terms import POWER, ComparisonTerms
from plumbline.experiment.judge import BaselineComparison, MethodVerdict, judge
from plumbline.experiment.power import ComparisonDesign, seeds_each
from plumbline.experiment.read_numbers import SearchLogEntry

#: Searches that are simulated.
WORLDS = 20_000


@dataclass(frozen=True, slots=True)
class NullSearches:
    """Simulated searches in which no change does anything, in units of the true sigma, upwards better.

    Shapes: W searches, S steps (0 is the start).
    """

    total_W: np.ndarray
    jump_W: np.ndarray
    sigma_W: np.ndarray
    mean_S: np.ndarray
    high_S: np.ndarray

    def p_total(self, seen: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of their own sigma, is at least the `seen`
        one.
        """
        return _share(self.total_W / self.sigma_W, seen)

    def p_face(self, seen: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of the true sigma, is at least the `seen`
        one.
        """
        return _share(self.total_W, seen)

    def p_jump(self, seen: float) -> float:
        """Compute the share of simulated searches with a kept step at least `seen` above the best before it (own
        sigma).
        """
        return _share(self.jump_W / self.sigma_W, seen)


@lru_cache(maxsize=32)
def null_searches(
    steps: int,
    start_runs: int,
    elsewhere: float,
    *,
    known: float | None = None,
    threshold: float = 0.0,
    worlds: int = WORLDS,
    seed: int = 0,
) -> NullSearches:
    """Simulate searches over noise alone.

    Args:
        steps: changes that were run.
        start_runs: how often the start was run; the first of them is what the first change has to beat.
        elsewhere: degrees of freedom of sigma from repeats of other commits.
        known: degrees of freedom of a sigma that was given, used instead of all repeats; infinite if it is exact.
        threshold: what a change has to be better by, in units of sigma.
        worlds: how many searches are simulated.
        seed: of the random numbers.
    """
    rng = np.random.default_rng([seed, steps, start_runs])
    start_WR = rng.standard_normal((worlds, start_runs))
    level_W, best_W, jump_W = start_WR.mean(axis=1), start_WR[:, 0].copy(), np.zeros(worlds)
    path = [best_W - level_W]
    means, highs = [path[0].mean()], [np.quantile(path[0], 0.95)]
    for _ in range(steps):
        step_W = rng.standard_normal(worlds) - best_W
        kept_W = np.where(step_W > threshold, step_W, 0.0)
        best_W = best_W + kept_W
        jump_W = np.maximum(jump_W, kept_W)
        gain_W = best_W - level_W
        means.append(gain_W.mean())
        highs.append(np.quantile(gain_W, 0.95))
    if known is None:
        squares_W = ((start_WR - level_W[:, None]) ** 2).sum(axis=1)
        squares_W = squares_W + (rng.chisquare(elsewhere, worlds) if elsewhere else 0.0)
        sigma_W = np.sqrt(squares_W / (start_runs - 1 + elsewhere))
    else:
        sigma_W = np.ones(worlds) if math.isinf(known) else np.sqrt(rng.chisquare(known, worlds) / known)
    return NullSearches(best_W - level_W, jump_W, sigma_W, np.array(means), np.array(highs))


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptChange:
    """A change that a search kept. Gains count upwards when better, in the units of the metric.

    Attributes:
        number: how many changes had been run with it, the start not counted.
        gain: of its run over the start's mean; `selection` and `selection_high` are the mean and the 95 % quantile of
            what searches over noise have after as many steps.
        jump: over what was kept before it.
        p_gain: share of searches over noise that gain at least this in all their steps.
        p_jump: share of searches over noise that have a jump of at least this anywhere.
        rerun: its further runs against the start's, where both are there.
    """

    step: SearchLogEntry
    number: int
    gain: float
    selection: float
    selection_high: float
    jump: float
    p_gain: float
    p_jump: float
    rerun: BaselineComparison | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchJudgement:
    """The judgement of a search's log. Gains count upwards when better, in the units of the metric.

    Attributes:
        steps, crashes: changes that gave a number, and runs that gave none.
        start: the first run; `start_runs` the values of all its runs.
        sigma, freedom: noise of a run and its degrees of freedom; `noise` says in words where it is from.
        spread: standard deviation of the changes' own runs: about sigma if they do nothing, more if they do something.
        total: gain of the last kept run over the start's mean.
        selection, selection_low, selection_high: mean, 5 % and 95 % quantile of that gain in searches over noise.
        p, p_face: share of searches over noise with as large a gain, in units of their own sigma and of the true one.
        tries, p_corrected: as in `BaselineComparison`.
        resolved: the smallest real gain, made by the first change, that such a log tells from noise with POWER.
        expected: what is left of the total gain without what selection gives on average.
        runs_each: runs of both the start and the last kept change that would find a gain of `expected`.
        against_rule: runs that were kept without an improvement, or discarded in spite of one.
    """

    steps: int
    crashes: int
    start: SearchLogEntry
    start_runs: tuple[float, ...]
    sigma: float
    freedom: float
    noise: str
    spread: float
    total: float
    selection: float
    selection_low: float
    selection_high: float
    p: float
    p_face: float
    tries: int
    p_corrected: float
    resolved: float
    expected: float
    runs_each: int | None
    kept: tuple[KeptChange, ...]
    against_rule: tuple[SearchLogEntry, ...]
    outcome: MethodVerdict
    design: ComparisonDesign
    terms: ComparisonTerms

    @property
    def decided_by(self) -> BaselineComparison | None:
        """The judgement of the last kept change by its later runs, which decides; None where it has none."""
        return self.kept[-1].rerun if self.kept else None

    def runs_for(self, gain: float, comparisons: int = 1) -> int | None:
        """Compute how many runs of each of two configurations find a gain (in the metric's units), one of so many
        comparisons.
        """
        design = ComparisonDesign(self.design.error, self.design.freedom, self.design.alpha / comparisons)
        return seeds_each(gain, self.sigma, design, POWER, paired=False)


def judge_search(
    path: Path, steps: Sequence[SearchLogEntry], terms: ComparisonTerms, *, tries: int = 1
) -> SearchJudgement:
    """Judge the log of a search; `path` names it in errors, `tries`: what p is multiplied by.

    Raises:
        PlumblineError: it does not begin with a kept run, no change was run, or there is no noise floor.
    """
    if terms.paired:
        raise PlumblineError(f"{path} is the log of a search, which has no pairs; leave out --paired")
    runs = [step for step in steps if step.value is not None]
    if not runs or runs[0].status != "keep":
        line = f", line {runs[0].line}" if runs else ""
        raise PlumblineError(f"{path}{line}: the first run of a log must be the start, with status keep; put it there")
    start, by_commit = runs[0], _by_commit(runs)
    changes = [group[0] for commit, group in by_commit.items() if commit != start.commit]
    if not changes:
        raise PlumblineError(f"{path} has runs of the start {start.commit!r} only; there is no change to judge")
    for change in changes:
        _require_first_kept(path, by_commit[change.commit])
    start_runs = tuple(_value(step) for step in by_commit[start.commit])
    sigma, elsewhere, noise = _noise(path, start, by_commit, terms)
    known = terms.sigma_freedom if terms.sigma is not None else None
    freedom = len(start_runs) - 1 + elsewhere if known is None else known
    null = null_searches(
        len(changes), len(start_runs), elsewhere, known=known, threshold=round(terms.minimum_gain / sigma, 3)
    )
    kept, against = _kept(changes, start, start_runs, by_commit, sigma, null, terms, tries)
    total = kept[-1].gain if kept else terms.sign * (start_runs[0] - float(np.mean(start_runs)))
    p, p_face = null.p_total(total / sigma), null.p_face(total / sigma)
    corrected = min(1.0, tries * p)
    decided = kept[-1].rerun if kept else None
    level = terms.alpha / tries
    critical = float(np.quantile(null.total_W / null.sigma_W, 1 - level, method="higher"))
    resolved = sigma * float(np.quantile(critical * null.sigma_W - null.total_W, POWER))
    low, high = (sigma * float(q) for q in np.quantile(null.total_W, (0.05, 0.95)))
    selection = sigma * float(null.mean_S[-1])
    design = ComparisonDesign(math.sqrt(2), freedom, level)
    return SearchJudgement(
        steps=len(changes),
        crashes=len(steps) - len(runs),
        start=start,
        start_runs=start_runs,
        sigma=sigma,
        freedom=freedom,
        noise=noise,
        spread=float(np.std([_value(step) for step in changes], ddof=1)) if len(changes) > 1 else math.nan,
        total=total,
        selection=selection,
        selection_low=low,
        selection_high=high,
        p=p,
        p_face=p_face,
        tries=tries,
        p_corrected=corrected,
        resolved=resolved,
        expected=total - selection,
        runs_each=seeds_each(total - selection, sigma, design, POWER, paired=False),
        kept=kept,
        against_rule=against,
        outcome=_outcome(corrected, tries * p_face, terms) if decided is None else decided.outcome,
        design=design,
        terms=terms,
    )


def _outcome(corrected: float, face: float, terms: ComparisonTerms) -> MethodVerdict:
    """As of a table: undecided where only the fewness of repeats is in the way."""
    if corrected <= terms.alpha:
        return MethodVerdict.SURVIVES
    return MethodVerdict.OPEN if face <= terms.alpha else MethodVerdict.FAILS


def _by_commit(runs: Sequence[SearchLogEntry]) -> dict[str, list[SearchLogEntry]]:
    groups: dict[str, list[SearchLogEntry]] = {}
    for step in runs:
        groups.setdefault(step.commit, []).append(step)
    return groups


def _require_first_kept(path: Path, runs: Sequence[SearchLogEntry]) -> None:
    """Refuse a change that was run again until it was kept: each run was a try, and the kept one no fair repeat."""
    first = runs[0]
    later = next((step for step in runs if step.status == "keep"), first)
    if first.status != "keep" and later is not first:
        raise PlumblineError(
            f"{path}, line {later.line}: {later.commit!r} is kept at another run than its first, which line "
            f"{first.line} does not keep: running a change again until it is kept counts as that many tries. Give "
            f"each of these runs its own commit ({later.commit!r}, '{later.commit}-2'), so that each counts as a "
            "try"
        )


def _noise(
    path: Path, start: SearchLogEntry, by_commit: dict[str, list[SearchLogEntry]], terms: ComparisonTerms
) -> tuple[float, int, str]:
    """Sigma, its degrees of freedom from commits other than the start, and where it is from.

    Of a change, only the runs after the first count: the first was selected.
    """
    if terms.sigma is not None:
        of = "taken as exact" if terms.sigma_runs is None else f"from {terms.sigma_runs} other runs"
        return terms.sigma, 0, f"given as --sigma, {of}"
    groups = [group if commit == start.commit else group[1:] for commit, group in by_commit.items()]
    values = [np.array([_value(step) for step in group]) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in values)
    sigma = math.sqrt(sum(float(((group - group.mean()) ** 2).sum()) for group in values) / max(1, freedom))
    if sigma <= 1e-12 * abs(_value(start)):
        why = "no configuration was run twice" if not freedom else "all repeats are equal, like copies of one run"
        raise PlumblineError(
            f"{path}: there is no noise floor: {why}. Run the start {start.commit!r} at least twice more with "
            f"other seeds and add the rows under the same commit, or give --sigma (and --sigma-runs) from other runs"
        )
    runs = len(by_commit[start.commit])
    others = freedom - (runs - 1)
    words = [f"{runs} runs of the start"] if runs > 1 else []
    words += [f"repeats of later commits ({others} degrees of freedom)"] if others else []
    return sigma, others, "from " + " and ".join(words)


def _kept(
    changes: Sequence[SearchLogEntry],
    start: SearchLogEntry,
    start_runs: tuple[float, ...],
    by_commit: dict[str, list[SearchLogEntry]],
    sigma: float,
    null: NullSearches,
    terms: ComparisonTerms,
    tries: int,
) -> tuple[tuple[KeptChange, ...], tuple[SearchLogEntry, ...]]:
    level, best = float(np.mean(start_runs)), _value(start)
    measurable = len(start_runs) > 1 or terms.sigma is not None
    rerun = [step.commit for step in changes if step.status == "keep" and len(by_commit[step.commit]) > 1]
    kept, against = [], []
    for number, step in enumerate(changes, start=1):
        jump = terms.sign * (_value(step) - best)
        if (step.status == "keep") != (jump > terms.minimum_gain):
            against.append(step)
        if step.status != "keep":
            continue
        gain, fresh = terms.sign * (_value(step) - level), by_commit[step.commit][1:]
        judgement = None
        if fresh and measurable:
            again = {f"line {one.line:06d}": _value(one) for one in fresh}
            floor = {f"start {index}": value for index, value in enumerate(start_runs)}
            judgement = judge(step.commit, again, floor, terms, tries=tries * len(rerun))
        kept.append(
            KeptChange(
                step=step,
                number=number,
                gain=gain,
                selection=sigma * float(null.mean_S[number]),
                selection_high=sigma * float(null.high_S[number]),
                jump=jump,
                p_gain=null.p_total(gain / sigma),
                p_jump=null.p_jump(jump / sigma),
                rerun=judgement,
            )
        )
        best = _value(step)
    return tuple(kept), tuple(against)


def _value(step: SearchLogEntry) -> float:
    assert step.value is not None
    return step.value


def _share(values_W: np.ndarray, seen: float) -> float:
    """One more on both sides than was drawn, so that it is never 0 and never promises too much."""
    return float((np.count_nonzero(values_W >= seen) + 1) / (len(values_W) + 1))
