"""For each claim of trained models a world in which it is false, and for those of an effect one in which that effect is
reversed; each changes as little of the published facts as it can."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.studies.premature.runs_with_false_claims import swap_arms
from tests.studies.premature.synthetic_runs import PPL, SEEDS, TASKS, Facts, World, study_at

Change = Callable[[World], object]

#: Names of Table 5 -> methods.
NETWORKS = {"gelu_3840": "gpt", "gelu_2560": "gpt_gelu2560", "swiglu_2560": "gpt_swiglu", "geglu_2560": "gpt_geglu"}
FIXED = ("fixed_3pct", "fixed_6pct")


def both(*changes: Change) -> Change:
    """One after the other."""
    return lambda facts: [change(facts) for change in changes]


def of(facts: World, method: str, *, scale: str = "base", seeds: tuple[int, ...] = SEEDS) -> list[Facts]:
    """A method's runs of some seeds, those that there are."""
    keys = [f"premature/{scale}/{method}/s{seed}" for seed in seeds]
    return [facts[key] for key in keys if key in facts]


def ppl(seeds: tuple[int, ...] = (42,), /, **values: float) -> Change:
    """Other final perplexities; who ends above its control never reaches it."""

    def change(facts: World) -> None:
        for method, value in values.items():
            for run in of(facts, method, seeds=seeds):
                run.loss = math.log(value)
                run.saved = run.saved if run.loss < run.control_loss else None

    return change


def apart(distance: float, *methods: str, scale: str = "base", seeds: tuple[int, ...] = SEEDS) -> Change:
    """Final losses so much higher; who ends above its control never reaches it."""

    def change(facts: World) -> None:
        for method in methods:
            for run in of(facts, method, scale=scale, seeds=seeds):
                run.loss += distance
                run.saved = run.saved if run.loss < run.control_loss else None

    return change


def together(*shifts: float, scale: str = "base") -> Change:
    """Both sides of each pair by the same: levels and spreads are others, and no difference is."""

    def change(facts: World) -> None:
        for seed, by in zip(SEEDS, shifts, strict=True):
            for method in ("gpt", "gpt_slow"):
                for run in of(facts, method, scale=scale, seeds=(seed,)):
                    run.loss, run.control_loss = run.loss + by, run.control_loss + by

    return change


def saves(percent: float | None, *methods: str, scale: str = "base") -> Change:
    """Another share of the budget that is not needed to reach the control's loss."""
    return lambda facts: [setattr(run, "saved", percent) for m in methods for run in of(facts, m, scale=scale)]


def task(name: str, *factors: float) -> Change:
    """The intervention's accuracy on a task, so many points higher in each seed."""
    name = "lambada_openai" if name == "lambada" else name

    def change(facts: World) -> None:
        for run, points in zip(of(facts, "gpt_slow"), factors * 3 if len(factors) == 1 else factors, strict=True):
            run.tasks[name] += points / 100

    return change


def read(probe: str, part: str = "upper", share: float = 0.03, scale: str = "base", /, **values: float) -> Change:
    """Another reading of some methods, of all their seeds."""

    def change(facts: World) -> None:
        for method, value in values.items():
            for run in of(facts, method, scale=scale):
                run.run_values[probe, part][share] = (value, run.run_values[probe, part][share][1])

    return change


def times(factor: float, probe: str, *methods: str, part: str = "upper", since: float = 0.03) -> Change:
    """A curve of some methods, so many times higher from some share of training on."""

    def change(facts: World) -> None:
        for method in methods:
            for run in of(facts, method):
                curve = run.run_values[probe, part]
                curve |= {at: (factor * value, null) for at, (value, null) in curve.items() if at >= since}

    return change


