"""Transfer study: counts of methods by module, and of effects among them."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger
from plumbline.studies.transfer.audit.base_scale import seeds


def audit(ledger: Ledger) -> None:
    """Rows of sections 3.1, 4.2 and 4.3."""
    counts(ledger)
    effects(ledger)


def counts(ledger: Ledger) -> None:
    """Counts of methods by module, from Table 1."""
    check, prose = ledger.check, ledger.prose
    table = ledger.table("table1")
    for category in ("attention", "ffn", "normalization", "residual"):
        check(
            f"t1_{category}",
            f"{category} methods",
            "table 1",
            "same number",
            prose(f"{category}_methods"),
            {"rows": int((table["category"] == category).sum())},
        )
    for kind in ("soft", "hard"):
        check(
            f"t1_{kind}",
            f"{kind} attention methods",
            "table 1",
            "same number",
            prose(f"{kind}_methods"),
            {"rows": int((table["soft_hard"] == kind).sum())},
        )
    groups = {name: prose(f"{name}_methods") for name in ("attention", "ffn", "normalization", "residual")}
    check(
        "t1_total",
        "methods in the table, baseline included",
        "table 1 caption",
        "sum",
        prose("methods_total"),
        {"baseline": 1, **groups},
    )
    check(
        "modifications_tested", "modifications tested", "abstract, sec 1", "sum", prose("modifications_tested"), groups
    )


def effects(ledger: Ledger) -> None:
    """How many attention and residual methods lie beyond the noise, and how far."""
    check, prose = ledger.check, ledger.prose
    table = ledger.table("table1")
    # Combinations carry no soft or hard label.
    attention = list(table.index[(table["category"] == "attention") & table["soft_hard"].notna()])
    combinations = int((table["category"] == "attention").sum()) - len(attention)
    check(
        "attention_alone",
        "attention methods that are no combination",
        "sec 4.2",
        "difference",
        prose("combination_free_attention"),
        {"attention": prose("attention_methods"), "combinations": combinations},
    )
    z, line = ledger.column("table2", "z", attention), prose("z_line")
    check(
        "attention_distinguishable",
        "of those, beyond |z| = 2",
        "sec 4.2",
        "count beyond",
        prose("distinguishable_attention"),
        {"z": z, "c": line},
    )
    check(
        "attention_improving",
        "of those, above",
        "sec 4.2",
        "count above",
        prose("attention_improving"),
        {"z": z, "c": line},
    )
    check(
        "attention_degrading",
        "of those, below",
        "sec 4.2",
        "count below minus",
        prose("attention_degrading"),
        {"z": z, "c": line},
    )
    check(
        "attention_parts",
        "improving and degrading together",
        "sec 4.2",
        "sum",
        prose("distinguishable_attention"),
        {"improving": prose("attention_improving"), "degrading": prose("attention_degrading")},
    )
    residual = ledger.column("table2", "z", list(table.index[table["category"] == "residual"]))
    check(
        "residual_improving",
        "residual methods beyond z = 2",
        "sec 4.3",
        "count above",
        prose("residual_improving"),
        {"z": residual, "c": line},
    )
    check(
        "residual_worse",
        "residual methods below z = -2",
        "sec 4.3",
        "count below minus",
        prose("residual_worse"),
        {"z": residual, "c": line},
    )
    everything = ledger.column("table2", "climb_avg", list(table.index[table["category"] == "attention"]))
    hi, lo = prose("span_high"), prose("span_low")
    span = {"hi": hi, "lo": lo}
    check(
        "attention_span",
        "the attention span's ends are Table 2's",
        "sec 4.2",
        "range",
        Number(text=f"{hi.value - lo.value:.3f}", cells=hi.cells + lo.cells),
        {"x": everything},
    )
    seeds_width = dict(zip(("s1", "s2", "s3"), seeds(ledger, "baseline"), strict=True))
    check(
        "span_over_seed_range",
        "span over the width of the seeds' bootstrap (their range)",
        "sec 4.2",
        "span over range",
        prose("span_over_width"),
        {**span, **seeds_width},
        basis="other reading",
    )
    check(
        "span_over_four_sigma",
        "span over the width of |z| < 2",
        "sec 4.2",
        "span over four sigma",
        prose("span_over_width"),
        {**span, "sigma": ledger.cell("noise_floor", "baseline", "climb_avg_std")},
        basis="other reading",
    )
    # "Two orders of magnitude" is said of both softmax replacements in words: no number that each must round to.
    check(
        "orders",
        "larger effect of the two softmax replacements over sigma, orders of magnitude",
        "sec 4.2",
        "orders of magnitude",
        prose("orders_over_floor"),
        {"z": ledger.cell("table2", "sigmoid_attn", "z")},
    )
