"""Recomputes printed numbers of the transfer study: the noise floor, Table 2 with its corrections, and who survives
them."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count, falling
from plumbline.audit.math_functions import largest, mean, smallest, sqrt
from plumbline.audit.statistic_functions import (
    bh_from_bonferroni,
    bh_survivors,
    bonferroni_survivors,
    holm_survivors,
    one_sided_p,
    sample_sd,
    share_of_overlap,
    two_sided_p,
    welch_p,
    welch_p_of_seeds,
    welch_t_of_seeds,
)
from plumbline.published.printed_number import PrintedColumn, derive_exact, exact

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


def audit(ledger: AuditRows) -> None:
    """Rows of sections 3.3, 4.1, 4.4, 6 and appendix E.4."""
    check_noise_floor(ledger)
    check_table_2(ledger)
    check_survivors(ledger)


def check_noise_floor(ledger: AuditRows) -> None:
    """Section 3.3, 4.4 and appendix E.4."""
    check, copy, prose, floor = ledger.check, ledger.copy, ledger.prose, ledger.table("noise_floor")
    sigma = floor["baseline", "climb_avg_std"]
    for method in ("baseline", "softpick"):
        values, printed = seeds(ledger, method), floor[method, "climb_avg_mean"]
        check(f"mean_{method}", f"mean of the three {method} seeds", "sec 4.4", printed, mean(values))
        label, printed = f"sd of the three {method} seeds", floor[method, "climb_avg_std"]
        check(f"sigma_{method}", label, "sec 3.3, 4.4", printed, sample_sd(values))
    label, expected = "the baseline's sd is the largest of the three", largest(floor.column("climb_avg_std"))
    check("sigma_most_conservative", label, "sec 3.3", sigma, expected)
    copy("sigma_round", "sigma in the recommendation", "sec 6 R5", prose("sigma_round"), sigma)
    label, original = "sigma of QK-Norm in the limitations", floor["qknorm", "climb_avg_std"]
    copy("sigma_qknorm", label, "Limitations", prose("sigma_qknorm"), original)
    t2, first, last = ledger.table("table2"), "softpick", "sigmoid_attn"
    expected = (t2[first, "climb_avg"] - t2[last, "climb_avg"]) / (t2[first, "z"] - t2[last, "z"])
    check("sigma_from_z", "sigma behind Table 2's z, from its first and last row", "table 2", sigma, expected)
    label = "Softpick's row of Table 2 is its first seed, not the mean of its three"
    ledger.copy("t2_softpick_seed", label, "table 2, sec 4.4", t2[first, "climb_avg"], seeds(ledger, first)[0])
    check_welch(ledger)
    for method in ("qknorm", "softpick"):
        check_method_p_values(ledger, method)
    label = "Pr(Softpick <= baseline) in the bootstrap"
    share = share_of_overlap(seeds(ledger, "softpick"), seeds(ledger, "baseline"))
    check("bootstrap_probability", label, "sec 3.3", prose("bootstrap_probability"), share)


def check_welch(ledger: AuditRows) -> None:
    """Softpick's Welch test from its seeds, and from its means and spreads."""
    check, floor = ledger.check, ledger.table("noise_floor")
    a, b = seeds(ledger, "softpick"), seeds(ledger, "baseline")
    t, p = floor["softpick", "welch_t"], floor["softpick", "welch_p"]
    check("welch_t_softpick_seeds", "Welch t of Softpick", "sec 4.4", t, welch_t_of_seeds(a, b))
    check("welch_p_softpick_seeds", "its p", "sec 4.4", p, welch_p_of_seeds(a, b))
    (mean_a, sd_a), (mean_b, sd_b) = (
        (floor[method, "climb_avg_mean"], floor[method, "climb_avg_std"]) for method in ("softpick", "baseline")
    )
    expected = (mean_a - mean_b) / sqrt((sd_a**2 + sd_b**2) / ledger.prose("seeds"))
    check("welch_t_softpick_summary", "Welch t of Softpick from means and sd", "sec 4.4", t, expected)


