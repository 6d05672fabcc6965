"""Worlds in which an effect that the paper claims is turned around, while levels and spreads are as it prints them."""

from __future__ import annotations

import pandas as pd

from tests.studies.transfer.runs_with_false_claims import (
    FAILURES,
    IMPROVERS,
    MUTANTS,
    TABLE_2,
    TABLE_7,
    UP,
    UPHELD,
    Change,
    both,
    climb,
    completes,
    diverges,
    seeds,
)
from tests.studies.transfer.synthetic_results import CONCENTRATED, LESS_CONCENTRATED, MEAN, Facts, Run


def _baselines(facts: Facts, scale: str) -> list[Run]:
    return [run for (where, method, _), run in facts.items() if (where, method) == (scale, "baseline")]


def _others(facts: Facts, scale: str) -> list[tuple[str, Run]]:
    return [(method, run) for (where, method, _), run in facts.items() if where == scale and method != "baseline"]


def tasks_mirrored(scale: str) -> Change:
    """Each method's tasks as far on the other side of the baseline's; those of the second device, of the first's."""

    def change(facts: Facts) -> None:
        baselines = _baselines(facts, scale)
        middle = pd.concat([run.tasks for run in baselines], axis=1).mean(axis=1)
        for method, run in _others(facts, scale):
            if run.tasks is not None:
                run.tasks = 2 * (baselines[0].tasks if method == "second_hardware" else middle) - run.tasks

    return change


def mirror(*methods: str) -> Change:
    """The tasks of some methods alone as far on the other side of the baseline's, at both scales."""

    def change(facts: Facts) -> None:
        for scale in ("base", "large"):
            middle = pd.concat([run.tasks for run in _baselines(facts, scale)], axis=1).mean(axis=1)
            for method, run in _others(facts, scale):
                if method in methods and run.tasks is not None:
                    run.tasks = 2 * middle - run.tasks

    return change


def losses_mirrored(facts: Facts) -> None:
    """Each method's loss as far on the other side of the baseline's."""
    for scale in ("base", "large"):
        for _, run in _others(facts, scale):
            run.loss = 2 * _baselines(facts, scale)[0].loss - run.loss


def concentration_mirrored(facts: Facts) -> None:
    """What kept its concentration has lost it, and what lost it keeps it; the baseline stays."""
    for _, run in _others(facts, "base"):
        run.concentration = CONCENTRATED + LESS_CONCENTRATED - run.concentration


def spreads_turned(facts: Facts) -> None:
    """The baseline has Softpick's spread over seeds, and Softpick the baseline's."""
    seeds("baseline", MEAN + 0.0007, MEAN - 0.0015, MEAN + 0.0008)(facts)
    seeds("softpick", 0.4922 - 0.0012, 0.4922 - 0.0017, 0.4922 + 0.0021)(facts)


def completes_and_diverges(facts: Facts) -> None:
    """Of the large scale: what diverged completes, and what completed diverges as SSMax does."""
    for (scale, method, seed), run in list(facts.items()):
        if scale == "large":
            (completes(method, seed) if run.diverged is not None else diverges(method, "rise", 5800, seed))(facts)


def falling(facts: Facts) -> None:
    """Gradient norms of the runs that diverge go the other way in time: from the printed last one to the first."""
    for method in ("hybrid_norm", "ssmax", "hyper"):
        for (scale, name, _), run in facts.items():
            if (scale, name) == ("large", method) and run.diverged is not None:
                steps, norms = zip(*run.norms[:-1], strict=True)
                run.norms = [*zip(steps, reversed(norms), strict=True), run.norms[-1]]


mirrored = both(tasks_mirrored("base"), tasks_mirrored("large"), losses_mirrored, concentration_mirrored)

#: Rows of Table 2 of methods that are separated from the baseline, and those of Table 3.
SEPARATED = tuple(f"t2_{method}" for method, value in TABLE_2.items() if abs(value) > 2)
LARGE = tuple(f"t3_{method}" for method in (*IMPROVERS, *FAILURES))

