"""Recomputes printed numbers of the transfer study: counts of methods by module, and of effects among them."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.audit.math_functions import largest, log10, smallest
from plumbline.published.printed_number import PrintedColumn, PrintedNumber, exact

from .base_scale import seeds


def audit(ledger: AuditRows) -> None:
    """Rows of sections 3.1, 4.2 and 4.3."""
    check_counts(ledger)
    check_effects(ledger)


def check_counts(ledger: AuditRows) -> None:
    """Counts of methods by module, from Table 1."""
    check, prose, t1 = ledger.check, ledger.prose, ledger.table("table1")
    categories, kinds = list(t1.texts("category").values()), list(t1.texts("soft_hard").values())
    modules = ("attention", "ffn", "normalization", "residual")
    for name in modules:
        rows = exact(categories.count(name), "rows")
        check(f"t1_{name}", f"{name} methods", "table 1", prose(f"{name}_methods"), rows)
    for kind in ("soft", "hard"):
        rows = exact(kinds.count(kind), "rows")
        check(f"t1_{kind}", f"{kind} attention methods", "table 1", prose(f"{kind}_methods"), rows)
    attention, ffn, normalization, residual = (prose(f"{name}_methods") for name in modules)
    label, everything = "methods in the table, baseline included", 1 + attention + ffn + normalization + residual
    check("t1_total", label, "table 1 caption", prose("methods_total"), everything)
    tested = attention + ffn + normalization + residual
    check("modifications_tested", "modifications tested", "abstract, sec 1", prose("modifications_tested"), tested)


def check_effects(ledger: AuditRows) -> None:
    """How many attention and residual methods lie beyond the noise, and how far."""
    check, prose = ledger.check, ledger.prose
    t1, t2, line = ledger.table("table1"), ledger.table("table2"), prose("z_line")
    module = t1.texts("category")
    attention = [method for method in module if module[method] == "attention"]
    # Combinations carry no soft or hard label.
    alone = [method for method in attention if method in t1.texts("soft_hard")]
    combinations = exact(len(attention) - len(alone), "combinations")
    label, rest = "attention methods that are no combination", prose("attention_methods") - combinations
    check("attention_alone", label, "sec 4.2", prose("combination_free_attention"), rest)
    z, distinguishable = t2.column("z", alone), prose("distinguishable_attention")
    improving, degrading = prose("attention_improving"), prose("attention_degrading")
    check("attention_distinguishable", "of those, beyond |z| = 2", "sec 4.2", distinguishable, count(abs(z) > line))
    check("attention_improving", "of those, above", "sec 4.2", improving, count(z > line))
    check("attention_degrading", "of those, below", "sec 4.2", degrading, count(z < -line))
    label = "improving and degrading together"
    check("attention_parts", label, "sec 4.2", distinguishable, improving + degrading)
    z = t2.column("z", [method for method in module if module[method] == "residual"])
    label = "residual methods beyond z = 2"
    check("residual_improving", label, "sec 4.3", prose("residual_improving"), count(z > line))
    label = "residual methods below z = -2"
    check("residual_worse", label, "sec 4.3", prose("residual_worse"), count(z < -line))
    check_spans(ledger, t2.column("climb_avg", attention))


def check_spans(ledger: AuditRows, scores: PrintedColumn) -> None:
    """How far the attention methods' scores spread, in units of the noise."""
    check, prose = ledger.check, ledger.prose
    hi, lo, width = prose("span_high"), prose("span_low"), prose("span_over_width")
    printed = PrintedNumber(text=f"{hi.value - lo.value:.3f}", cells=hi.cells + lo.cells)
    label = "the attention span's ends are Table 2's"
    check("attention_span", label, "sec 4.2", printed, largest(scores) - smallest(scores))
    values, sigma = seeds(ledger, "baseline"), ledger.table("noise_floor")["baseline", "climb_avg_std"]
    label = "span over the width of the seeds' bootstrap (their range)"
    ratio = (hi - lo) / (largest(values) - smallest(values))
    check("span_over_seed_range", label, "sec 4.2", width, ratio, basis="other interpretation")
    label, ratio = "span over the width of |z| < 2", (hi - lo) / (4 * sigma)
    check("span_over_four_sigma", label, "sec 4.2", width, ratio, basis="other interpretation")
    # "Two orders of magnitude" is said of both softmax replacements in words: no number that each must round to.
    label = "larger effect of the two softmax replacements over sigma, orders of magnitude"
    orders = log10(abs(ledger.table("table2")["sigmoid_attn", "z"]))
    check("orders", label, "sec 4.2", prose("orders_over_floor"), orders)