def set_lost(method: str, reduce: Callable[[float, float], float], *kinds: str) -> Change:
    """What a method loses without upper queries and keys: from a share of training and what it lost there."""

    def change(facts: World) -> None:
        for run in of(facts, method, seeds=(42,)):
            whole = run.run_values["loss", "model"]
            for kind in kinds or ("loss_no_query", "loss_no_key", "loss_neither"):
                curve = run.run_values[kind, "model"]
                for at, (value, null) in curve.items():
                    base = math.exp(whole[at][0])
                    curve[at] = (math.log(base + reduce(at, math.exp(value) - base)), null)

    return change


def exchange_readings(probe: str, part: str, method: str, other_method: str, scale: str = "base") -> Change:
    """Two methods' readings of a probe change places, where both were read."""

    def change(facts: World) -> None:
        for run, beside in zip(of(facts, method, scale=scale), of(facts, other_method, scale=scale), strict=False):
            mine, theirs = run.run_values[probe, part], beside.run_values[probe, part]
            for at in sorted(set(mine) & set(theirs)):
                mine[at], theirs[at] = theirs[at], mine[at]

    return change


def set_scores(score_at: Callable[[float, float], float]) -> Change:
    """Other logged scores of the release rule: from a share of training in percent and what was scored there."""

    def change(facts: World) -> None:
        for run in of(facts, "gpt_slow", seeds=(42,)):
            steps = study_at().runs["premature/base/gpt_slow/s42"].spec.train.steps
            run.logged = [(step, score_at(100 * step / steps, score), null) for step, score, null in run.logged]

    return change


def gains(**values: float) -> Change:
    """What the intervention gains in some architectures, in perplexity."""
    return both(*(ppl(**{f"{name}_slow": PPL[name][0] - gain}) for name, gain in values.items()))


OTHER_PAIRS = (43, 44)
#: The intervention ends above its control in two seeds of three, so that the mean is on the other side.
WORSE = apart(0.035, "gpt_slow", seeds=OTHER_PAIRS)
WORSE_0P7B = apart(2 * 0.0071, "gpt_slow", scale="large")
ARCHITECTURES = ("gpt", "gpt_rmsnorm", "gpt_biasless", "gpt_swiglu", "llama_layernorm", "llama")
RULES = ("main", "lower_threshold", "no_patience", "stricter_patience", "shorter_window")
LATE = set_scores(lambda at, score: score if at < 2.8 else min(score, 0.0025) if at < 7 else score)