#: World -> how it is made of the one where the paper is right, and the claims whose effect is reversed in it.
REVERSED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "differences mirrored at both scales": (
        mirrored,
        (
            *SEPARATED, *LARGE, "t2_order", "t3_order", "bonferroni_survivors", "bonferroni_names",
            "one_survivor_after_3b", "welch_qknorm", "welch_softpick", "bootstrap_disjoint", "stouffer_qknorm",
            "stouffer_softpick", "attention_span", "overshoot", "soft_hard_no_predictor",
            "removing_softmax_normalization", "residual_none_improves", "relu2_nominal", "diff_attn_nominal",
            "hyper_finite_1p2b", "qknorm_geglu_top_3b", "failure_taxonomy", "sign_preserved", "delta_3b_range",
            "failures_3b", "rank_moves", "t7_order", "loss_gap_pct", "loss_gap_nats", "climb_drop_points",
            "decoupling_band", "loss_ranking_misses", "decoupling_attention_only", "sigmoid_lambada",
            "layerscale_uniform", "hyper_uniform", "attnres_broad", "attention_failures_sharp_tasks", "a100_val_loss",
            "improvers_keep_concentration", "failures_lose_concentration",
        ),
    ),
    "differences mirrored at the base scale": (
        tasks_mirrored("base"),
        (
            *SEPARATED, "softpick_seeds", "t2_order", "attention_span", "climb_drop_points", "decoupling_band",
            "sign_preserved", "failures_3b", "one_survivor_after_3b", "sigmoid_lambada", "layerscale_uniform",
            "hyper_uniform", "attnres_broad",
        ),
    ),
    "differences mirrored at the large scale": (
        tasks_mirrored("large"),
        (
            *LARGE, "t3_order", "sign_preserved", "delta_3b_range", "failures_3b", "one_survivor_after_3b",
            "qknorm_geglu_top_3b", "rank_moves",
        ),
    ),
    "what improves is worse, and what is worse stays so": (
        mirror(*UP),
        (
            *(name for name in SEPARATED if TABLE_2[name.removeprefix("t2_")] > 0),
            *(f"t3_{method}" for method in IMPROVERS), "counts_by_z", "bonferroni_survivors", "bonferroni_names",
            "one_survivor_after_3b", "sign_preserved", "delta_3b_range", "qknorm_geglu_top_3b", "attention_span",
            "attention_six_of_eight", "soft_hard_no_predictor", "welch_qknorm", "welch_softpick", "bootstrap_disjoint",
            "stouffer_qknorm", "stouffer_softpick", "relu2_nominal",
        ),
    ),
    "what is worse improves, and what improves stays so": (
        mirror(*(method for method, value in TABLE_2.items() if value < 0)),
        (
            *(name for name in SEPARATED if TABLE_2[name.removeprefix("t2_")] < 0),
            *(f"t3_{method}" for method in FAILURES), "counts_by_z", "bonferroni_survivors", "sign_preserved",
            "failures_3b", "attention_span", "attention_six_of_eight", "residual_none_improves", "failure_taxonomy",
            "removing_softmax_normalization", "overshoot", "climb_drop_points", "decoupling_band", "sigmoid_lambada",
            "layerscale_uniform", "hyper_uniform", "attnres_broad", "diff_attn_nominal", "hyper_finite_1p2b",
            "decoupling_attention_only",
        ),
    ),
    "none of the improvers is above the baseline at the large scale": (
        both(*(climb("large", **{method: value}) for method, value in zip(
            IMPROVERS, (0.498, 0.497, 0.496, 0.495, 0.494, 0.493, 0.492), strict=True))),
        ("one_survivor_after_3b", "sign_preserved", "delta_3b_range", "qknorm_geglu_top_3b",
         *(f"t3_{method}" for method in IMPROVERS)),
    ),
    "losses mirrored": (
        losses_mirrored,
        (
            "t7_order", "loss_gap_pct", "loss_gap_nats", "decoupling_band", "loss_ranking_misses",
            "decoupling_attention_only", "attnres_broad", "a100_val_loss",
        ),
    ),
    "what lost on single tasks gains there": (
        both(UPHELD["sigmoid_other_tasks"], UPHELD["ssmax_uniform"], tasks_mirrored("base")),
        ("sigmoid_other_tasks", "ssmax_uniform"),
    ),
    "what diverged completes, what completed diverges": (
        completes_and_diverges,
        (
            "runs_3b", "hybrid_nan_steps", "hybrid_window", "hybrid_pre_nan_grad", "hybrid_spike", "baseline_3b_grad",
            "ssmax_3b_divergence", "ssmax_rise_length", "hyper_3b_divergence",
        ),
    ),
    "gradient norms fall": (
        falling, ("hybrid_spike", "ssmax_3b_divergence", "ssmax_rise_length", "hyper_3b_divergence"),
    ),
    "improvers in the order of the base scale": (MUTANTS["spearman_7"], ("spearman_7", "t3_order")),
    "spreads change places": (spreads_turned, ("sigma_baseline_largest",)),
}  # fmt: skip

#: Claims without a direction that could be reversed -> what they state instead.
UNDIRECTED: dict[str, str] = {
    **dict.fromkeys(
        (f"t2_{method}" for method, value in TABLE_2.items() if abs(value) <= 2), "not separated, on either side"
    ),
    **dict.fromkeys(("holm_same_as_bonferroni", "bh_adds_four"), "counts or names on both sides"),
    **dict.fromkeys(
        ("baseline_mean_sigma", "baseline_seeds", "sigma_three_refs", "gain_floor", "t3_baseline",
         *(f"t7_val_loss_{method}" for method in TABLE_7)),
        "a level or a spread",
    ),
    **dict.fromkeys(
        ("attention_span_ratio", "range_three_points"), "a size of both sides together"
    ),
    **dict.fromkeys(
        ("attention_noise_band", "geglu_equals_swiglu", "winners_track_loss", "a100_match", "a100_per_task",
         "a100_direction", "softmax_cap_inactive"),
        "no difference, or next to none",
    ),
}  # fmt: skip
