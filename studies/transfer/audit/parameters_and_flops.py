"""Recomputes printed numbers of the transfer study: Table 4, parameters and FLOPs of all methods."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows, Basis
from plumbline.audit.math_functions import largest
from plumbline.published.expression import Expression
from plumbline.published.printed_number import BILLION, exact

from . import decoder_sizes

#: What stands behind F in the rows of Table 4's FLOPs.
FLOPS = "F = 3 sum_l (2 s^2 d + 2 s weights_l)"


def audit(ledger: AuditRows) -> None:
    """Rows of Table 4 and of what is said about it."""
    check_parameters(ledger)
    check_flops(ledger)
    check_differences(ledger)


def check_parameters(ledger: AuditRows) -> None:
    """Parameter counts of all methods: in the interpretation that fits, and as the words have it where that is
    another."""
    check, t4, size = ledger.check, ledger.table("table4"), decoder_sizes.base(ledger.settings)
    base = size.total()
    for method in t4.rows:
        extra, literal = decoder_sizes.extra(method, size), decoder_sizes.literal_extra(method, size)
        basis: Basis = "follows" if extra == literal else "other interpretation"
        label, total = f"parameters of {method}, in billions", exact(base + extra, "counted_parameters") / BILLION
        check(f"t4_params_{method}", label, "table 4", t4[method, "params_b"], total, basis=basis)
        label, printed = f"parameters that {method} adds", t4[method, "delta_params_pct"]
        check(f"t4_delta_{method}", label, "table 4", printed, _percent_added(extra, base), basis=basis)
        if extra != literal:
            name, label = f"t4_delta_{method}_literal", f"{label} as its text has it"
            check(name, label, "table 4, App B", printed, _percent_added(literal, base), basis=basis)


def _percent_added(extra: int, base: int) -> Expression:
    return 100 * exact(extra, "extra") / exact(base, "counted_baseline")


def check_flops(ledger: AuditRows) -> None:
    """FLOPs of all methods by appendix C.1, from each one's matrices."""
    check, t4, size = ledger.check, ledger.table("table4"), decoder_sizes.base(ledger.settings)
    context = ledger.settings.whole("model_1p2b", "context")
    base = decoder_sizes.sequence_flops(size, context)
    for method in t4.rows:
        literal, fitted = (
            decoder_sizes.product_flops(weights(method, size), context)
            for weights in (decoder_sizes.literal_matrices, decoder_sizes.matrices)
        )
        basis: Basis = "follows" if fitted == literal else "other interpretation"
        name, label, printed = f"t4_flops_{method}", f"FLOPs that {method} adds", t4[method, "delta_flops_pct"]
        check(name, label, "table 4, App C.1", printed, _percent_more(fitted, base), basis=basis, note=FLOPS)
        if fitted != literal:
            label += " as its text has it: all projections stay"
            where, gap = "table 4, App B, C.1", _percent_more(literal, base)
            check(f"{name}_literal", label, where, printed, gap, basis=basis, note=FLOPS)
    method, both = "gated_attn_qknorm", decoder_sizes.sequence_flops(size, context, score_products=2)
    check(
        f"t4_flops_{method}_both",
        f"FLOPs that {method} adds if both products with the scores count (4 s^2 d)",
        "table 4, App C.1",
        t4[method, "delta_flops_pct"],
        _percent_more(decoder_sizes.product_flops(decoder_sizes.matrices(method, size), context), both),
        basis="other interpretation",
        note=FLOPS,
    )


def _percent_more(extra: int, base: int) -> Expression:
    return 100 * (exact(base + extra, "F") / exact(base, "F_baseline") - 1)


def check_differences(ledger: AuditRows) -> None:
    """What is said of Table 4's columns."""
    check, copy, prose, t4 = ledger.check, ledger.copy, ledger.prose, ledger.table("table4")
    params, flops = t4.column("delta_params_pct"), t4.column("delta_flops_pct")
    for method in ("selective_attn", "gated_attn_qknorm"):
        label = f"relative size of {method} from the printed counts"
        gap = 100 * (t4[method, "params_b"] / t4["baseline", "params_b"] - 1)
        check(f"t4_delta_printed_{method}", label, "table 4", t4[method, "delta_params_pct"], gap)
    rest = t4.column("delta_params_pct", [method for method in t4.rows if not method.startswith("selective")])
    for name, label, where, deltas in (
        (
            "all",
            "largest difference in parameters over all 20, the caption's exception included",
            "table 4 caption",
            params,
        ),
        ("rest", "the same without the exception, the two Selective rows", "table 4 caption", rest),
        ("flops", "largest difference in FLOPs", "sec 3.4", flops),
    ):
        check(f"t4_band_{name}", label, where, prose("params_band_pct"), largest(abs(deltas)))
    selective = t4["selective_attn", "delta_params_pct"]
    printed = prose("selective_cheaper_pct")
    check("t4_selective_text", "Selective cheaper by", "table 4 caption", printed, abs(selective))
    label, original = "gated attention's overhead in the text", t4["gated_attn_qknorm", "delta_params_pct"]
    copy("gated_overhead", label, "B.17", prose("gated_overhead_pct"), original)
    layers = prose("layers")
    label, scalars = f"DenseFormer's scalars at {layers} layers", layers * (layers + 1) / 2
    check("denseformer", label, "B.9", prose("denseformer_parameters"), scalars)
    label = "ReLU^2's wider layer: matrices of the gated over matrices of the plain layer"
    check("relu2", label, "B.16", prose("relu2_ratio"), prose("glu_matrices") / prose("relu2_matrices"))
    # A backward pass is two forward passes; with activation checkpointing one more is computed again.
    passes = exact(1, "forward") + exact(2, "backward") + exact(1, "again")
    label = "forward passes in a step with activation checkpointing"
    check("flops_times", label, "C.1", prose("flops_times"), passes, basis="outside source")