#: Claim -> a world in which it is false.
FALSE: dict[str, Change] = {
    "ppl_gain_270m": WORSE,
    "loss_gain_270m": WORSE,
    "control_270m": together(0.0, 0.2, 0.4),
    "intervention_270m": together(0.0, 0.2, 0.4),
    "tokens_saved_270m": saves(1.0, "gpt_slow"),
    "gain_every_paired_difference": WORSE,
    "ppl_gain_0p7b": WORSE_0P7B,
    "loss_gain_0p7b": WORSE_0P7B,
    "levels_0p7b": together(0.2, 0.2, 0.2, scale="large"),
    "tokens_saved_0p7b": saves(1.0, "gpt_slow", scale="large"),
    "mechanism_0p7b": exchange_readings("entropy", "upper", "gpt", "gpt_slow", "large"),
    **{f"t2_{name}": task(str(name), -2.5 * float(row["delta_pp_mean"])) for name, row in TASKS.iterrows()},
    "t2_mean": task("arc_challenge", -6.0),
    "downstream_mean": task("arc_challenge", -6.0),
    "downstream_wins": both(
        *(task(name, 6.0, -3.0, -3.0) for name in ("piqa", "hellaswag", "race", "lambada", "mmlu"))
    ),
    "downstream_largest": both(*(task(name, 4.0) for name in ("piqa", "hellaswag", "mmlu"))),
    "ablation_control": set_lost("gpt", lambda at, was: 3 * was),
    "ablation_intervention": set_lost("gpt_slow", lambda at, was: 3 * was),
    "ablation_order": set_lost("gpt", lambda at, was: 9.0 if at == 1.0 else was),
    "ablation_grows": set_lost("gpt_slow", lambda at, was: 0.35 + at if 0.03 <= at < 1 else was),
    "ablation_equivalent": set_lost("gpt", lambda at, was: 1.2 * was, "loss_no_query"),
    "lower_routing_same": times(0.6, "lower_copy", "gpt", "gpt_slow", part="model"),
    "sharp_crossing": both(times(1.25, "entropy", "gpt"), times(0.8, "entropy", "gpt_slow")),
    "entropy_3pct": exchange_readings("entropy", "upper", "gpt", "gpt_slow"),
    "logit_3pct": exchange_readings("logit_mean_abs", "upper", "gpt", "gpt_slow"),
    "entropy_order": read("entropy", "upper", 0.12, gpt_slow=0.55),
    "logit_growth_suppressed": read("logit_mean_abs", "upper", 0.12, gpt_slow=1.9),
    "singular_value": read("bilinear_top", gpt_slow=1.7),
    **{f"t3_{name}": gains(**{name: -0.05}) for name in ARCHITECTURES},
    "llama_gain": gains(llama=-0.05),
    "gain_order": gains(llama=0.58, gpt_geglu=0.5, gpt_swiglu=0.4, gpt_biasless=0.1, gpt_rmsnorm=0.05),
    "rmsnorm_alone": gains(gpt_rmsnorm=0.2),
    "biasless_partial": gains(gpt_biasless=0.2),
    "swiglu_suppressor": gains(gpt_swiglu=0.65),
    "entropy_gain_relation": gains(gpt=0.1, gpt_rmsnorm=0.05, gpt_biasless=0.15, llama=0.6, gpt_geglu=0.5),
    "t4_gpt": gains(gpt=-0.05),
    "t4_gpt_swiglu": gains(gpt_swiglu=-0.05),
    "t4_gpt_geglu": gains(gpt_geglu=-0.05),
    "control_ppl_order": both(
        ppl(gpt_swiglu=26.75, gpt_swiglu_slow=26.75 - 0.1075),
        ppl(gpt_geglu=26.70, gpt_geglu_slow=26.70 - 0.0549),
        ppl(llama=26.2, llama_slow=26.2 - 0.0182),
    ),
    "geglu_at_least": gains(gpt_geglu=0.2),
    "geglu_readout": both(read("entropy", gpt_geglu=0.80), read("logit_mean_abs", gpt_geglu=0.80)),
    **{
        f"t5_{name}": both(
            times(1.5, "ffn_write_rms", method, part="upper"),
            times(1.5, "ffn_write_rms", method, part="first_upper"),
            times(1.3, "logit_mean_abs", method),
            times(0.85, "entropy", method),
        )
        for name, method in NETWORKS.items()
    },
    "write_reduction_3840": times(0.4, "ffn_write_rms", "gpt"),
    "write_reduction_2560": times(0.5, "ffn_write_rms", "gpt_gelu2560"),
    "first_upper_reduction": times(0.35, "ffn_write_rms", "gpt", part="first_upper"),
    "write_order": both(times(0.4, "ffn_write_rms", "gpt"), times(0.52, "ffn_write_rms", "gpt_gelu2560")),
    "gated_logit_entropy": exchange_readings("logit_mean_abs", "upper", "gpt_gelu2560", "gpt_geglu"),
    "entropy_floor_readout": both(read("entropy", entropy_floor=0.70), read("logit_mean_abs", entropy_floor=1.1)),
    "entropy_floor_gain": ppl(entropy_floor=PPL["gpt"][0] + 0.061),
    "entropy_floor_much_smaller": ppl(entropy_floor=PPL["gpt"][0] - 0.4),
    "global_half_lr": ppl(global_half_lr=PPL["gpt"][0] - 0.5),
    "selective_vs_global": gains(gpt=-0.436),
    "readout_20pct": both(
        times(2.0, "lower_copy", "gpt_slow", "global_half_lr", part="model", since=0.2),
        times(0.8, "entropy", "gpt_slow", "global_half_lr", since=0.2),
    ),
    **{f"t8_{rule}": LATE for rule in RULES},
    "t8_higher_threshold": set_scores(lambda at, score: min(score, 0.0065) if at < 7 else score),
    "release_window": LATE,
    "release_main": LATE,
    "t9_control": both(*(apart(0.1, "gpt", seeds=(42,)), read("entropy", gpt=0.75), read("logit_mean_abs", gpt=0.9))),
    "t9_intervention": gains(gpt=-0.05),
    **{f"t9_{name}": ppl(**{name: PPL["gpt"][0] + 0.3}) for name in FIXED},
    "release_order": ppl(gpt_slow=26.72, fixed_3pct=26.70, fixed_6pct=26.69),
    **{
        f"t10_{name}": both(
            *(apart(0.1, method, seeds=(42,)), times(2.0, "bilinear_displacement", method)),
            *(times(0.8, "entropy", method), times(1.4, "logit_mean_abs", method)),
        )
        for name, method in {
            "control": "gpt",
            "mult_0p5": "mult_0p5",
            "mult_0p25": "gpt_slow",
            "mult_0p125": "mult_0p125",
        }.items()
    },
    "dose_monotone": read("bilinear_displacement", mult_0p125=0.9),
    "dose_ppl_saturates": ppl(mult_0p125=25.0),
    "locality": both(*(read(f"locality_{side}", gpt=1.2, gpt_slow=1.1) for side in ("query", "key"))),
    "locality_order": exchange_readings("locality_key", "upper", "gpt", "gpt_slow"),
    "immature_energy": exchange_readings("projector_share", "model", "gpt", "gpt_slow"),
    "fixed_releases_keep_most": ppl(fixed_6pct=26.6),
}


