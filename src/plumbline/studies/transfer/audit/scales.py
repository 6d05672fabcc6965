"""Transfer study: Table 3, and the runs at 3B."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """Rows of sections 5.1 and 5.2."""
    table_3(ledger)
    runs_at_3b(ledger)


def table_3(ledger: Ledger) -> None:
    """Table 3: deltas, ranks, and what is said of their order."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    names = list(ledger.table("table3").index)
    base = cell("table3", "baseline", "climb_avg_3b")
    at_base, at_large = ledger.column("table2", "climb_avg"), ledger.column("table3", "climb_avg_3b")
    for method in names:
        large = cell("table3", method, "climb_avg_3b")
        check(
            f"t3_delta_{method}",
            f"3B delta of {method}",
            "table 3",
            "difference",
            cell("table3", method, "delta_3b"),
            {"x": large, "baseline": base},
        )
        ledger.copy(
            f"t3_base_{method}",
            f"{method} at 1.2B is Table 2's",
            "table 3",
            cell("table3", method, "climb_avg_1p2b"),
            cell("table2", method, "climb_avg"),
        )
        here = cell("table2", method, "climb_avg")
        check(
            f"t3_rank_base_{method}",
            f"rank of {method} at 1.2B",
            "table 3",
            "rank",
            cell("table3", method, "rank_1p2b", exact=True),
            {"x": here, "others": [other for other in at_base if other != here]},
        )
        check(
            f"t3_rank_large_{method}",
            f"rank of {method} at 3B",
            "table 3",
            "rank",
            cell("table3", method, "rank_3b", exact=True),
            {"x": large, "others": [other for other in at_large if other != large]},
        )
    improvers, failures = [n for n in names if n not in ("baseline", "attnres", "sigmoid_attn")], names[-2:]
    deltas = ledger.column("table3", "delta_3b", improvers)
    check("delta_3b_low", "smallest improver delta", "sec 5.2", "smallest", prose("delta_3b_low"), {"x": deltas})
    check("delta_3b_high", "largest improver delta", "sec 5.2", "largest", prose("delta_3b_high"), {"x": deltas})
    for method, name in (("sigmoid_attn", "delta_3b_sigmoid"), ("attnres", "delta_3b_attnres")):
        ledger.copy(
            name, f"3B delta of {method} in the text", "sec 5.2", prose(name), cell("table3", method, "delta_3b")
        )
    for group, name in ((improvers, "positive_kept"), (failures, "negative_kept")):
        check(
            name,
            "signs that are the same at 1.2B and 3B",
            "sec 5.2",
            "count same sign",
            prose(name),
            {"a": ledger.column("table2", "delta", group), "b": ledger.column("table3", "delta_3b", group)},
        )
    rho, n = prose("spearman_rho"), prose("spearman_n")
    scores = {
        "x": ledger.column("table3", "climb_avg_1p2b", improvers),
        "y": ledger.column("table3", "climb_avg_3b", improvers),
    }
    check(
        "spearman_rho",
        "Spearman rho of the seven improvers",
        "sec 5.2",
        "Spearman rho",
        rho,
        scores,
    )
    check(
        "spearman_ranks",
        "the same from the printed ranks",
        "sec 5.2",
        "Spearman rho",
        rho,
        {
            "x": [rank.exactly().negated() for rank in ledger.column("table3", "rank_1p2b", improvers)],
            "y": [rank.exactly().negated() for rank in ledger.column("table3", "rank_3b", improvers)],
        },
    )
    check(
        "spearman_possible",
        "a rho that seven pairs without ties can have",
        "sec 5.2",
        "nearest possible rho",
        rho,
        {"rho": rho.exactly(), "n": n},
    )
    check("spearman_p", "p of the printed rho", "sec 5.2", "p of rho by t", prose("spearman_p"), {"rho": rho, "n": n})
    check(
        "spearman_p_recomputed",
        "p of the rho that the printed scores give",
        "sec 5.2, table 3",
        "p of Spearman rho",
        prose("spearman_p"),
        scores,
    )


def runs_at_3b(ledger: Ledger) -> None:
    """How many runs there were at 3B, and what they cost."""
    check, prose = ledger.check, ledger.prose
    parts: dict[str, Number | int] = {
        "baseline": 1,
        "candidates": prose("candidates_3b"),
        "failures": prose("failures_3b"),
    }
    check(
        "tried_3b",
        "configurations tried at 3B",
        "sec 5.1",
        "sum",
        prose("tried_3b"),
        {**parts, "diverged": prose("diverged_3b")},
    )
    check("completed_3b", "configurations that complete", "sec 5.1", "sum", prose("completed_3b"), parts)
    check(
        "completed_3b_rows",
        "rows of Table 3",
        "table 3",
        "same number",
        prose("completed_3b"),
        {"rows": len(ledger.table("table3"))},
    )
    check(
        "other_completed_3b",
        "that complete, beside the baseline",
        "sec 3.2",
        "difference",
        prose("other_completed_3b"),
        {"completed": prose("completed_3b"), "baseline": 1},
    )
    check(
        "candidates_3b",
        "improver candidates at 3B",
        "sec 5.1",
        "sum",
        prose("candidates_3b"),
        {"nominal": prose("other_nominal_improvers"), "others": prose("sub_bonferroni_candidates")},
    )
    check(
        "other_nominal",
        "nominal improvers beside HybridNorm",
        "sec 5.1",
        "difference",
        prose("other_nominal_improvers"),
        {"improvers": prose("improvers"), "hybrid_norm": 1},
    )
    check(
        "diverged_3b_rows",
        "methods in Table 6",
        "table 6",
        "same number",
        prose("diverged_3b"),
        {"methods": int(ledger.table("table6")["method"].nunique())},
    )
    check(
        "cost_hours",
        "cost of a 3B run over a 1.2B run, in accelerator time",
        "sec 3.2, 5.1",
        "accelerator days",
        prose("sweep_cost_ratio"),
        {
            "nodes_large": prose("nodes_large"),
            "days_large": prose("days_large"),
            "nodes_base": prose("nodes_base"),
            "hours_base": prose("hours_base"),
        },
        basis="other reading",
    )
