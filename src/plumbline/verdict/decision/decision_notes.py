"""Works out what a decision says beside its verdict: the cost of a fixed number of runs, how many more would decide,
and whether the baseline drifts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import special

from plumbline.stats.sentinel import drift
from plumbline.stats.sequential import Look, SequentialDesign, operating
from plumbline.verdict.decision.outcome import BASELINE, ArmRun, ExperimentTerms
from plumbline.verdict.formatting import listed

#: A drift that is so rarely seen where nothing moves is told.
DRIFT = 0.01
#: More runs than these are not proposed.
MOST_MORE = 100


def fixed_runs(design: SequentialDesign) -> int | None:
    """Count the candidate runs of a design of fixed size, beside the same bank, with this design's power at `worth`."""
    if design.worth is None or design.plan != "bank":
        return None
    power = operating(design, design.worth).kept
    for n in range(1, 10 * design.most):
        df = design.bank + n - 2
        if df >= 1:
            shift = design.worth / math.sqrt(1 / design.bank + 1 / n)
            critical = float(special.stdtrit(df, 1 - design.alpha))
            if 1 - float(special.nctdtr(df, shift, critical)) >= power:
                return n
    return None


def further(terms: ExperimentTerms, at: Look) -> int | None:
    """Count the candidate runs more at which the gain that was seen would pass a t test; None where none would."""
    design = terms.design
    gain = at.gain - terms.min_gain
    if design.plan != "bank" or gain <= 0:
        return None
    for k in range(at.k + 1, at.k + MOST_MORE):
        t = gain / (at.sigma * math.sqrt(1 / design.bank + 1 / k))
        if t >= float(special.stdtrit(at.df + k - at.k, 1 - design.alpha / 2)):
            return k - at.k
    return None


def moved(runs: Sequence[ArmRun], order: Sequence[str]) -> list[str]:
    """Say where the baseline's runs, a sentinel among them, drift along the order in which all runs were made."""
    theirs = [run for run in runs if run.arm == BASELINE and run.has_value and run.value is not None]
    if not any(run.sentinel for run in theirs) or len(theirs) < 3:
        return []
    values = [run.value for run in theirs if run.value is not None]
    found = drift(values, [order.index(run.run_id) for run in theirs])
    if found.p >= DRIFT:
        return []
    return [
        f"The baseline drifts: by {found.total:+.3g} from its first run to its newest (p = {found.p:.2g}). The "
        "trainer, its data or its machine may have changed since the bank was made."
    ]


def ends(terms: ExperimentTerms, runs: Sequence[ArmRun]) -> list[str]:
    """Say how runs ended that count all the same, each thing once with the seeds of its arm."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        for remark in run.remarks:
            seeds.setdefault((terms.baseline if run.arm == BASELINE else run.arm, remark), []).append(str(run.seed))
    return [
        f"Of {label}, seed{'s' * (len(each) > 1)} {listed(each)}: {remark}." for (label, remark), each in seeds.items()
    ]


def notes(terms: ExperimentTerms) -> list[str]:
    """Say what a page of these terms has to say whatever was found."""
    if terms.varies != "initialisation":
        return []
    return ["Seeds change the initialisation alone: the noise of the order of data is not in these numbers."]
