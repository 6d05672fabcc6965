"""Flags a gain that no modification ever had: it is more often a leak than a discovery."""

from __future__ import annotations

from plumbline.stats.sample_spread import bound_sigma

#: The largest gain over its baseline in standard deviations of a run that one of the five studies prints: 0.0071 nats
#: at 0.0003 (premature, table 11). The transfer study's largest is 4.47.
SIGMAS = 24.0
#: The largest share of the baseline's loss that a modification took off. "paper": 0.0222 of 3.286 nats is the largest
#: that is printed (premature, table 4, from perplexities 26.738 and 26.152). Else: 6.665 to 6.125 nats, softpick at the
#: larger scale of this package's demo of the transfer study, 44 steps; of a trainer that is not known, as much.
SHARES = {"paper": 0.0068}
SHORT_SHARE = 0.081
#: The share of the mean of a loss that is not known (perplexity, error, bits) from which its gain is examined however
#: few sigmas it is: a choice, three times `SHORT_SHARE`, and what halves a loss by a changed evaluation is above it.
#: No paper has that number. It says nothing where so many sigmas make that share, as of a metric near zero.
LONE_SHARE, LONE_SIGMAS = 0.25, 3.0
#: The chance that sigma is larger than it is taken to be.
TOO_SMALL = 0.05


def describe_implausible_gain(
    gain: float, sigma: float, df: float, baseline: float, preset: str, *, loss: bool
) -> str | None:
    """State what to look at if a gain is above every known one; None if it is not.

    Args:
        sigma: standard deviation of a run, and its degrees of freedom: few runs make it small by chance.
        baseline: the mean of its runs.
        loss: the metric is a loss in nats, of which a share can be told.
    """
    measures = [_format_in_sigmas(gain, sigma)] if _is_above_known(gain, sigma, df) else []
    share, largest_share = gain / baseline, SHARES.get(preset, SHORT_SHARE)
    if loss and share > largest_share:
        largest = f"the largest known at this preset is {100 * largest_share:.2g} %"
        measures.append(f"{100 * share:.2g} % of the baseline's loss ({largest})")
    if not measures:
        return None
    return (
        f"a gain of {' and '.join(measures)} is more than any modification of the five studies or of their finished "
        "runs had: look at whether it reads what it is to predict (its loss by position, and text that a run of it "
        "writes: plumbline sample), whether both arms read the same tokens, and whether the loss is still that of the "
        "logits"
    )


def describe_implausible_own_gain(
    gain: float, sigma: float, df: float, baseline: float, *, positive_loss: bool = False
) -> str | None:
    """State the same of a trainer of which nothing is known: of a gain that is large in both measures, or of a large
    share alone where a share means something (`positive_loss`: lower is better, and no run had a value of zero or less;
    of an accuracy or a reward any share may be a discovery).
    """
    share = abs(gain / baseline) if baseline else 1.0
    if _is_above_known(gain, sigma, df) and share > SHORT_SHARE:
        measures = f"{_format_in_sigmas(gain, sigma)} and {100 * share:.2g} % of the baseline's mean"
    elif positive_loss and share > LONE_SHARE and LONE_SHARE * baseline > LONE_SIGMAS * sigma:
        measures = f"{100 * share:.2g} % of the baseline's mean (above {100 * LONE_SHARE:g} % is looked at, by choice)"
    else:
        return None
    return (
        f"a gain of {measures} is more than a change of one thing has: look at whether it reads what it is to predict, "
        "whether it trains longer or on other data than the baseline, and whether the metric is still computed alike"
    )


def _is_above_known(gain: float, sigma: float, df: float) -> bool:
    """Whether a gain is above every known one by sigma's upper bound."""
    return gain > SIGMAS * bound_sigma(sigma, df, 2 * TOO_SMALL)[1]


def _format_in_sigmas(gain: float, sigma: float) -> str:
    sigmas = f"{gain / sigma:.3g}" if sigma else "any number of"
    return f"{sigmas} standard deviations of a run (the largest that the five studies print is {SIGMAS:g})"
