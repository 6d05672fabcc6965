"""Worlds in which exactly one thing of the paper is false, or an effect reversed: other losses, another measurement,
another document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from plumbline.specs.study_config import Study
from plumbline.studies.query_free.claims.learning_rates import SEARCHED
from plumbline.studies.query_free.claims.theorems import STATEMENTS
from plumbline.studies.query_free.run_values import BASELINE, IDENTITY, LARGE_MLP
from tests.studies.query_free.synthetic_runs import Transfer, World, study_at, with_losses

# Mutants of the runs: what is changed in the world, and exactly which claims are then not what they were. The first is
# the one that has to fail; what stands next to it follows from the same losses.

Change = Callable[[World], World]


def losses(**changed: float) -> Change:
    return lambda world: with_losses(world, **changed)


MUTANTS: dict[str, tuple[Change, set[str]]] = {
    "match_baseline": (
        losses(wq_identity=2.951, wq_identity_large_schedule=2.960, wq_identity_floor_tenth=2.963,
               wq_identity_decay_0p025=2.953),
        {"match_baseline", "pct_wq_identity", "t2_wq_identity", "val_order"},
    ),
    "pct_wq_identity": (
        losses(wq_identity=2.937),
        {"match_baseline", "pct_wq_identity", "t2_wq_identity"},
    ),
    "best_large_mlp": (
        losses(wq_identity_large_mlp=2.940, wq_identity_large_mlp_reduced_schedule=2.945,
               wq_identity_large_mlp_rate_3e3=2.945),
        {"best_large_mlp", "pct_large_mlp", "t2_wq_identity_large_mlp"},
    ),
    "pct_large_mlp": (
        losses(wq_identity_large_mlp=2.900),
        {"pct_large_mlp", "t2_wq_identity_large_mlp"},
    ),
    "small_baselines_worse": (
        losses(baseline_small_mlp=2.946, baseline_small_d=2.956),
        {"small_baselines_worse", "pct_small_mlp", "t2_baseline_small_mlp"},
    ),
    "pct_small_mlp": (
        losses(baseline_small_mlp=2.970),
        {"pct_small_mlp", "t2_baseline_small_mlp", "val_order"},
    ),
    "pct_small_d": (
        losses(baseline_small_d=2.970),
        {"pct_small_d", "t2_baseline_small_d"},
    ),
    "val_order": (
        losses(baseline=2.95, baseline_small_mlp=2.93, baseline_small_d=2.92, wq_identity=2.96,
               wq_identity_large_mlp=2.97),
        {"val_order", "match_baseline", "best_large_mlp", "small_baselines_worse", "pct_small_mlp", "pct_small_d",
         "pct_wq_identity", "pct_large_mlp", "t2_baseline_small_mlp", "t2_baseline_small_d", "t2_wq_identity",
         "t2_wq_identity_large_mlp", "deep_decay_helps", "weight_decay_range", "lr_ratio"},
    ),
    "deep_decay_helps": (losses(wq_identity_floor_tenth=2.940), {"deep_decay_helps"}),
    "weight_decay_range": (losses(wq_identity_decay_0p025=2.943), {"weight_decay_range"}),
    "lr_ratio": (
        losses(wq_identity_baseline_schedule=2.930, wq_identity_large_mlp_rate_3e3=2.920),
        {"lr_ratio", "higher_lr_admitted"},
    ),
    "higher_lr_admitted": (losses(baseline_reduced_schedule=2.940), {"higher_lr_admitted"}),
}  # fmt: skip


# Mutants of the measurement.

TRANSFERS: dict[str, tuple[Transfer, str, set[str]]] = {
    "mlp_transfer_error": (
        Transfer(mlp=(0.075, 0.076, 0.077), linear=(0.160, 0.161, 0.162)),
        "not reproduced",
        {"mlp_transfer_error"},
    ),
    "mlp_transfer_error, linear alone": (
        Transfer(mlp=(0.05, 0.05, 0.05), linear=(0.10, 0.10, 0.10)),
        "partly",
        {"mlp_transfer_error"},
    ),
    "mlp_transfer_cos": (Transfer(mlp_distance=(0.0024,) * 3, angle=4.0), "not reproduced", {"mlp_transfer_cos"}),
    "mlp_transfer_cosdist": (
        Transfer(mlp_distance=(0.0008,) * 3, linear_distance=(0.004,) * 3),
        "not reproduced",
        {"mlp_transfer_cosdist"},
    ),
    "mlp_transfer_factor": (
        Transfer(mlp=(0.059,) * 3, linear=(0.08,) * 3),
        "not reproduced",
        {"mlp_transfer_factor", "mlp_transfer_error"},
    ),
    "mlp_transfer_dim": (Transfer(mlp=(0.045, 0.05, 0.06)), "not reproduced", {"mlp_transfer_dim"}),
    "mlp_transfer_factor, the printed ends": (Transfer(mlp=(0.04,) * 3, linear=(0.14,) * 3), "reproduced", set()),
    "mlp_transfer_error, reversed": (
        Transfer(mlp=(0.118, 0.119, 0.120), linear=(0.050, 0.051, 0.052)),
        "not reproduced",
        {"mlp_transfer_error", "mlp_transfer_factor"},
    ),
    "mlp_transfer_cosdist, reversed": (
        Transfer(mlp_distance=(0.012,) * 3, linear_distance=(0.0095,) * 3),
        "not reproduced",
        {"mlp_transfer_cosdist", "mlp_transfer_cos"},
    ),
    "mlp_transfer_dim, worst in the middle": (
        Transfer(mlp=(0.05, 0.5, 0.05), linear=(0.12, 1.2, 0.12)),
        "not reproduced",
        {"mlp_transfer_dim", "mlp_transfer_error"},
    ),
    "mlp_transfer_dim, other widths": (Transfer(widths=(32, 64, 96)), "not reproduced", {"mlp_transfer_dim"}),
}


# Mutants of sizes and settings: another document.


def another(study: str) -> Study:
    """Everything about every run is another: width, heads, networks, rates, budget, decay, scale and start."""
    document = study_at("paper")
    runs = {key: replace(run, spec=_other(run.spec)) for key, run in document.runs.items()}
    return replace(document, runs=runs)


def _other(spec):
    identity = spec.model.slots["projections"]["name"] == "identity_query"
    slots = spec.model.slots | {"mixer": {"name": "scaled_softmax", "divisor": 3.0 if "divisor" in str(spec) else 1.0}}
    if spec.method == "wq_identity_unscaled":
        slots["mixer"] = {"name": "softmax"}
    slots["ffn"] = {"name": "swiglu", "bias": False}
    narrow = 256 if identity else 384
    model = msgspec.structs.replace(
        spec.model, width=narrow, heads=4, key_value_heads=4, head_width=narrow // 4, ffn_width=5 * narrow,
        init_std=0.03, slots=slots,
    )  # fmt: skip
    return msgspec.structs.replace(
        spec,
        model=model,
        optimizer=msgspec.structs.replace(spec.optimizer, learning_rate=1e-2, weight_decay=0.3),
        schedule=msgspec.structs.replace(spec.schedule, options={"floor": 0.5}),
        train=msgspec.structs.replace(
            spec.train, steps=30_000, batch_tokens=2**18, validate_every=500, validation_sequences=64
        ),
    )


#: Claims that are about nothing but sizes and settings.
OF_SPECS = {
    "fewer_params", "attention_25pct", "block_8pct", "equal_nonemb", "tokens", "val_tokens", "attn_scale",
    "score_std_standard", "score_std_reduced", "score_ratio", "peak_min_ratio", "same_weight_decay",
}  # fmt: skip


# An effect turned around, while the baseline is as printed.


def mirror_losses(world: World) -> World:
    """Each model's loss as far on the other side of the baseline's."""
    end = world["baseline"].loss
    return with_losses(world, **{name: 2 * end - facts.loss for name, facts in world.items()})


def reverse_rates(schedule_of: tuple[str, ...]) -> Change:
    """The best of an architecture's rates is the lowest one, and the highest the worst."""

    def change(world: World) -> World:
        losses = sorted(world[name].loss for name in schedule_of)
        return with_losses(world, **dict(zip(schedule_of, losses, strict=True)))

    return change


