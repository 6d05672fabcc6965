"""Recomputes printed numbers of the transfer study: Table 3, and the runs at 3B."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count, rank
from plumbline.audit.math_functions import largest, smallest
from plumbline.audit.statistic_functions import bonferroni_survivors, nearest_possible_rho, p_of_rho, spearman_rho
from plumbline.published.printed_number import exact


def audit(ledger: AuditRows) -> None:
    """Rows of sections 5.1 and 5.2."""
    check_table_3(ledger)
    check_runs_at_3b(ledger)


def check_table_3(ledger: AuditRows) -> None:
    """Table 3: deltas, ranks, and what is said of their order."""
    check, copy, prose = ledger.check, ledger.copy, ledger.prose
    t2, t3 = ledger.table("table2"), ledger.table("table3")
    for method in t3.rows:
        base, large = t2[method, "climb_avg"], t3[method, "climb_avg_3b"]
        delta = large - t3["baseline", "climb_avg_3b"]
        check(f"t3_delta_{method}", f"3B delta of {method}", "table 3", t3[method, "delta_3b"], delta)
        label, printed = f"{method} at 1.2B is Table 2's", t3[method, "climb_avg_1p2b"]
        copy(f"t3_base_{method}", label, "table 3", printed, base)
        printed, expected = t3[method, "rank_1p2b"].exactly(), rank(base, t2.others("climb_avg", method))
        check(f"t3_rank_base_{method}", f"rank of {method} at 1.2B", "table 3", printed, expected)
        printed, expected = t3[method, "rank_3b"].exactly(), rank(large, t3.others("climb_avg_3b", method))
        check(f"t3_rank_large_{method}", f"rank of {method} at 3B", "table 3", printed, expected)
    improvers = [method for method in t3.rows if method not in ("baseline", "attnres", "sigmoid_attn")]
    deltas, failures = t3.column("delta_3b", improvers), t3.rows[-2:]
    check("delta_3b_low", "smallest improver delta", "sec 5.2", prose("delta_3b_low"), smallest(deltas))
    check("delta_3b_high", "largest improver delta", "sec 5.2", prose("delta_3b_high"), largest(deltas))
    for method, name in (("sigmoid_attn", "delta_3b_sigmoid"), ("attnres", "delta_3b_attnres")):
        copy(name, f"3B delta of {method} in the text", "sec 5.2", prose(name), t3[method, "delta_3b"])
    for group, name in ((improvers, "positive_kept"), (failures, "negative_kept")):
        same_signs = count(t2.column("delta", group) * t3.column("delta_3b", group) > 0)
        check(name, "signs that are the same at 1.2B and 3B", "sec 5.2", prose(name), same_signs)
    check_rank_correlation(ledger, improvers)
    check_the_rule_at_3b(ledger, improvers)


def check_the_rule_at_3b(ledger: AuditRows, improvers: list[str]) -> None:
    """The rule of significance of 1.2B on Table 3, and how many signs "every 1.2B signal" are.

    Table 3 has one seed a method; sigma is that of the 1.2B baseline, as the limitations take it for the noise at 3B.
    """
    check, prose, t3 = ledger.check, ledger.prose, ledger.table("table3")
    sigma = ledger.table("noise_floor")["baseline", "climb_avg_std"]
    z = t3.column("delta_3b", improvers) / sigma
    label = "improvers of Table 3 that Bonferroni's rule leaves at 3B, by the sigma of 1.2B"
    survivors = bonferroni_survivors(z, prose("m"), prose("alpha"))
    printed = prose("survivors_3b")
    check("survivors_3b", label, "sec 4.5, table 3", printed, survivors, basis="other interpretation")
    label = "signs that are kept, of those of all methods tried at 3B: 'every 1.2B signal'"
    confirmed = prose("positive_kept") + prose("negative_kept")
    tried = exact(int(prose("tried_3b").text) - 1, "tried_methods")
    check("every_sign", label, "sec 5.1, 5.2", tried, confirmed, basis="other interpretation")
    label = "rows of HybridNorm in Table 3, of which it is the exception to one seed"
    rows = exact(sum(row == "hybrid_norm" for row in t3.rows), "rows")
    check("exception_of_table_3", label, "Limitations, table 3", exact(1), rows)
    label = "band of noise at 1.2B, |z| < 2, that the limitations give as one sigma"
    band = prose("z_line") * sigma
    check("noise_band", label, "sec 3.3, Limitations", prose("sigma_round"), band, basis="other interpretation")


def check_rank_correlation(ledger: AuditRows, improvers: list[str]) -> None:
    """Spearman's rho of the seven improvers, and its p."""
    check, prose, t3 = ledger.check, ledger.prose, ledger.table("table3")
    rho, p, n = prose("spearman_rho"), prose("spearman_p"), prose("spearman_n")
    from_scores = spearman_rho(t3.column("climb_avg_1p2b", improvers), t3.column("climb_avg_3b", improvers))
    ranks = (t3.column(column, improvers).exactly() for column in ("rank_1p2b", "rank_3b"))
    from_ranks = spearman_rho(*(-column for column in ranks))
    check("spearman_rho", "Spearman rho of the seven improvers", "sec 5.2", rho, from_scores)
    check("spearman_ranks", "the same from the printed ranks", "sec 5.2", rho, from_ranks)
    label, possible = "a rho that seven pairs without ties can have", nearest_possible_rho(rho.exactly(), n)
    check("spearman_possible", label, "sec 5.2", rho, possible)
    check("spearman_p", "p of the printed rho", "sec 5.2", p, p_of_rho(rho, n))
    label, recomputed = "p of the rho that the printed scores give", p_of_rho(from_scores, len(improvers))
    check("spearman_p_recomputed", label, "sec 5.2, table 3", p, recomputed)


def check_runs_at_3b(ledger: AuditRows) -> None:
    """How many runs there were at 3B, and what they cost."""
    check, prose = ledger.check, ledger.prose
    completed, candidates, diverged = prose("completed_3b"), prose("candidates_3b"), prose("diverged_3b")
    tried, other = prose("tried_3b"), prose("other_nominal_improvers")
    finished = 1 + candidates + prose("failures_3b")
    check("tried_3b", "configurations tried at 3B", "sec 5.1", tried, finished + diverged)
    label = "modifications tested at 3B, where the abstract has all of them at both scales"
    check("modifications_at_3b", label, "abstract, sec 1, 5.1", prose("modifications_tested"), tried - 1)
    check("completed_3b", "configurations that complete", "sec 5.1", completed, finished)
    rows = exact(len(ledger.table("table3").rows), "rows")
    check("completed_3b_rows", "rows of Table 3", "table 3", completed, rows)
    label = "that complete, beside the baseline"
    check("other_completed_3b", label, "sec 3.2", prose("other_completed_3b"), completed - 1)
    parts = other + prose("sub_bonferroni_candidates")
    check("candidates_3b", "improver candidates at 3B", "sec 5.1", candidates, parts)
    check("other_nominal", "nominal improvers beside HybridNorm", "sec 5.1", other, prose("improvers") - 1)
    methods = exact(len(set(ledger.table("table6").texts("method").values())), "methods")
    check("diverged_3b_rows", "methods in Table 6", "table 6", diverged, methods)
    large, base = prose("nodes_large") * 24 * prose("days_large"), prose("nodes_base") * prose("hours_base")
    label = "cost of a 3B run over a 1.2B run, in accelerator time"
    check("cost_hours", label, "sec 3.2, 5.1", prose("sweep_cost_ratio"), large / base, basis="other interpretation")
