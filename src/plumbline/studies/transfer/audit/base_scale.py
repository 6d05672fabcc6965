"""Transfer study: the noise floor, Table 2 with its corrections, and who survives them."""

from __future__ import annotations

from plumbline.audit.interval import Number, made_of
from plumbline.audit.rows import Ledger

#: Methods whose z the running text repeats to the digit; the others stand there shortened or not at all.
Z_IN_TEXT = (
    "softpick",
    "hybrid_norm",
    "qknorm",
    "sandwich_norm",
    "relu_squared",
    "selective_attn",
    "qknorm_geglu",
    "gated_attn_qknorm",
    "geglu_ffn",
    "denseformer",
    "diff_attn",
    "layerscale",
    "hyper",
)


def audit(ledger: Ledger) -> None:
    """Rows of sections 3.3, 4.1, 4.4, 6 and appendix E.4."""
    noise_floor(ledger)
    table_2(ledger)
    survivors(ledger)


def noise_floor(ledger: Ledger) -> None:
    """Section 3.3, 4.4 and appendix E.4."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    for method in ("baseline", "softpick"):
        values = seeds(ledger, method)
        mean, sd = cell("noise_floor", method, "climb_avg_mean"), cell("noise_floor", method, "climb_avg_std")
        check(f"mean_{method}", f"mean of the three {method} seeds", "sec 4.4", "mean", mean, {"x": values})
        check(f"sigma_{method}", f"sd of the three {method} seeds", "sec 3.3, 4.4", "sample sd", sd, {"x": values})
    check(
        "sigma_most_conservative",
        "the baseline's sd is the largest of the three",
        "sec 3.3",
        "largest",
        cell("noise_floor", "baseline", "climb_avg_std"),
        {"x": ledger.column("noise_floor", "climb_avg_std")},
    )
    ledger.copy(
        "sigma_round",
        "sigma in the recommendation",
        "sec 6 R5",
        prose("sigma_round"),
        cell("noise_floor", "baseline", "climb_avg_std"),
    )
    ledger.copy(
        "sigma_qknorm",
        "sigma of QK-Norm in the limitations",
        "Limitations",
        prose("sigma_qknorm"),
        cell("noise_floor", "qknorm", "climb_avg_std"),
    )
    check(
        "sigma_from_z",
        "sigma behind Table 2's z, from its first and last row",
        "table 2",
        "sigma from two rows",
        cell("noise_floor", "baseline", "climb_avg_std"),
        {
            "x_a": cell("table2", "softpick", "climb_avg"),
            "x_b": cell("table2", "sigmoid_attn", "climb_avg"),
            "z_a": cell("table2", "softpick", "z"),
            "z_b": cell("table2", "sigmoid_attn", "z"),
        },
    )
    a, b = seeds(ledger, "softpick"), seeds(ledger, "baseline")
    n = prose("seeds")
    spread = {method: cell("noise_floor", method, "climb_avg_std") for method in ("baseline", "qknorm", "softpick")}
    t = {method: cell("noise_floor", method, "welch_t") for method in ("qknorm", "softpick")}
    check(
        "welch_t_softpick_seeds", "Welch t of Softpick", "sec 4.4", "Welch t of seeds", t["softpick"], {"a": a, "b": b}
    )
    check(
        "welch_p_softpick_seeds",
        "its p",
        "sec 4.4",
        "Welch p of seeds",
        cell("noise_floor", "softpick", "welch_p"),
        {"a": a, "b": b},
    )
    check(
        "welch_t_softpick_summary",
        "Welch t of Softpick from means and sd",
        "sec 4.4",
        "Welch t",
        t["softpick"],
        {
            "mean_a": cell("noise_floor", "softpick", "climb_avg_mean"),
            "mean_b": cell("noise_floor", "baseline", "climb_avg_mean"),
            "sd_a": spread["softpick"],
            "sd_b": spread["baseline"],
            "n": n,
        },
    )
    for method in ("qknorm", "softpick"):
        check(
            f"welch_p_{method}_from_t",
            f"p of {method}'s printed t",
            "sec 3.3",
            "Welch p",
            cell("noise_floor", method, "welch_p"),
            {"t": t[method], "sd_a": spread[method], "sd_b": spread["baseline"], "n": n},
        )
        combined = cell("noise_floor", method, "stouffer_z")
        check(
            f"stouffer_p_one_{method}",
            f"one-sided p of {method}'s Stouffer Z",
            "App E.4",
            "one-sided normal p",
            cell("noise_floor", method, "stouffer_p_one_sided"),
            {"z": combined},
        )
        check(
            f"stouffer_p_two_{method}",
            "its two-sided p",
            "App E.4",
            "two-sided normal p",
            cell("noise_floor", method, "stouffer_p_two_sided"),
            {"z": combined},
        )
        check(
            f"stouffer_tasks_{method}",
            f"tasks on which {method}'s mean is higher",
            "App E.4",
            "difference",
            cell("noise_floor", method, "tasks_above_baseline", exact=True),
            {"tasks": prose("tasks"), "exceptions": prose(f"stouffer_{method}_exceptions")},
        )
        ledger.copy(
            f"stouffer_total_{method}",
            f"tasks that {method}'s Stouffer Z combines",
            "App E.4",
            cell("noise_floor", method, "tasks_total", exact=True),
            prose("tasks"),
        )
    check(
        "bootstrap_probability",
        "Pr(Softpick <= baseline) in the bootstrap",
        "sec 3.3",
        "share of overlap",
        prose("bootstrap_probability"),
        {"a": a, "b": b},
    )


def table_2(ledger: Ledger) -> None:
    """Every delta, z and corrected p of Table 2, and the copies of its numbers in the text."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    mean, sigma = cell("table2", "baseline", "climb_avg"), cell("noise_floor", "baseline", "climb_avg_std")
    for method in ledger.table("table2").index:
        x, z = cell("table2", method, "climb_avg"), cell("table2", method, "z")
        check(
            f"t2_delta_{method}",
            f"delta of {method}",
            "table 2",
            "difference",
            cell("table2", method, "delta"),
            {"x": x, "mean": mean},
        )
        check(f"t2_z_{method}", f"z of {method}", "table 2", "z", z, {"x": x, "mean": mean, "sigma": sigma})
        if method == "baseline":
            continue
        bounded = ledger.prints("table2", method, "p_bonf_bound")
        p = cell("table2", method, "p_bonf_bound").as_bound() if bounded else cell("table2", method, "p_bonf")
        check(f"t2_p_{method}", f"Bonferroni p of {method}", "table 2", "Bonferroni p", p, {"z": z, "m": prose("m")})
    scores = ledger.column("table2", "climb_avg")
    check(
        "t2_sorted",
        "steps down in a table sorted by CLIMB-avg",
        "table 2 caption",
        "count falling",
        Number(text=str(len(scores) - 1), exact=True),
        {"x": scores},
    )
    for name, text, method, column in (
        ("span_high", "largest effect of an attention method", "softpick", "delta"),
        ("span_low", "smallest effect of an attention method", "sigmoid_attn", "delta"),
        ("z_layerscale_short", "z of LayerScale in the text", "layerscale", "z"),
        ("z_hyper_short", "z of HyperConnections in the text", "hyper", "z"),
        ("z_attnres_short", "z of AttnRes in the text", "attnres", "z"),
        ("p_bonf_hybrid", "Bonferroni p of HybridNorm in the text", "hybrid_norm", "p_bonf"),
    ):
        printed = prose(name)
        ledger.copy(f"t2_copy_{name}", text, printed.where, printed, cell("table2", method, column))
    for method in Z_IN_TEXT:
        printed, original = prose(f"z_text_{method}"), cell("table2", method, "z")
        ledger.copy(f"z_text_{method}", f"z of {method} in the text", printed.where, printed, original)


