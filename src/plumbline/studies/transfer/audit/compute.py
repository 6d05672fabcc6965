"""Transfer study: Table 4, parameters and FLOPs of all methods."""

from __future__ import annotations

from plumbline.audit.rows import Ledger
from plumbline.studies.transfer.audit import sizes


def audit(ledger: Ledger) -> None:
    """Rows of Table 4 and of what is said about it."""
    parameters(ledger)
    flops(ledger)
    differences(ledger)


def parameters(ledger: Ledger) -> None:
    """Parameter counts of all methods: in the reading that fits, and as the words have it where that is another."""
    check, cell, size = ledger.check, ledger.cell, sizes.base(ledger.settings)
    base = size.total()
    for method in ledger.table("table4").index:
        extra, literal = sizes.extra(method, size), sizes.extra_by_the_words(method, size)
        check(
            f"t4_params_{method}",
            f"parameters of {method}, in billions",
            "table 4",
            "parameters",
            cell("table4", method, "params_b"),
            {"N": base + extra, "unit": 10**9},
            basis="follows" if extra == literal else "other reading",
        )
        check(
            f"t4_delta_{method}",
            f"parameters that {method} adds",
            "table 4",
            "added parameters",
            cell("table4", method, "delta_params_pct"),
            {"extra": extra, "N": base},
            basis="follows" if extra == literal else "other reading",
        )
        if extra != literal:
            check(
                f"t4_delta_{method}_literal",
                f"parameters that {method} adds as its text has it",
                "table 4, App B",
                "added parameters",
                cell("table4", method, "delta_params_pct"),
                {"extra": literal, "N": base},
                basis="other reading",
            )


def flops(ledger: Ledger) -> None:
    """FLOPs of all methods by appendix C.1, from each one's matrices."""
    check, cell, size = ledger.check, ledger.cell, sizes.base(ledger.settings)
    context = ledger.settings.whole("model_1p2b", "context")
    base = sizes.sequence_flops(size, context)
    for method in ledger.table("table4").index:
        printed = cell("table4", method, "delta_flops_pct")
        literal = sizes.matrices_by_the_words(method, size)
        fitted = sizes.matrices(method, size)
        check(
            f"t4_flops_{method}",
            f"FLOPs that {method} adds",
            "table 4, App C.1",
            "FLOPs by appendix C.1",
            printed,
            {"F": base + sizes.product_flops(fitted, context), "F(baseline)": base},
            basis="follows" if fitted == literal else "other reading",
        )
        if fitted != literal:
            check(
                f"t4_flops_{method}_literal",
                f"FLOPs that {method} adds as its text has it: all projections stay",
                "table 4, App B, C.1",
                "FLOPs by appendix C.1",
                printed,
                {"F": base + sizes.product_flops(literal, context), "F(baseline)": base},
                basis="other reading",
            )
    gate, both = "gated_attn_qknorm", sizes.sequence_flops(size, context, score_products=2)
    check(
        f"t4_flops_{gate}_both",
        f"FLOPs that {gate} adds if both products with the scores count (4 s^2 d)",
        "table 4, App C.1",
        "FLOPs by appendix C.1",
        cell("table4", gate, "delta_flops_pct"),
        {"F": both + sizes.product_flops(sizes.matrices(gate, size), context), "F(baseline)": both},
        basis="other reading",
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
