"""Finds what a search's log may be judged by: its configurations, their repeats, sigma, and searches over noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import KEEP, SearchLogEntry
from plumbline.verdict.outcome import CannotBeJudgedError

#: The runs of a log by what was run: (commit, description) -> runs, in the order of time.
Groups = dict[tuple[str, str], list[SearchLogEntry]]


def group_by_configuration(runs: Sequence[SearchLogEntry]) -> Groups:
    """Group runs by what was run."""
    groups: Groups = {}
    for step in runs:
        groups.setdefault(step.configuration, []).append(step)
    return groups


def require_start(
    path: Path, start: SearchLogEntry, lost_runs: Sequence[SearchLogEntry], terms: ComparisonTerms
) -> None:
    """Refuse a log whose start diverged or crashed more often than was allowed beforehand."""
    if len(lost_runs) > terms.allow_diverged:
        raise CannotBeJudgedError(
            f"{path}, line {lost_runs[0].line}: a run of the start {start.commit!r} diverged or crashed "
            f"({len(lost_runs)} in all): what it would have given is not known. If that was expected, --allow-diverged "
            f"{len(lost_runs)} says how many may"
        )


def require_first_kept(path: Path, runs: Sequence[SearchLogEntry]) -> None:
    """Refuse a change that was run again until it was kept: each run was a try, and the kept one no fair repeat."""
    first = runs[0]
    kept_run = next((step for step in runs if step.status == KEEP), first)
    if first.status != KEEP and kept_run is not first:
        raise PlumblineError(
            f"{path}, line {kept_run.line}: {kept_run.commit!r} is kept at another run than its first, which line "
            f"{first.line} does not keep: running a change again until it is kept counts as that many tries. Give "
            "each of these runs its own description, so that each counts as a try"
        )


def estimate_noise(
    path: Path, start: SearchLogEntry, groups: Groups, terms: ComparisonTerms, tries: int, logged: int
) -> tuple[float, int, str]:
    """Sigma, its degrees of freedom from configurations other than the start, and where it is from.

    Of a change, only the runs after the first count: the first was selected. `logged`: how many runs the log has, with
    those that have no value.
    """
    if terms.sigma is not None:
        source = "taken as exact" if terms.sigma_runs is None else f"from {terms.sigma_runs} other runs"
        return terms.sigma, 0, f"given as --sigma, {source}"
    unselected = [group if key == start.configuration else group[1:] for key, group in groups.items()]
    values = [np.array([require_value(step) for step in group]) for group in unselected if len(group) > 1]
    freedom = sum(len(group) - 1 for group in values)
    scale = max(abs(require_value(start)), *(float(np.abs(group).max()) for group in values), 1e-290)
    squares = sum(float(((group / scale - (group / scale).mean()) ** 2).sum()) for group in values)
    sigma = scale * math.sqrt(squares / max(1, freedom))
    if sigma <= 1e-12 * scale:
        why = "no configuration was run twice" if not freedom else "all repeats are equal, like copies of one run"
        namesakes = [key for key in groups if key[0] == start.commit and key != start.configuration]
        hint = f" ({start.commit!r} has other descriptions too, which are other configurations)" if namesakes else ""
        raise CannotBeJudgedError(
            f"{path} ({format_count(logged, 'run')}): there is no noise floor: {why}{hint}. Run the start "
            f"{start.commit!r} at least twice more with other seeds and add the rows under the same commit and "
            "description, or give --sigma (and --sigma-runs) from other runs. "
            f"{_describe_break_even(start, groups, terms, tries)}"
        )
    runs = len(groups[start.configuration])
    other_df = freedom - (runs - 1)
    sources = [f"{runs} runs of the start"] if runs > 1 else []
    sources += [f"repeats of later configurations ({other_df} degrees of freedom)"] if other_df else []
    return sigma, other_df, "from " + " and ".join(sources)


def _describe_break_even(start: SearchLogEntry, groups: Groups, terms: ComparisonTerms, tries: int) -> str:
    """Up to which sigma the log's total gain would be beyond selection, were sigma known."""
    kept_changes = [group[0] for key, group in groups.items() if key != start.configuration and group[0].status == KEEP]
    total = terms.sign * (require_value(kept_changes[-1]) - require_value(start)) if kept_changes else 0.0
    if not total > 0:
        return "Nothing was gained: no sigma makes it more than selection gives."
    null = simulate_null_searches(len(groups) - 1, 1, 0.0, sigma_freedom=math.inf)
    sigma = total / float(np.quantile(null.total_W, 1 - terms.alpha / tries, method="higher"))
    return (
        f"The total gain of {total:.4g} is beyond selection if sigma of one run <= {sigma:.2g} (one-sided "
        f"{terms.alpha:g}, normal noise)."
    )


def require_value(step: SearchLogEntry) -> float:
    """The value of a run that has one."""
    assert step.value is not None
    return step.value


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

    def p_total(self, gain: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of their own sigma, is at least the `gain`
        one.
        """
        return _compute_share(self.total_W / self.sigma_W, gain)

    def p_face(self, gain: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of the true sigma, is at least the `gain`
        one.
        """
        return _compute_share(self.total_W, gain)

    def p_jump(self, jump: float) -> float:
        """Compute the share of simulated searches with a kept step at least `jump` above the best before it (own
        sigma).
        """
        return _compute_share(self.jump_W / self.sigma_W, jump)


@lru_cache(maxsize=32)
def simulate_null_searches(
    steps: int, start_runs: int, elsewhere: float, *, sigma_freedom: float | None = None, threshold: float = 0.0
) -> NullSearches:
    """Simulate searches over noise alone.

    Args:
        steps: changes that were run.
        start_runs: how often the start was run; the first of them is what the first change has to beat.
        elsewhere: degrees of freedom of sigma from repeats of other commits.
        sigma_freedom: degrees of freedom of a sigma from elsewhere, in place of all repeats; infinite if exact.
        threshold: what a change has to be better by, in units of sigma.
    """
    rng = np.random.default_rng([0, steps, start_runs])
    start_WR = rng.standard_normal((WORLDS, start_runs))
    level_W, best_W, jump_W = start_WR.mean(axis=1), start_WR[:, 0].copy(), np.zeros(WORLDS)
    path = [best_W - level_W]
    means, highs = [path[0].mean()], [np.quantile(path[0], 0.95)]
    for _ in range(steps):
        step_W = rng.standard_normal(WORLDS) - best_W
        kept_W = np.where(step_W > threshold, step_W, 0.0)
        best_W = best_W + kept_W
        jump_W = np.maximum(jump_W, kept_W)
        gain_W = best_W - level_W
        means.append(gain_W.mean())
        highs.append(np.quantile(gain_W, 0.95))
    if sigma_freedom is None:
        squares_W = ((start_WR - level_W[:, None]) ** 2).sum(axis=1)
        squares_W = squares_W + (rng.chisquare(elsewhere, WORLDS) if elsewhere else 0.0)
        sigma_W = np.sqrt(squares_W / (start_runs - 1 + elsewhere))
    else:
        sigma_W = (
            np.ones(WORLDS)
            if math.isinf(sigma_freedom)
            else np.sqrt(rng.chisquare(sigma_freedom, WORLDS) / sigma_freedom)
        )
    return NullSearches(best_W - level_W, jump_W, sigma_W, np.array(means), np.array(highs))


def _compute_share(values_W: np.ndarray, least: float) -> float:
    """One more on both sides than was drawn, so that it is never 0 and never promises too much."""
    return float((np.count_nonzero(values_W >= least) + 1) / (len(values_W) + 1))