def lowest_rates_are_best(world: World) -> World:
    """For the reduced models; the baseline's best rate is its highest."""
    for names in (SEARCHED[IDENTITY], SEARCHED[LARGE_MLP], tuple(reversed(SEARCHED[BASELINE]))):
        world = reverse_rates(names)(world)
    return world


LINEAR_WINS = Transfer(
    mlp=(0.118, 0.119, 0.120), linear=(0.050, 0.051, 0.052), mlp_distance=(0.012,) * 3, linear_distance=(0.002,) * 3
)

#: World -> runs and measurement in it, and the claims whose effect is reversed there.
REVERSED: dict[str, tuple[Change, Transfer, tuple[str, ...]]] = {
    "losses mirrored around the baseline": (
        mirror_losses,
        Transfer(),
        ("best_large_mlp", "small_baselines_worse", "val_order", "pct_small_mlp", "pct_small_d", "pct_large_mlp",
         "t2_baseline_small_mlp", "t2_baseline_small_d", "t2_wq_identity_large_mlp", "deep_decay_helps",
         "weight_decay_range"),
    ),
    "low rates are best for the reduced models": (
        lowest_rates_are_best, Transfer(), ("lr_ratio", "higher_lr_admitted"),
    ),
    "the linear map is better": (
        lambda world: world, LINEAR_WINS, ("mlp_transfer_error", "mlp_transfer_cosdist", "mlp_transfer_factor"),
    ),
    "the error grows with the width": (
        lambda world: world, Transfer(mlp=(0.045, 0.05, 0.06)), ("mlp_transfer_dim",),
    ),
}  # fmt: skip

#: Claims without a direction that could be reversed -> what they state instead.
UNDIRECTED: dict[str, str] = {
    **dict.fromkeys(("t2_baseline", "mlp_transfer_cos"), "a level or a spread"),
    **dict.fromkeys(("t2_wq_identity", "match_baseline", "pct_wq_identity"), "no difference, or next to none"),
    **dict.fromkeys(
        (*sorted(OF_SPECS), *STATEMENTS, "single_head", "sigma_max_random", "equal_nonemb_apart"),
        "a size, a definition or a theorem",
    ),
}
