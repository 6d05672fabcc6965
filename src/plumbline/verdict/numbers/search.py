"""Judges the log of a search that keeps a change whenever the metric improves, against what selection alone gives.

Who keeps the best of a hundred runs has a gain though no change does anything: the best of a hundred draws of the
noise. How large it is, is simulated: every change does nothing, all runs are independent draws from one normal law, and
what is kept is what beats the best so far, in as many steps as the log has. The start is repeated as often as in the
log, and its sigma computed from those repeats alone, so that the test pays for sigma being an estimate:

    T = (gain of the last kept run over the start's mean) / sigma,  p = share of simulated searches with T as large

which is exact for any number of repeats, if the assumption holds. A log that also dropped improvements, or kept what
was no improvement, gained less than its best so far: for it the test errs on the side of "not decided".

All of it hangs on normal tails: the largest of a hundred draws of heavy-tailed noise lies far beyond that of normal
ones, while sigma of a few repeats of the start does not show it (benchmarks/numbers_verdict_rates.md has how often).

A configuration is a commit with its description. Runs of one after its first know nothing of the selection: of the
start, they are the noise floor; of a kept change, they are the fair measurement of it, and where the last kept one has
some, they decide (by `judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import LARGEST, POWER, ComparisonTerms
from plumbline.verdict.evidence import KEEP, SearchLogEntry
from plumbline.verdict.judge import BaselineComparison, choose_outcome, judge
from plumbline.verdict.numbers.search_noise import (
    Groups,
    NullSearches,
    estimate_noise,
    group_by_configuration,
    require_first_kept,
    require_start,
    require_value,
    simulate_null_searches,
)
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.power import ComparisonDesign, count_seeds


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
        lost: its further runs that diverged or crashed.
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
    lost: tuple[SearchLogEntry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchJudgement:
    """The judgement of a search's log. Gains count upwards when better, in the units of the metric.

    Attributes:
        steps, crashes: changes that gave a number, and runs that gave none.
        start: the first run; `start_runs` the values of all its runs.
        sigma, freedom: noise of a run and its degrees of freedom; `noise`: where it is from, as text.
        spread: standard deviation of the changes' own runs: about sigma if they do nothing, more if they do something.
        total: gain of the last kept run over the start's mean.
        selection, selection_low, selection_high: mean, 5 % and 95 % quantile of that gain in searches over noise.
        p, p_face: share of searches over noise with as large a gain, in units of their own sigma and of the true one.
        tries, p_corrected: as in `BaselineComparison`.
        high: what the kept changes gain is below this: one run of them over the start, as though it had not been
            selected, which errs upwards.
        resolved: the smallest real gain, made by the first change, that such a log tells from noise with POWER.
        expected: what is left of the total gain without what selection gives on average.
        runs_each: runs of both the start and the last kept change that would find a gain of `expected`;
            runs_for_target_gain: that would find the gain that is in question.
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
    high: float
    resolved: float
    expected: float
    runs_each: int | None
    runs_for_target_gain: int | None
    kept: tuple[KeptChange, ...]
    against_rule: tuple[SearchLogEntry, ...]
    outcome: Outcome
    design: ComparisonDesign
    terms: ComparisonTerms

    @property
    def decided_by(self) -> BaselineComparison | None:
        """The judgement of the last kept change by its later runs, which decides; None if it has none."""
        return self.kept[-1].rerun if self.kept else None

    @property
    def lost_runs(self) -> tuple[SearchLogEntry, ...]:
        """The further runs of the last kept change that diverged or crashed."""
        return self.kept[-1].lost if self.kept else ()

    def runs_for(self, gain: float, comparisons: int = 1) -> int | None:
        """Compute how many runs of each of two configurations find a gain (in the metric's units), one of so many
        comparisons.
        """
        design = ComparisonDesign(self.design.error, self.design.freedom, self.design.alpha / comparisons)
        return count_seeds(gain, self.sigma, design, POWER)


