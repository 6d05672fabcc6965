"""Transfer study: Table 4, parameters and FLOPs of all methods."""

from __future__ import annotations

import math

from plumbline.audit.rows import Ledger
from plumbline.studies.transfer.audit import sizes


def audit(ledger: Ledger) -> None:
    """Rows of Table 4 and of what is said about it."""
    parameters(ledger)
    flops(ledger)
    differences(ledger)


def parameters(ledger: Ledger) -> None:
    """Parameter counts of all methods."""
    check, cell, size = ledger.check, ledger.cell, sizes.base(ledger.settings)
    base = size.total()
    for method in ledger.table("table4").index:
        extra = sizes.extra(method, size)
        check(
            f"t4_params_{method}",
            f"parameters of {method}, in billions",
            "table 4",
            "parameters",
            cell("table4", method, "params_b"),
            {"N": base + extra, "unit": 10**9},
        )
        check(
            f"t4_delta_{method}",
            f"parameters that {method} adds",
            "table 4",
            "added parameters",
            cell("table4", method, "delta_params_pct"),
            {"extra": extra, "N": base},
        )


def flops(ledger: Ledger) -> None:
    """FLOPs of all methods by appendix C.1."""
    check, cell, size = ledger.check, ledger.cell, sizes.base(ledger.settings)
    context = ledger.settings.whole("model_1p2b", "context")
    selective = ("selective_attn", "selective_qknorm")
    for method in ledger.table("table4").index:
        if method not in ("gated_attn_qknorm", *selective):
            check(
                f"t4_flops_{method}",
                f"FLOPs that {method} adds by appendix C.1",
                "table 4, App C.1",
                "same number",
                cell("table4", method, "delta_flops_pct"),
                {"matrix products added": 0},
            )
    gate = cell("table4", "gated_attn_qknorm", "delta_flops_pct")
    for id, what, products in (
        ("t4_flops_gated", "FLOPs of the head-wise gate, scores counted as printed (2 s^2 d)", 1),
        ("t4_flops_gated_both", "the same with both products with the scores (4 s^2 d)", 2),
    ):
        check(
            id,
            what,
            "table 4, App C.1",
            "head-wise gate FLOPs",
            gate,
            {
                "H": size.heads,
                "layers": size.layers,
                "s": context,
                "d": size.width,
                "F": sizes.sequence_flops(size, context, score_products=products),
            },
        )
    missing = sizes.extra("selective_attn", size)
    weights = f"2^{math.log2(-missing / size.layers):.4g}"
    for method in selective:
        check(
            f"t4_flops_{method}",
            f"FLOPs of {method}, whose projections have {weights} weights a layer less",
            "table 4, App C.1",
            "FLOPs of missing weights",
            cell("table4", method, "delta_flops_pct"),
            {"extra": missing, "s": context, "F": sizes.sequence_flops(size, context)},
        )


def differences(ledger: Ledger) -> None:
    """What is said of Table 4's columns."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    printed_base = cell("table4", "baseline", "params_b")
    for method in ("selective_attn", "gated_attn_qknorm"):
        check(
            f"t4_delta_printed_{method}",
            f"relative size of {method} from the printed counts",
            "table 4",
            "relative difference",
            cell("table4", method, "delta_params_pct"),
            {"N": cell("table4", method, "params_b"), "baseline": printed_base},
        )
    band = prose("params_band_pct")
    rest = [name for name in ledger.table("table4").index if not name.startswith("selective")]
    check(
        "t4_band_all",
        "largest difference in parameters over all 20",
        "table 4 caption",
        "largest magnitude",
        band,
        {"delta": ledger.column("table4", "delta_params_pct")},
    )
    check(
        "t4_band_rest",
        "the same without the two Selective rows",
        "table 4 caption",
        "largest magnitude",
        band,
        {"delta": ledger.column("table4", "delta_params_pct", rest)},
    )
    check(
        "t4_band_flops",
        "largest difference in FLOPs",
        "sec 3.4",
        "largest magnitude",
        band,
        {"delta": ledger.column("table4", "delta_flops_pct")},
    )
    check(
        "t4_selective_text",
        "Selective cheaper by",
        "table 4 caption",
        "magnitude",
        prose("selective_cheaper_pct"),
        {"delta": cell("table4", "selective_attn", "delta_params_pct")},
    )
    check(
        "selective_new",
        "Selective's new parameters, from Table 4's difference (in % of the baseline)",
        "B.4, table 4",
        "same number",
        prose("selective_new_parameters"),
        {"delta": cell("table4", "selective_attn", "delta_params_pct")},
    )
    ledger.copy(
        "gated_overhead",
        "gated attention's overhead in the text",
        "B.17",
        prose("gated_overhead_pct"),
        cell("table4", "gated_attn_qknorm", "delta_params_pct"),
    )
    check(
        "denseformer",
        f"DenseFormer's scalars at {prose('layers')} layers",
        "B.9",
        "triangular number",
        prose("denseformer_parameters"),
        {"layers": prose("layers")},
    )
    check(
        "relu2",
        "ReLU^2's wider layer: matrices of the gated over matrices of the plain layer",
        "B.16",
        "ratio",
        prose("relu2_ratio"),
        {"gated": prose("glu_matrices"), "plain": prose("relu2_matrices")},
    )
