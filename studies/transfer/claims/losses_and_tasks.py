"""Checks claims about validation loss and single tasks: Tables 5 and 7, Figures 2 and 3, appendices D and E.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    at_most_partly,
    first,
    in_turn,
    number,
    order,
    ranking,
    signs,
    statements,
)
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import factor, near, up_to

from ..hardware_comparison import ARM, compare_hardware
from ..headline_runs import BASE
from .base_scale import CLIMB, SIGMA, side
from .claim_evidence import SIGNIFICANT_Z, Evidence
from .large_scale import ONE_RUN_EACH

CHECKS = ClaimChecks()

TABLE_7 = ["softpick", "qknorm", "baseline", "sigmoid_attn", "ssmax", "attnres"]
#: Nats between two trainings of the paper's baseline, on two devices (appendix D).
TWICE = 0.015
#: Losses as near as two pairs of those are the same after a second training.
LOSS = near(2 * TWICE)
#: Between two trainings of one model: no spread is printed of a loss; two deviations of a difference of two runs, as
#: another paper's three seeds at 270M have them.
LOSS_NOISE = 0.006
#: The smallest printed gap (0.058 nats) moves by a quarter when the losses move by one of them.
GAP = factor(1.25)
#: Whole points, as printed, and two sigmas of the baseline.
POINTS = near(0.5 + 0.42)
#: Accuracy on one task of a thousand or two of items has a standard error of about this.
TASK = near(0.01)
#: One sigma of the baseline's averages.
ONE_SIGMA = near(0.0021)
#: "Near baseline": at most so many per cent above its loss, between the printed 3 and 13.
NEAR_BASELINE = 5
#: A drop tracks the loss below this part of the points a nat that the softmax replacements lose.
TRACKS = 0.5
#: "Within visual resolution": within this share of the baseline's curve, from this share of training on.
UNSEEN, CURVE_FROM = 0.01, 0.1
#: "Near 0": a tenth of what the baseline has on LAMBADA, and as much for the baseline itself.
NEAR_ZERO = near(0.042)
#: Tasks left out at either end: "nearly every" task is ten of twelve, "most" are eight.
NEARLY_EVERY, MOST = 1, 2
#: "Broadly": below on so many of twelve tasks, none of which carries so much of what is lost.
BROAD_TASKS, LARGEST_SHARE = 10, 0.5
#: "No systematic direction": tasks up less tasks down, in standard errors of a sign test.
NO_DIRECTION = 2
#: Half a unit of the last digit in which tasks are printed, and bounds of their differences.
DIGIT, BOUND = 5e-5, up_to(0.0005)


@CHECKS.of(*(f"t7_val_loss_{method}" for method in TABLE_7), near=LOSS)
def val_loss(e: Evidence, claim: PaperClaim) -> Values:
    """Read the final validation loss of the claim's method at the base scale."""
    return {"val_loss": e.loss(claim.id.removeprefix("t7_val_loss_"))}


@CHECKS.of(compare=order("order"))
def t7_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the methods of Table 7 by final validation loss, lowest first."""
    losses = {method: e.loss(method) for method in TABLE_7}
    return {"order": ranking(losses, highest_first=False)}


def _gap(e: Evidence, method: str) -> float:
    return e.loss(method) - e.loss(e.reference)


def _compute_gap_percent(e: Evidence, method: str) -> float:
    return 100 * _gap(e, method) / e.loss(e.reference)


@CHECKS.of(effect=signs("sigmoid_attn", "ssmax", "attnres"), near=GAP)
def loss_gap_pct(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many percent three failures end above the baseline's validation loss."""
    return {method: _compute_gap_percent(e, method) for method in ("sigmoid_attn", "ssmax", "attnres")}