def judge_search(
    path: Path, steps: Sequence[SearchLogEntry], terms: ComparisonTerms, *, tries: int = 1
) -> SearchJudgement:
    """Judge the log of a search; `path` names it in errors, `tries`: what p is multiplied by.

    Raises:
        CannotBeJudgedError: there is no noise floor, or a run of the start diverged or crashed.
        PlumblineError: it does not begin with a kept run, or no change was run.
    """
    if terms.paired:
        raise PlumblineError(f"{path} is the log of a search, which has no pairs; leave out --paired")
    runs = [step for step in steps if step.value is not None]
    if not runs or runs[0].status != KEEP:
        line = f", line {runs[0].line}" if runs else ""
        raise PlumblineError(f"{path}{line}: the first run of a log must be the start, with status keep; put it there")
    start, groups = runs[0], group_by_configuration(runs)
    for step in runs:
        if abs(require_value(step)) > LARGEST:
            raise PlumblineError(
                f"{path}, line {step.line}: {step.value:g} is too large to compare; rescale the metric"
            )
    changes = [group[0] for key, group in groups.items() if key != start.configuration]
    if not changes:
        raise PlumblineError(f"{path} has runs of the start {start.commit!r} only; there is no change to judge")
    for change in changes:
        require_first_kept(path, groups[change.configuration])
    lost_runs = [step for step in steps if step.value is None and step.line > start.line]
    lost_of_start = [step for step in lost_runs if step.configuration == start.configuration]
    require_start(path, start, lost_of_start, terms)
    start_runs = tuple(require_value(step) for step in groups[start.configuration])
    sigma, other_df, noise_source = estimate_noise(path, start, groups, terms, tries, len(steps))
    sigma_freedom = terms.sigma_freedom if terms.sigma is not None else None
    freedom = len(start_runs) - 1 + other_df if sigma_freedom is None else sigma_freedom
    null = simulate_null_searches(
        len(changes),
        len(start_runs),
        other_df,
        sigma_freedom=sigma_freedom,
        threshold=round(terms.minimum_gain / sigma, 3),
    )
    kept_changes, against = _judge_kept_changes(
        changes, start, start_runs, groups, lost_runs, sigma, null, terms, tries
    )
    total = kept_changes[-1].gain if kept_changes else terms.sign * (start_runs[0] - float(np.mean(start_runs)))
    p, p_face = null.p_total(total / sigma), null.p_face(total / sigma)
    corrected = min(1.0, tries * p)
    rerun = kept_changes[-1].rerun if kept_changes else None
    level = terms.alpha / tries
    critical = float(np.quantile(null.total_W / null.sigma_W, 1 - level, method="higher"))
    resolved = sigma * float(np.quantile(critical * null.sigma_W - null.total_W, POWER))
    low, high = (sigma * float(q) for q in np.quantile(null.total_W, (0.05, 0.95)))
    selection = sigma * float(null.mean_S[-1])
    # Runs that are added are another look.
    design = ComparisonDesign(math.sqrt(2), freedom, terms.alpha / (tries + 1))
    reach = ComparisonDesign(math.sqrt(1 + 1 / len(start_runs)), freedom, level)
    upper = total + reach.critical * reach.error * sigma
    verdict = choose_outcome(corrected, upper, sigma, terms) if rerun is None else rerun.outcome
    # As many as the start's are allowed to be lost, and no more: the others would be selected by having finished.
    if kept_changes and len(kept_changes[-1].lost) > len(lost_of_start):
        verdict = Outcome.CRASHED
    return SearchJudgement(
        steps=len(changes),
        crashes=len(steps) - len(runs),
        start=start,
        start_runs=start_runs,
        sigma=sigma,
        freedom=freedom,
        noise=noise_source,
        spread=sigma * float(np.std([require_value(step) / sigma for step in changes], ddof=1))
        if len(changes) > 1
        else math.nan,
        total=total,
        selection=selection,
        selection_low=low,
        selection_high=high,
        p=p,
        p_face=p_face,
        tries=tries,
        p_corrected=corrected,
        high=upper,
        resolved=resolved,
        expected=total - selection,
        runs_each=count_seeds(total - selection, sigma, design, POWER),
        runs_for_target_gain=count_seeds(terms.target_gain_at(sigma) - terms.minimum_gain, sigma, design, POWER),
        kept=kept_changes,
        against_rule=against,
        outcome=verdict,
        design=design,
        terms=terms,
    )


def _judge_kept_changes(
    changes: Sequence[SearchLogEntry],
    start: SearchLogEntry,
    start_runs: tuple[float, ...],
    groups: Groups,
    lost_runs: Sequence[SearchLogEntry],
    sigma: float,
    null: NullSearches,
    terms: ComparisonTerms,
    tries: int,
) -> tuple[tuple[KeptChange, ...], tuple[SearchLogEntry, ...]]:
    level, best_value = float(np.mean(start_runs)), require_value(start)
    measurable = len(start_runs) > 1 or terms.sigma is not None
    rerun = [step for step in changes if step.status == KEEP and len(groups[step.configuration]) > 1]
    kept_changes, against = [], []
    lost_by_configuration: dict[tuple[str, str], list[SearchLogEntry]] = {}
    for step in lost_runs:
        lost_by_configuration.setdefault(step.configuration, []).append(step)
    for number, step in enumerate(changes, start=1):
        jump = terms.sign * (require_value(step) - best_value)
        if (step.status == KEEP) != (jump > terms.minimum_gain):
            against.append(step)
        if step.status != KEEP:
            continue
        gain, fresh = terms.sign * (require_value(step) - level), groups[step.configuration][1:]
        judgement = None
        if fresh and measurable:
            rerun_values = {f"line {run.line:06d}": require_value(run) for run in fresh}
            floor = {f"start {index}": value for index, value in enumerate(start_runs)}
            judgement = judge(step.commit, rerun_values, floor, terms, tries=tries * len(rerun))
        kept_changes.append(
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
                lost=tuple(each for each in lost_by_configuration.get(step.configuration, ()) if each.line > step.line),
            )
        )
        best_value = require_value(step)
    return tuple(kept_changes), tuple(against)