def survivors(ledger: Ledger) -> None:
    """How many methods pass |z| > 2 and the three corrections."""
    check, prose = ledger.check, ledger.prose
    z = ledger.column("table2", "z")
    tested = ledger.column("table2", "z", [name for name in ledger.table("table2").index if name != "baseline"])
    up = [value for value in tested if value.value > 0]
    down = [value for value in tested if value.value < 0]
    line, m, alpha = prose("z_line"), prose("m"), prose("alpha")
    check(
        "inside",
        "methods with |z| < 2, the baseline among them",
        "sec 4.5",
        "count within",
        prose("inside"),
        {"z": z, "c": line},
    )
    check("improvers", "methods with z > 2", "sec 4.1", "count above", prose("improvers"), {"z": z, "c": line})
    check("degraders", "methods with z < -2", "sec 4.1", "count below minus", prose("degraders"), {"z": z, "c": line})
    check(
        "tests",
        "tests: methods other than the baseline",
        "sec 4.1",
        "difference",
        m,
        {"methods": prose("methods_total"), "baseline": 1},
    )
    for name, group in (("improvers", up), ("degraders", down)):
        check(
            f"bonferroni_{name}",
            f"Bonferroni survivors among the {name}",
            "sec 4.1",
            "survivors of Bonferroni",
            prose(f"bonferroni_{name}"),
            {"z": group, "m": m, "alpha": alpha},
        )
    check(
        "holm",
        "Holm survivors",
        "sec 4.1",
        "survivors of Holm",
        prose("holm_survivors"),
        {"z": tested, "m": m, "alpha": alpha},
    )
    seven, four_more = prose("holm_survivors"), prose("bh_added")
    bh = made_of(int(seven.text) + int(four_more.text), seven, four_more)
    check(
        "bh",
        "Benjamini-Hochberg survivors (the seven and four more)",
        "sec 4.1",
        "survivors of BH",
        bh,
        {"z": tested, "m": m, "alpha": alpha},
    )
    adjusted = ledger.column("table2", "p_bonf")
    adjusted += [bound.as_bound() for bound in ledger.column("table2", "p_bonf_bound")]
    check(
        "bh_from_table",
        "the same from the printed Bonferroni p",
        "sec 4.1",
        "survivors of BH from Bonferroni p",
        bh,
        {"p_bonf": adjusted, "alpha": alpha},
    )
    check(
        "fwer",
        "family-wise false-positive rate",
        "sec 6 R7",
        "family-wise error rate",
        prose("fwer_pct"),
        {"alpha": alpha, "m": m},
    )
    four = ["hybrid_norm", "sandwich_norm", "relu_squared", "selective_attn"]
    check(
        "not_significant_of_four",
        "of HybridNorm, Sandwich, ReLU^2, Selective: not significant when corrected",
        "Limitations",
        "count above",
        prose("not_significant_of_four"),
        {"p_bonf": ledger.column("table2", "p_bonf", four), "alpha": alpha},
    )
    check(
        "single_seed_improvers",
        "nominal improvers without own seeds",
        "Limitations",
        "difference",
        prose("single_seed_improvers"),
        {"improvers": prose("improvers"), "with seeds": len(ledger.table("noise_floor")) - 1},
    )
    check(
        "extra_runs",
        "runs for three seeds of each of them",
        "Limitations",
        "further runs",
        prose("extra_runs"),
        {"methods": prose("single_seed_improvers"), "seeds": prose("seeds")},
    )
    check(
        "gain_floor",
        "methods within about 0.005 of the baseline",
        "sec 6 R5",
        "count near",
        prose("gain_floor_methods"),
        {
            "x": ledger.column("table2", "climb_avg"),
            "mean": ledger.cell("table2", "baseline", "climb_avg"),
            "c": prose("gain_floor"),
        },
    )


def seeds(ledger: Ledger, method: str) -> list[Number]:
    """The printed seed values of a reference."""
    rows = [row for row in ledger.table("seed_values").index if row.partition("#")[0] == method]
    return ledger.column("seed_values", "climb_avg", rows)