@CHECKS.of(effect=signs("attention", "attnres"), near=GAP)
def loss_gap_nats(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many nats failures end above the baseline's validation loss: the larger gap of the two in
    attention, and that of attention residuals."""
    return {"attention": max(_gap(e, "sigmoid_attn"), _gap(e, "ssmax")), "attnres": _gap(e, "attnres")}


@CHECKS.of(effect=signs("sigmoid_attn", "ssmax"), near=POINTS)
def climb_drop_points(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many points of CLIMB-avg sigmoid attention and SSMax fall below the baseline."""
    return {method: -100 * e.delta(method) for method in ("sigmoid_attn", "ssmax")}


#: The softmax replacements, which fail on tasks and not in loss.
REPLACEMENTS = ("sigmoid_attn", "ssmax")


def _both_fail(e: Evidence) -> bool:
    """Whether both replacements lose on tasks, beyond noise: without that there is no failure to be seen or missed."""
    return all(side(e, method) < 0 for method in REPLACEMENTS)


@CHECKS.of(
    effect=in_turn(signs("loss_pct", "points"), statements("both_fail")), near={"loss_pct": GAP, "points": POINTS}
)
def decoupling_band(e: Evidence, claim: PaperClaim) -> Values:
    """Compute, over the two replacements, the ranges of their loss gaps in percent and of their drops in points."""
    gaps, points = [_compute_gap_percent(e, m) for m in REPLACEMENTS], [-100 * e.delta(m) for m in REPLACEMENTS]
    ranges = {"loss_pct": [min(gaps), max(gaps)], "points": [min(points), max(points)]}
    return ranges | {"both_fail": _both_fail(e)}


@CHECKS.of(effect=statements("both_fail", "flagged"))
def loss_ranking_misses(e: Evidence, claim: PaperClaim) -> Values:
    """Sort three failures by whether their loss is near the baseline's, above or below; the third is far above it."""
    gaps = {method: _compute_gap_percent(e, method) for method in (*REPLACEMENTS, "attnres")}
    near_it = [method for method, gap in gaps.items() if abs(gap) <= NEAR_BASELINE]
    far = [method for method in gaps if method not in near_it]
    flagged = gaps["attnres"] > NEAR_BASELINE
    return ComputedValues(
        values={"near": near_it, "far": far, "both_fail": _both_fail(e), "flagged": flagged},
        limits={f"% above of {method}": (gap, NEAR_BASELINE) for method, gap in gaps.items()},
    )


@CHECKS.of(effect=statements("decoupled"))
def decoupling_attention_only(e: Evidence, claim: PaperClaim) -> Values:
    """A drop tracks the loss where it is far fewer points a nat than the softmax replacements lose, which lose some
    beyond noise."""

    def rate(method: str) -> float:
        gap = _gap(e, method)
        return -100 * e.delta(method) / gap if gap > 0 else float("inf")

    bound = TRACKS * min(map(rate, REPLACEMENTS))
    rates = {method: rate(method) for method in claim.values["track_loss"]}
    return ComputedValues(
        values={
            "track_loss": [method for method, value in rates.items() if 0 < value < bound],
            "decoupled": _both_fail(e),
        },
        shown={f"points_per_nat_{method}": value for method, value in rates.items()},
        limits={f"points a nat of {method}": (value, bound) for method, value in rates.items()},
    )


@CHECKS.of()
def winners_track_loss(e: Evidence, claim: PaperClaim) -> Values:
    """List the methods whose curve is nowhere as far from the baseline's as an eye tells apart."""
    curves = {}
    for method in (e.reference, *claim.values["ids"]):
        metrics = e.frames.metrics(e.key(method, BASE)).query("split == 'validation'")
        curves[method] = metrics.set_index("step")["loss"]
    base = curves[e.reference]
    late = base.index[base.index >= CURVE_FROM * base.index.max()]
    apart = {m: float((curves[m].reindex(late) / base[late] - 1).abs().max()) for m in claim.values["ids"]}
    limits = {f"apart of {method}": (share, UNSEEN) for method, share in apart.items()}
    return ComputedValues(
        values={"ids": [m for m, share in apart.items() if share < UNSEEN]}, shown=apart, limits=limits
    )


@CHECKS.of(effect=statements("falls"), near=NEAR_ZERO)
def sigmoid_lambada(e: Evidence, claim: PaperClaim) -> Values:
    """Read the accuracy on LAMBADA of the baseline and of sigmoid attention, which has less than half of it left."""
    task = "lambada_openai"
    values = {"baseline": e.tasks(e.reference)[task], "sigmoid": e.tasks("sigmoid_attn")[task]}
    return values | {"falls": values["sigmoid"] < values["baseline"] / 2}


@CHECKS.of(near={"loss": TASK})
def sigmoid_other_tasks(e: Evidence, claim: PaperClaim) -> Values:
    """On how many tasks the loss is as printed, and the smallest and largest."""
    losses = -e.task_deltas("sigmoid_attn").drop("lambada_openai")
    low, high = claim.values["loss"]
    there = sum(low <= loss <= high or TASK(low, loss) or TASK(high, loss) for loss in losses)
    return {"tasks": int(there), "loss": [float(losses.min()), float(losses.max())]}


def _middle(losses: pd.Series, left_out: int) -> list[float]:
    """The smallest and the largest drop without some tasks at either end."""
    ordered = sorted(losses)
    return [float(ordered[left_out]), float(ordered[-1 - left_out])]


@CHECKS.of(near=TASK)
def ssmax_uniform(e: Evidence, claim: PaperClaim) -> Values:
    """Nearly every task: ten of twelve."""
    return {"loss": _middle(-e.task_deltas("ssmax"), NEARLY_EVERY)}


@CHECKS.of(effect=in_turn(signs("z"), statements("apart")), near={"loss": TASK, "z": SIGMA})
def layerscale_uniform(e: Evidence, claim: PaperClaim) -> Values:
    """Most tasks: eight of twelve."""
    method = "layerscale"
    apart = {"apart": side(e, method) != 0}
    return {"loss": _middle(-e.task_deltas(method), MOST), "z": e.z(method)} | apart


def _judge_breadth(e: Evidence, method: str) -> tuple[bool, dict[str, float], dict[str, tuple[float, float]]]:
    """Significantly below, below on nearly all tasks, and no task carries half of what is lost, so that it is not the
    failure of one skill; what is shown of it, and its limits."""
    deltas, z = e.task_deltas(method), e.z(method)
    below, share = int((deltas < 0).sum()), float(deltas.min() / deltas.sum())
    broad = z < -SIGNIFICANT_Z and below >= BROAD_TASKS and share < LARGEST_SHARE
    limits = {"tasks_below": (below, BROAD_TASKS), "largest_share": (share, LARGEST_SHARE), "z": (z, -SIGNIFICANT_Z)}
    return broad, {"z": z, "tasks_below": below, "largest_share": share}, limits


@CHECKS.of()
def hyper_uniform(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether hyper-connections lose broadly: significantly, on ten of twelve tasks, on none of them half of
    it."""
    holds, numbers, limits = _judge_breadth(e, "hyper")
    return ComputedValues(holds=holds, shown=numbers, limits=limits)


@CHECKS.of(effect=signs("z", "nats"), compare=in_turn(statements("broad"), number))
def attnres_broad(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether attention residuals lose broadly over tasks, and read their z and their loss above the
    baseline's."""
    broad, numbers, limits = _judge_breadth(e, "attnres")
    z = numbers.pop("z")
    return ComputedValues(
        values={"broad": broad, "z": z, "nats": _gap(e, "attnres")},
        near={"z": SIGMA, "nats": GAP},
        shown=numbers,
        limits=limits,
    )


@CHECKS.of(effect=statements("sharp"), compare=in_turn(first("tasks"), at_most_partly("same_tasks")))
def attention_failures_sharp_tasks(e: Evidence, claim: PaperClaim) -> Values:
    """Find the three tasks on which sigmoid, SSMax and differential attention lose most, the mean of the three; on the
    first of them they lose more than two standard errors. The two that follow it may be in either order."""
    drops = -pd.concat([e.task_deltas(m) for m in ("sigmoid_attn", "ssmax", "diff_attn")], axis=1).mean(axis=1)
    tasks = list(drops.sort_values(ascending=False, kind="stable").index[:3])
    sharp, same = bool(drops[tasks[0]] > 2 * TASK.limit), set(tasks) == set(claim.values["tasks"])
    return {"tasks": tasks, "sharp": sharp, "same_tasks": same}


def _two_devices(e: Evidence) -> tuple[str, str]:
    """The keys of Table 5's two runs; absent where they say nothing about devices."""
    keys = e.key(e.reference, BASE), e.key(ARM, BASE)
    comparison = compare_hardware(e.frames, e.study, *keys)
    if not comparison.evidence:
        raise MissingRun(comparison.word, keys[1], comparison.why)
    for key in keys:
        outcome = e.frames.runs.loc[key, "outcome"]
        if outcome == "diverged":
            raise MissingRun("diverged", key)
    return keys


def _second_less_first(e: Evidence) -> pd.Series:
    primary, second = (e.frames.task_scores(key) for key in _two_devices(e))
    if primary.empty or second.empty:
        raise MissingRun("missing", "scores of the two profiles")
    return second - primary


@CHECKS.of(effect=statements("match"), near={"a100": CLIMB, "primary": CLIMB, "diff": ONE_SIGMA})
def a100_match(e: Evidence, claim: PaperClaim) -> Values:
    """Read the baseline's CLIMB-avg on both devices, and the distance between them, which is within noise."""
    primary, second = (e.value(key, "average") for key in _two_devices(e))
    apart = abs(second - primary)
    return {"a100": second, "primary": primary, "diff": apart, "match": apart <= ONE_RUN_EACH}


@CHECKS.of()
def a100_per_task(e: Evidence, claim: PaperClaim) -> Values:
    """Within the bound that each section prints, to its rounding."""
    worst = float(_second_less_first(e).abs().max())
    return ComputedValues(values={"app_d": worst, "limitations": worst}, near=BOUND)


@CHECKS.of(near=near(TWICE), compare=in_turn(signs("diff", beyond=LOSS_NOISE), number))
def a100_val_loss(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how far the baseline's validation loss on the second device lies above that on the first."""
    primary, second = (e.value(key, "validation_loss") for key in _two_devices(e))
    return {"diff": second - primary}


@CHECKS.of(effect=statements("no_direction"))
def a100_direction(e: Evidence, claim: PaperClaim) -> Values:
    """No systematic direction: a sign test over the tasks that differ does not reject. Equal: as printed, to four
    digits. Which tasks they are is what is printed: another set is another result."""
    difference = _second_less_first(e)
    lower = list(difference.index[difference < -DIGIT])
    higher = list(difference.index[difference > DIGIT])
    equal = [task for task in difference.index if task not in (*lower, *higher)]
    errors = abs(len(lower) - len(higher)) / math.sqrt(max(len(lower) + len(higher), 1))
    values = {"primary_higher": lower, "a100_higher": higher, "equal": equal, "no_direction": errors <= NO_DIRECTION}
    return ComputedValues(values=values, limits={"standard errors of a sign test": (errors, NO_DIRECTION)})
