"""Claims about validation loss and single tasks: Tables 5 and 7, Figures 2 and 3, appendices D and E.

One function for each claim, named as the claim; what it says is in config/studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from plumbline.results.checkers import Measured, factor, near, order
from plumbline.results.measures import Absent, Measures, Values
from plumbline.results.published import Claim
from plumbline.studies.transfer.claims.evidence import SIGNIFICANT_Z, Evidence
from plumbline.studies.transfer.headline import BASE
from plumbline.studies.transfer.tables.table5 import ARM

MEASURES = Measures()

TABLE_7 = ["softpick", "qknorm", "baseline", "sigmoid_attn", "ssmax", "attnres"]
#: Losses this near (nats) are the same after a second training.
LOSS = near(0.03)


@MEASURES.of(*(f"t7_val_loss_{method}" for method in TABLE_7), near=LOSS)
def val_loss(e: Evidence, claim: Claim) -> Values:
    return {"val_loss": e.loss(claim.id.removeprefix("t7_val_loss_"))}


@MEASURES.of("t7_order", compare=order("order"))
def t7_order(e: Evidence, claim: Claim) -> Values:
    losses = {method: e.loss(method) for method in TABLE_7}
    return {"order": sorted(losses, key=losses.__getitem__)}


def _gap(e: Evidence, method: str) -> float:
    return e.loss(method) - e.loss(e.reference)


def _percent(e: Evidence, method: str) -> float:
    return 100 * _gap(e, method) / e.loss(e.reference)


@MEASURES.of("loss_gap_pct", near=factor(1.25))
def loss_gap_pct(e: Evidence, claim: Claim) -> Values:
    return {method: _percent(e, method) for method in ("sigmoid_attn", "ssmax", "attnres")}


@MEASURES.of("loss_gap_nats", near=factor(1.25))
def loss_gap_nats(e: Evidence, claim: Claim) -> Values:
    return {"attention": max(_gap(e, "sigmoid_attn"), _gap(e, "ssmax")), "attnres": _gap(e, "attnres")}


@MEASURES.of("climb_drop_points", near=factor(1.25))
def climb_drop_points(e: Evidence, claim: Claim) -> Values:
    return {method: -100 * e.delta(method) for method in ("sigmoid_attn", "ssmax")}


@MEASURES.of("decoupling_band", near=factor(1.25))
def decoupling_band(e: Evidence, claim: Claim) -> Values:
    pair = ("sigmoid_attn", "ssmax")
    gaps, points = [_percent(e, m) for m in pair], [-100 * e.delta(m) for m in pair]
    return {"loss_pct": [min(gaps), max(gaps)], "points": [min(points), max(points)]}


@MEASURES.of("loss_ranking_misses")
def loss_ranking_misses(e: Evidence, claim: Claim) -> Values:
    """Near: at most 5 % above the baseline's loss."""
    gaps = {method: _percent(e, method) for method in ("sigmoid_attn", "ssmax", "attnres")}
    near_it = [method for method, gap in gaps.items() if gap <= 5]
    return {"near": near_it, "far": [method for method in gaps if method not in near_it]}


@MEASURES.of("decoupling_attention_only")
def decoupling_attention_only(e: Evidence, claim: Claim) -> Values:
    """A drop tracks the loss where it is less than half as many points a nat as the softmax replacements lose."""

    def rate(method: str) -> float:
        gap = _gap(e, method)
        return -100 * e.delta(method) / gap if gap > 0 else float("inf")

    bound = min(rate("sigmoid_attn"), rate("ssmax")) / 2
    rates = {method: rate(method) for method in claim.values["track_loss"]}
    return Measured(
        values={"track_loss": [method for method, value in rates.items() if 0 < value < bound]},
        shown={f"points_per_nat_{method}": value for method, value in rates.items()},
    )


@MEASURES.of("winners_track_loss")
def winners_track_loss(e: Evidence, claim: Claim) -> Values:
    """Within 1 % of the baseline's curve from the tenth of training on."""
    curves = {}
    for method in (e.reference, *claim.values["ids"]):
        metrics = e.frames.metrics(e.key(method, BASE)).query("split == 'validation'")
        curves[method] = metrics.set_index("step")["loss"]
    base = curves[e.reference]
    late = base.index[base.index >= 0.1 * base.index.max()]
    apart = {m: float((curves[m].reindex(late) / base[late] - 1).abs().max()) for m in claim.values["ids"]}
    return Measured(values={"ids": [m for m, share in apart.items() if share < 0.01]}, shown=apart)