def check_method_p_values(ledger: AuditRows, method: str) -> None:
    """p of a method's printed t and Stouffer Z, and the tasks that go into the latter."""
    check, prose, floor = ledger.check, ledger.prose, ledger.table("noise_floor")
    spread, sigma = floor[method, "climb_avg_std"], floor["baseline", "climb_avg_std"]
    p = welch_p(floor[method, "welch_t"], spread, sigma, prose("seeds"))
    check(f"welch_p_{method}_from_t", f"p of {method}'s printed t", "sec 3.3", floor[method, "welch_p"], p)
    combined = floor[method, "stouffer_z"]
    label, printed = f"one-sided p of {method}'s Stouffer Z", floor[method, "stouffer_p_one_sided"]
    check(f"stouffer_p_one_{method}", label, "App E.4", printed, one_sided_p(combined))
    printed = floor[method, "stouffer_p_two_sided"]
    check(f"stouffer_p_two_{method}", "its two-sided p", "App E.4", printed, two_sided_p(combined))
    label, printed = f"tasks on which {method}'s mean is higher", floor[method, "tasks_above_baseline"].exactly()
    higher = prose("tasks") - prose(f"stouffer_{method}_exceptions")
    check(f"stouffer_tasks_{method}", label, "App E.4", printed, higher)
    label, printed = f"tasks that {method}'s Stouffer Z combines", floor[method, "tasks_total"].exactly()
    ledger.copy(f"stouffer_total_{method}", label, "App E.4", printed, prose("tasks"))


def check_table_2(ledger: AuditRows) -> None:
    """Every delta, z and corrected p of Table 2, and the copies of its numbers in the text."""
    check, copy, prose, t2 = ledger.check, ledger.copy, ledger.prose, ledger.table("table2")
    baseline, sigma = t2["baseline", "climb_avg"], ledger.table("noise_floor")["baseline", "climb_avg_std"]
    for method in t2.rows:
        score, z = t2[method, "climb_avg"], t2[method, "z"]
        check(f"t2_delta_{method}", f"delta of {method}", "table 2", t2[method, "delta"], score - baseline)
        check(f"t2_z_{method}", f"z of {method}", "table 2", z, (score - baseline) / sigma)
        if method == "baseline":
            continue
        label = f"delta of {method} by its z"
        check(f"t2_delta_by_z_{method}", label, "table 2 caption", t2[method, "delta"], z * sigma)
        bounded = t2.prints(method, "p_bonf_bound")
        printed = t2[method, "p_bonf_bound"].as_bound() if bounded else t2[method, "p_bonf"]
        p = smallest([1, prose("m") * two_sided_p(z)])
        check(f"t2_p_{method}", f"Bonferroni p of {method}", "table 2", printed, p)
    scores, label = t2.column("climb_avg"), "steps down in a table sorted by CLIMB-avg"
    check("t2_sorted", label, "table 2 caption", exact(len(scores) - 1), falling(scores))
    for name, text, method, column in (
        ("span_high", "largest effect of an attention method", "softpick", "delta"),
        ("span_low", "smallest effect of an attention method", "sigmoid_attn", "delta"),
        ("z_layerscale_short", "z of LayerScale in the text", "layerscale", "z"),
        ("z_hyper_short", "z of HyperConnections in the text", "hyper", "z"),
        ("z_attnres_short", "z of AttnRes in the text", "attnres", "z"),
        ("p_bonf_hybrid", "Bonferroni p of HybridNorm in the text", "hybrid_norm", "p_bonf"),
    ):
        printed = prose(name)
        copy(f"t2_copy_{name}", text, printed.where, printed, t2[method, column])
    for method in Z_IN_TEXT:
        printed = prose(f"z_text_{method}")
        copy(f"z_text_{method}", f"z of {method} in the text", printed.where, printed, t2[method, "z"])


