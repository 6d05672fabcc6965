"""Checks claims about the seven tasks: Table 2 and section 5.2."""

from __future__ import annotations

import math

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    Verdict,
    in_turn,
    number,
    order,
    ranking,
    signs,
)
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.stats.paired_runs import PairedResult

from ..downstream_tasks import PairedTaskScores, count_losses, sign_test
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

TASKS = ("piqa", "hellaswag", "arc_easy", "arc_challenge", "race", "lambada", "mmlu")

#: A difference is near the printed one within so many of its task's printed standard deviations.
DEVIATIONS = 2


def _require_scores(e: Evidence) -> PairedTaskScores:
    """The comparison, if every run of it has all its scores."""
    comparison = e.tasks
    for seed, pair in comparison.pairs.items():
        for side, key in enumerate(pair):
            if key is None or comparison.scores(side)[seed].isna().any():
                raise MissingRun(DIVERGED if e.run_values.outcome(key) == DIVERGED else MISSING, f"{key} or its scores")
            e.used.add(key)
    if not comparison.pairs:
        raise MissingRun(MISSING, "the GPT pair")
    return comparison


def _delta(e: Evidence, task: str) -> PairedResult:
    return _require_scores(e).difference(task)


def _task(e: Evidence, claim: PaperClaim) -> Values:
    task = claim.id.removeprefix("t2_")
    difference = _delta(e, task)
    numbers = {"delta_pp_std": 100 * difference.sigma, "wins": f"{difference.wins} of {difference.n}"}
    numbers |= {
        side: float(e.tasks.values(task, place).mean()) for place, side in enumerate(("control", "intervention"))
    }
    size = near(DEVIATIONS * claim.values["delta_pp_std"])
    return ComputedValues(values={"delta_pp_mean": 100 * difference.mean}, near=size, shown=numbers)


def in_noise(claim: PaperClaim) -> float:
    """How far from zero the mean difference of three pairs comes in noise: two of its standard errors, by the printed
    deviation."""
    return float(2 * claim.values["delta_pp_std"] / math.sqrt(3))


def beyond_noise(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: the printed sign, and beyond noise where it is printed so."""
    name, noise = "delta_pp_mean", in_noise(claim)
    return signs(name, beyond=noise if abs(claim.values[name]) > noise else None)(claim, measured)


CHECKS.of(*(f"t2_{task}" for task in TASKS), compare=in_turn(beyond_noise, number))(_task)


#: Two of the paper's standard deviations of the average, in points; wins of 21 pairs, of which a fair coin's standard
#: deviation is 2.3.
MEAN, WINS = near(2 * 0.143), near(2)

#: Two standard errors of that average over three pairs, by the printed deviations of the seven tasks: the printed
#: deviation of the average itself is smaller than tasks that do not cancel each other allow.
MEAN_NOISE = 0.396

CHECKS.of("t2_mean", effect=signs("delta_pp_mean", beyond=MEAN_NOISE))(_task)


@CHECKS.of(effect=signs("pp", beyond=MEAN_NOISE), near=MEAN)
def downstream_mean(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the paired difference of the seven tasks' average, in percentage points, the mean over seeds."""
    return {"pp": 100 * _delta(e, "mean").mean}


@CHECKS.of(near=WINS)
def downstream_wins(e: Evidence, claim: PaperClaim) -> Values:
    """Count the pairs of a seed and a task that the intervention wins, with the sign test's p next to them."""
    contests = _require_scores(e).compute_difference_over_all()
    p = sign_test(contests.wins, count_losses(contests))
    return ComputedValues(
        values={"wins": contests.wins}, shown={"out_of": contests.n, "ties": contests.ties, "p_sign_test": p}
    )


#: A task is nearly flat if its difference is at most this share of the smallest of the gains that are called largest.
FLAT = 0.25


def _judge_largest(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """By the tasks of the largest gains; `partly` where they are in another order, or the task that is called flat is
    not."""
    tasks = ComputedValues(values={"order": measured.values["order"]})
    if number(claim, tasks)[0] != "reproduced":
        return "not reproduced", "others gain most"
    verdict, why = order("order")(claim, tasks)
    if measured.values["flat"] != claim.values["flat"]:
        return "partly", f"{why}; {claim.values['flat']} is not nearly flat"
    return "reproduced" if verdict == "reproduced" else "partly", why


@CHECKS.of(compare=_judge_largest)
def downstream_largest(e: Evidence, claim: PaperClaim) -> Values:
    """Order the tasks by their paired difference, as many as the claim names, and decide whether the task that it calls
    flat is nearly so."""
    deltas, flat = {task: _delta(e, task).mean for task in TASKS}, claim.values["flat"]
    listed = ranking(deltas, highest_first=True)[: len(claim.values["order"])]
    least = sorted(deltas.values(), reverse=True)[len(claim.values["order"]) - 1]
    is_flat = abs(deltas[flat]) <= FLAT * least
    values = {"order": listed, "flat": flat if is_flat else "not nearly flat"}
    limits = {f"share of {flat}": (abs(deltas[flat]) / least, FLAT)} if least > 0 else {}
    return ComputedValues(values=values, shown={task: 100 * deltas[task] for task in deltas}, limits=limits)
