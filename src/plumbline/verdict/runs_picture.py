"""States what the picture of a comparison shows of its evidence: the values of each arm, also in the order of time.

Where it is not known when runs were made, the picture shows them in the order in which their source has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from plumbline.core.formats import format_percent
from plumbline.verdict.evidence import Evidence, RunEvidence, read_places
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.picture import DecisionPicture, PicturedArm, PicturedGain

#: Arms and runs that are drawn at most; two arms are, whatever they have.
MOST_ARMS, MOST_RUNS = 40, 2000
#: What the picture shows, where it cannot be seen.
ALT = "values by method, also from run to run, and each gain with its interval"


def picture_runs(
    evidence: Evidence,
    baselines: Sequence[str],
    candidates: Sequence[str],
    comparisons: Mapping[str, BaselineComparison],
    *,
    title: str,
    higher: bool,
    listed_by: str,
    minimum_gain: float = 0.0,
) -> DecisionPicture:
    """State what is drawn of a comparison's arms, in the order of `baselines` and `candidates`, as many as are drawn.

    Args:
        comparisons: candidate -> its judgement, of those that have one.
        listed_by: what the source has its runs by ("rows"), for where the order in which they were made is not known.
    """
    names = _choose_arms(evidence, list(dict.fromkeys([*baselines, *candidates])))
    with_values = {
        name: [(seed, run, run.value) for seed, run in evidence.runs.get(name, {}).items() if run.value is not None]
        for name in names
    }
    places, is_known = _place_runs({name: [run for _, run, _ in runs] for name, runs in with_values.items()})
    arms = [
        PicturedArm(
            name=name,
            values=[(seed, value) for seed, _, value in with_values[name]],
            lost=list(evidence.lost.get(name, {}).values()),
            baseline=name in baselines,
            places=places[name],
        )
        for name in names
    ]
    drawn_comparisons = {method: each for method, each in comparisons.items() if method in names}
    levels = {2 * each.terms.alpha / each.tries for each in drawn_comparisons.values()}
    return DecisionPicture(
        title=title,
        metric=evidence.metric,
        higher=higher,
        arms=arms,
        gains=[
            PicturedGain(
                name=method,
                middle=each.gain,
                low=each.low,
                high=each.high,
                note=f"{each.n} against {each.n_baseline} runs" if each.n_baseline else f"{each.n} runs",
            )
            for method, each in drawn_comparisons.items()
        ],
        interval=" or ".join(format_percent(1 - level) for level in sorted(levels)),
        asked=minimum_gain,
        listed_by="" if is_known else listed_by,
    )


def describe_order(picture: DecisionPicture, arms: int) -> str:
    """State in which order a picture shows its runs, and how many of the `arms` it has; empty of a single run."""
    if not picture.runs_in_order:
        return ""
    tail = f" It has the first {len(picture.arms)} of {arms}." if len(picture.arms) < arms else ""
    if picture.listed_by:
        return (
            "In which order the runs were made is not known: the picture shows their values in the order of the "
            f"{picture.listed_by}.{tail}"
        )
    return f"The picture shows the values of the runs in the order in which these were made.{tail}"


def _choose_arms(evidence: Evidence, names: Sequence[str]) -> list[str]:
    totals = accumulate(len(evidence.runs.get(name, {})) for name in names)
    return [name for place, (name, runs) in enumerate(zip(names, totals)) if place < 2 or runs <= MOST_RUNS][:MOST_ARMS]


def _place_runs(arms: Mapping[str, Sequence[RunEvidence]]) -> tuple[dict[str, list[int]], bool]:
    """Where each run of each arm stands among all, from 0, and whether that is the order in which they were made."""
    runs = [run for of_arm in arms.values() for run in of_arm]
    times = read_places(runs)
    is_known = times is not None and all(len(set(read_places(each) or ())) == len(each) for each in arms.values())
    keys = times if times is not None and is_known else [float(run.line or 0) for run in runs]
    ranks = {place: rank for rank, place in enumerate(sorted(range(len(runs)), key=lambda place: keys[place]))}
    places, first = dict[str, list[int]](), 0
    for name, of_arm in arms.items():
        places[name] = [ranks[first + place] for place in range(len(of_arm))]
        first += len(of_arm)
    return places, is_known