def change_places(facts: World) -> None:
    """Control and intervention, in every architecture, scale and seed."""
    facts |= swap_arms(facts)


def _readings_turned(facts: World) -> None:
    """Gated and plain networks change places in all that is read of them."""
    for method, other_method in (("gpt", "gpt_swiglu"), ("gpt_gelu2560", "gpt_geglu")):
        for probe, part in (("ffn_write_rms", "upper"), ("ffn_write_rms", "first_upper"), ("logit_mean_abs", "upper"),
                            ("entropy", "upper")):  # fmt: skip
            exchange_readings(probe, part, method, other_method)(facts)


def _dose_turned(facts: World) -> None:
    """Each smaller multiplier does what the larger one did; the smallest makes perplexity worst."""
    for probe in ("entropy", "logit_mean_abs", "bilinear_displacement"):
        exchange_readings(probe, "upper", "gpt", "mult_0p125")(facts)
        exchange_readings(probe, "upper", "mult_0p5", "gpt_slow")(facts)
    ppl(mult_0p5=27.1, gpt_slow=27.2, mult_0p125=27.2)(facts)


def _controls_turned(facts: World) -> None:
    """Architectures' controls end in the reverse order; what each gains stays."""
    order = ("gpt_swiglu", "gpt_geglu", "llama", "gpt")
    for name, other in zip(order, reversed(order), strict=True):
        own, value = PPL[name][0], PPL[other][0]
        ppl(**{name: value, f"{name}_slow": value - (own - PPL[f"{name}_slow"][0])})(facts)


