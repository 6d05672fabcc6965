"""Checks that both arms spread alike, as a test with one pooled sigma takes them to do."""

from __future__ import annotations

from plumbline.stats.distributions import f_sf
from plumbline.stats.pooling import SigmaEstimate, pool_spreads
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import format_p, quote

#: Two-sided level of the F test: of arms that spread alike, so many are told.
LEVEL = 0.05


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell that one arm spreads wider than the other: an F test of the two variances, two-sided at `LEVEL`."""
    if arms.paired:
        return holds("differences at the same seed are tested, into which the spread of an arm does not enter")
    ours, theirs = (_estimate(arms, arm) for arm in (arms.candidate, arms.baseline))
    if not (ours.df and theirs.df):
        return not_known("the spread of both arms, since one has fewer than two runs")
    numbers: dict[str, float] = {"candidate": ours.sigma, "baseline": theirs.sigma}
    spreads = (
        f"standard deviation {ours.sigma:.3g} of {quote(arms.label(arms.candidate))} and {theirs.sigma:.3g} of "
        f"{quote(arms.label(arms.baseline))}"
    )
    wide, narrow = sorted((ours, theirs), key=lambda estimate: -estimate.sigma)
    if not narrow.sigma:
        if not wide.sigma:
            return holds(spreads, **numbers)
        return tell(f"{spreads}; Student's test takes both to be one", **numbers)
    p = min(1.0, 2 * f_sf((wide.sigma / narrow.sigma) ** 2, wide.df, narrow.df))
    numbers["p"] = p
    if p > LEVEL:
        return holds(f"{spreads}; an F test that they are one has p = {format_p(p)}", **numbers)
    wider = arms.label(arms.candidate if wide is ours else arms.baseline)
    return tell(
        f"{quote(wider)} spreads wider: {spreads} (an F test at {LEVEL:g} has p = {format_p(p)}), and Student's test "
        "takes both to be one",
        **numbers,
    )


def _estimate(arms: ComparedArms, arm: str) -> SigmaEstimate:
    if (printed := arms.evidence.summaries.get(arm)) is not None:
        return SigmaEstimate(printed.std, printed.n - 1)
    values = [run.value for run in arms.runs_of(arm) if run.value is not None]
    if len(values) < 2:
        return SigmaEstimate(0.0, 0.0)
    scale = max(map(abs, values)) or 1.0  # so that 1e200 can be squared
    sigma, freedom = pool_spreads([[value / scale for value in values]])
    return SigmaEstimate(scale * sigma, freedom)