def check_survivors(ledger: AuditRows) -> None:
    """How many methods pass |z| > 2 and the three corrections."""
    check, prose, t2 = ledger.check, ledger.prose, ledger.table("table2")
    z, line, m, alpha = t2.column("z"), prose("z_line"), prose("m"), prose("alpha")
    label = "methods with |z| < 2, the baseline among them"
    check("inside", label, "sec 4.5", prose("inside"), count(abs(z) < line))
    # Of three values the mean of one drawn three times has probability 1/27 > 2.5 %: the 95 % interval is their range.
    scores, seed_values = t2.column("climb_avg"), seeds(ledger, "baseline")
    outside = count(scores < smallest(seed_values)) + count(scores > largest(seed_values))
    label = "methods inside the bootstrap's 95 % interval of the baseline's mean"
    check("inside_bootstrap", label, "sec 1, 4.1, 4.5", prose("inside"), exact(len(scores)) - outside)
    check("improvers", "methods with z > 2", "sec 4.1", prose("improvers"), count(z > line))
    check("degraders", "methods with z < -2", "sec 4.1", prose("degraders"), count(z < -line))
    label = "tests: methods other than the baseline"
    check("tests", label, "sec 4.1", m, prose("methods_total") - 1)
    tested = [method for method in t2.rows if method != "baseline"]
    for name, sign in (("improvers", 1), ("degraders", -1)):
        group = t2.column("z", [method for method in tested if sign * t2[method, "z"].value > 0])
        label, printed = f"Bonferroni survivors among the {name}", prose(f"bonferroni_{name}")
        check(f"bonferroni_{name}", label, "sec 4.1", printed, bonferroni_survivors(group, m, alpha))
    seven, four_more, others = prose("holm_survivors"), prose("bh_added"), t2.others("z", "baseline")
    check("holm", "Holm survivors", "sec 4.1", seven, holm_survivors(others, m, alpha))
    bh = derive_exact(int(seven.text) + int(four_more.text), seven, four_more)
    label = "Benjamini-Hochberg survivors (the seven and four more)"
    check("bh", label, "sec 4.1", bh, bh_survivors(others, m, alpha))
    adjusted = [*t2.column("p_bonf"), *t2.column("p_bonf_bound").as_bounds()]
    label = "the same from the printed Bonferroni p"
    check("bh_from_table", label, "sec 4.1", bh, bh_from_bonferroni(adjusted, alpha))
    rate = 100 * (1 - (1 - alpha) ** m)
    check("fwer", "family-wise false-positive rate", "sec 6 R7", prose("fwer_pct"), rate)
    four = t2.column("p_bonf", ["hybrid_norm", "sandwich_norm", "relu_squared", "selective_attn"])
    label = "of HybridNorm, Sandwich, ReLU^2, Selective: not significant when corrected"
    check("not_significant_of_four", label, "Limitations", prose("not_significant_of_four"), count(four > alpha))
    single, with_seeds = prose("single_seed_improvers"), exact(len(ledger.table("noise_floor").rows) - 1, "with_seeds")
    label = "nominal improvers without own seeds"
    check("single_seed_improvers", label, "Limitations", single, prose("improvers") - with_seeds)
    label, runs = "runs for three seeds of each of them", single * (prose("seeds") - 1)
    check("extra_runs", label, "Limitations", prose("extra_runs"), runs)
    near = abs(t2.column("climb_avg") - t2["baseline", "climb_avg"]) < prose("gain_floor")
    label = "methods within about 0.005 of the baseline"
    check("gain_floor", label, "sec 6 R5", prose("gain_floor_methods"), count(near))


def seeds(ledger: AuditRows, method: str) -> PrintedColumn:
    """The printed seed values of a reference."""
    table = ledger.table("seed_values")
    return table.column("climb_avg", [row for row in table.rows if row.partition("#")[0] == method])