@MEASURES.of("sigmoid_lambada", near=near(0.05))
def sigmoid_lambada(e: Evidence, claim: Claim) -> Values:
    return {"baseline": e.tasks(e.reference)["lambada_openai"], "sigmoid": e.tasks("sigmoid_attn")["lambada_openai"]}


@MEASURES.of("sigmoid_other_tasks", near={"loss": near(0.02)})
def sigmoid_other_tasks(e: Evidence, claim: Claim) -> Values:
    losses = -e.task_deltas("sigmoid_attn").drop("lambada_openai")
    return {"tasks": int((losses > 0).sum()), "loss": [float(losses.min()), float(losses.max())]}


def _middle(losses: pd.Series) -> list[float]:
    """On nearly every task: the second smallest and the second largest drop."""
    ordered = sorted(losses)
    return [float(ordered[1]), float(ordered[-2])]


@MEASURES.of("ssmax_uniform", near=near(0.01))
def ssmax_uniform(e: Evidence, claim: Claim) -> Values:
    return {"loss": _middle(-e.task_deltas("ssmax"))}


@MEASURES.of("layerscale_uniform", near={"loss": near(0.01), "z": factor(1.5)})
def layerscale_uniform(e: Evidence, claim: Claim) -> Values:
    return {"loss": _middle(-e.task_deltas("layerscale")), "z": e.z("layerscale")}


def _broad(e: Evidence, method: str) -> tuple[bool, dict[str, float]]:
    """Significantly below, and below on at least ten of twelve tasks."""
    below, z = int((e.task_deltas(method) < 0).sum()), e.z(method)
    return z < -SIGNIFICANT_Z and below >= 10, {"z": z, "tasks_below": below}


@MEASURES.of("hyper_uniform")
def hyper_uniform(e: Evidence, claim: Claim) -> Values:
    holds, shown = _broad(e, "hyper")
    return Measured(holds=holds, shown=shown)


@MEASURES.of("attnres_broad")
def attnres_broad(e: Evidence, claim: Claim) -> Values:
    holds, shown = _broad(e, "attnres")
    nats = _gap(e, "attnres")
    return Measured(holds=holds and nats > 0.1, shown=shown | {"nats": nats})


@MEASURES.of("attention_failures_sharp_tasks", compare=order("tasks"))
def attention_failures_sharp_tasks(e: Evidence, claim: Claim) -> Values:
    drops = -pd.concat([e.task_deltas(m) for m in ("sigmoid_attn", "ssmax", "diff_attn")], axis=1).mean(axis=1)
    return {"tasks": list(drops.sort_values(ascending=False, kind="stable").index[:3])}


def _two_devices(e: Evidence) -> tuple[str, str]:
    keys = e.key(e.reference, BASE), e.key(ARM, BASE)
    for key in keys:
        outcome = e.frames.runs.loc[key, "outcome"]
        if outcome == "diverged":
            raise Absent("diverged", key)
    return keys


def _second_less_first(e: Evidence) -> pd.Series:
    first, second = (e.frames.task_scores(key) for key in _two_devices(e))
    if first.empty or second.empty:
        raise Absent("missing", "scores of the two profiles")
    return second - first


@MEASURES.of("a100_match", near={"a100": near(0.0042), "primary": near(0.0042), "diff": near(0.0021)})
def a100_match(e: Evidence, claim: Claim) -> Values:
    first, second = (e.value(key, "average") for key in _two_devices(e))
    return {"a100": second, "primary": first, "diff": abs(second - first)}


@MEASURES.of("a100_per_task")
def a100_per_task(e: Evidence, claim: Claim) -> Values:
    worst = float(_second_less_first(e).abs().max())
    return Measured(values={"app_d": worst, "limitations": worst}, near=lambda printed, got: got <= printed + 0.0005)


@MEASURES.of("a100_val_loss", near=near(0.015))
def a100_val_loss(e: Evidence, claim: Claim) -> Values:
    first, second = (e.value(key, "validation_loss") for key in _two_devices(e))
    return {"diff": second - first}


@MEASURES.of("a100_direction")
def a100_direction(e: Evidence, claim: Claim) -> Values:
    """No systematic direction: a sign test over the tasks that differ does not reject."""
    difference = _second_less_first(e)
    lower = list(difference.index[difference < -5e-5])
    higher = list(difference.index[difference > 5e-5])
    differ = max(len(lower) + len(higher), 1)
    return Measured(
        holds=abs(len(lower) - len(higher)) <= 2 * np.sqrt(differ),
        shown={"primary_higher": lower, "a100_higher": higher, "equal": len(difference) - len(lower) - len(higher)},
    )