#: World -> the claims whose effect or comparison is reversed in it, and how it is made.
REVERSED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "control and intervention change places": (
        change_places,
        (
            "ppl_gain_270m", "loss_gain_270m", "tokens_saved_270m", "gain_every_paired_difference", "ppl_gain_0p7b",
            "loss_gain_0p7b", "tokens_saved_0p7b", "mechanism_0p7b", *(f"t2_{name}" for name in TASKS.index), "t2_mean",
            "downstream_mean", "downstream_wins", "ablation_order", "entropy_3pct", "logit_3pct", "entropy_order",
            "logit_growth_suppressed", "singular_value", "locality_order", "immature_energy",
            *(f"t3_{name}" for name in ARCHITECTURES), "llama_gain", "gain_order", "rmsnorm_alone", "biasless_partial",
            "swiglu_suppressor", "t4_gpt", "t4_gpt_swiglu", "t4_gpt_geglu", "entropy_floor_gain",
            "entropy_floor_much_smaller", "selective_vs_global", "t9_intervention", "fixed_releases_keep_most",
            "release_order", "levels_0p7b",
        ),
    ),
    "the intervention is as much worse as it is better": (
        both(
            *(
                apart(2 * (math.log(PPL["gpt"][place]) - math.log(PPL["gpt_slow"][place])), "gpt_slow", seeds=(seed,))
                for place, seed in enumerate(SEEDS)
            )
        ),
        ("ppl_gain_270m", "loss_gain_270m", "tokens_saved_270m", "gain_every_paired_difference", "t3_gpt", "t4_gpt",
         "selective_vs_global", "t9_intervention", "entropy_floor_gain", "dose_ppl_saturates"),
    ),
    "gated and plain networks change places": (
        _readings_turned,
        ("write_reduction_3840", "write_reduction_2560", "first_upper_reduction", "write_order", "gated_logit_entropy",
         "swiglu_suppressor"),
    ),
    "controls in the reverse order": (_controls_turned, ("control_ppl_order",)),
    "gains in the reverse order": (
        gains(llama=0.5858, gpt_geglu=0.5179, gpt_swiglu=0.3928, llama_layernorm=0.2253, gpt_biasless=0.1075,
              gpt_rmsnorm=0.0549, gpt=0.0182),
        ("gain_order", "entropy_gain_relation", "geglu_at_least", "swiglu_suppressor", "llama_gain"),
    ),
    "the dose in the reverse order": (_dose_turned, ("dose_monotone", "dose_ppl_saturates")),
    "half the rate is better": (ppl(global_half_lr=PPL["gpt"][0] - 4.569), ("global_half_lr",)),
    "the floor gains what slowing does, and slowing what the floor does": (
        ppl(entropy_floor=PPL["gpt_slow"][0], gpt_slow=26.678), ("entropy_floor_much_smaller",),
    ),
    "fixed releases are worse than none": (
        ppl(fixed_3pct=27.2, fixed_6pct=27.3), ("t9_fixed_3pct", "t9_fixed_6pct", "fixed_releases_keep_most"),
    ),
    "the ablation helps": (
        both(*(set_lost(method, lambda at, was: -10.0) for method in ("gpt", "gpt_slow"))),
        ("ablation_control", "ablation_intervention"),
    ),
    "dependence shrinks": (
        set_lost("gpt_slow", lambda at, was: 17.4 - 17.0 * at if at >= 0.03 else was), ("ablation_grows",),
    ),
    "ratios are above one": (FALSE["locality"], ("locality",)),
    "sharp first under the intervention": (
        exchange_readings("entropy", "upper", "gpt", "gpt_slow"), ("sharp_crossing",)),
    "the others gain most": (FALSE["downstream_largest"], ("downstream_largest",)),
}  # fmt: skip

#: Claims without a direction that could be reversed -> what they state instead.
UNDIRECTED: dict[str, str] = {
    **dict.fromkeys(
        ("control_270m", "intervention_270m", "geglu_readout", "entropy_floor_readout", "readout_20pct",
         "t9_control", *(name for name in FALSE if name.startswith(("t5_", "t10_")))),
        "a level or a spread",
    ),
    **dict.fromkeys(
        ("lower_routing_same", "release_window", "release_main", *(name for name in FALSE if name.startswith("t8_"))),
        "a share of training",
    ),
    "ablation_equivalent": "no difference",
}  # fmt: skip
