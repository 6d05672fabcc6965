"""Flags a gain that no modification ever had: it is more often a leak than a discovery."""

from __future__ import annotations

#: The largest gain over its baseline in standard deviations of a run that one of the five studies prints: 0.0071 nats
#: at 0.0003 (premature, table 11). The transfer study's largest is 4.47.
SIGMAS = 24.0
#: The largest share of the baseline's loss that a modification took off. "paper": 0.0222 of 3.286 nats is the largest
#: that is printed (premature, table 4, from perplexities 26.738 and 26.152). Else: 6.588 to 6.225 nats, softpick in
#: this package's demo of the transfer study, 44 steps.
SHARES = {"paper": 0.0068}
SHORT_SHARE = 0.055


def flagged(gain: float, sigma: float, baseline: float, preset: str, *, loss: bool) -> str | None:
    """Say what to look at if a gain is above every known one; None where it is not.

    Args:
        sigma: standard deviation of a run.
        baseline: the mean of its runs.
        loss: the metric is a loss in nats, of which a share can be told.
    """
    found = []
    if gain > SIGMAS * sigma:
        found.append(f"{gain / sigma:.3g} standard deviations of a run (the largest that the five studies print is 24)")
    share, known = gain / baseline, SHARES.get(preset, SHORT_SHARE)
    if loss and share > known:
        largest = f"the largest known at this preset is {100 * known:.2g} %"
        found.append(f"{100 * share:.2g} % of the baseline's loss ({largest})")
    if not found:
        return None
    return (
        f"a gain of {' and '.join(found)} is more than any modification of the five studies or of their finished runs "
        "had: look at whether it reads what it is to predict (its loss by position, and text that a run of it writes: "
        "plumbline sample), whether both arms read the same tokens, and whether the loss is still that of the logits"
    )
