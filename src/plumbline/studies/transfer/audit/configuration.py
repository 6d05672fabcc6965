"""Transfer study: Table 4, token and pack counts, and the constants of appendix B."""

from __future__ import annotations

from plumbline.audit.interval import Number, exact
from plumbline.audit.parameters import (
    TRANSFER_BASE,
    TRANSFER_LARGE,
    TRANSFER_LARGE_AS_PRINTED,
    transfer_extra,
)
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """All rows that follow from the stated configuration."""
    table_4(ledger)
    sizes(ledger)
    tokens(ledger)
    initial_values(ledger)


def table_4(ledger: Ledger) -> None:
    """Parameter counts and FLOPs of all 20 methods."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    base = TRANSFER_BASE.total()
    for method in ledger.table("table4").index:
        extra = transfer_extra(method)
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
        if method not in ("gated_attn_qknorm", "selective_attn", "selective_qknorm"):
            check(
                f"t4_flops_{method}",
                f"FLOPs that {method} adds by appendix C.1",
                "table 4, App C.1",
                "same number",
                cell("table4", method, "delta_flops_pct"),
                {"matrix products added": 0},
            )
    gate = cell("table4", "gated_attn_qknorm", "delta_flops_pct")
    heads = prose("heads")
    check(
        "t4_flops_gated",
        "FLOPs of the head-wise gate, scores counted as printed (2 s^2 d)",
        "table 4, App C.1",
        "head-wise gate FLOPs",
        gate,
        {"heads": heads, "score products": 1},
    )
    check(
        "t4_flops_gated_both",
        "the same with both products with the scores (4 s^2 d)",
        "table 4, App C.1",
        "head-wise gate FLOPs",
        gate,
        {"heads": heads, "score products": 2},
    )
    for method in ("selective_attn", "selective_qknorm"):
        check(
            f"t4_flops_{method}",
            f"FLOPs of {method}, whose projections have 2^20 weights a layer less",
            "table 4, App C.1",
            "FLOPs of missing weights",
            cell("table4", method, "delta_flops_pct"),
            {"extra": transfer_extra("selective_attn")},
        )
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
        "DenseFormer's scalars at 24 layers",
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


def sizes(ledger: Ledger) -> None:
    """Head counts that two sections print differently, and what "3B" means."""
    check, prose = ledger.check, ledger.prose
    check(
        "head_width",
        "head width at 32 heads",
        "B.6",
        "ratio",
        prose("head_width"),
        {"hidden": prose("hidden"), "heads": prose("heads")},
    )
    ledger.copy(
        "heads", "heads in appendix D are those of section 3.2", "sec 3.2, App D", prose("heads_app_d"), prose("heads")
    )
    ledger.copy(
        "key_value_groups",
        "key/value groups in appendix D are those of section 3.2",
        "sec 3.2, App D",
        prose("key_value_groups_app_d"),
        prose("key_value_heads"),
    )
    large = prose("parameters_large_b")
    check(
        "size_3b_as_printed",
        "28 layers of width 3072 with all else identical (FFN 5632), billions",
        "sec 3.2",
        "parameters",
        large,
        {"N": TRANSFER_LARGE_AS_PRINTED.total(), "unit": 10**9},
    )
    check(
        "size_3b_scaled",
        "the same with the FFN scaled to 8448",
        "sec 3.2",
        "parameters",
        large,
        {"N": TRANSFER_LARGE.total(), "unit": 10**9},
    )
    check(
        "cost_parameters",
        "cost of 3B over 1.2B at equal tokens, by parameters (FFN 8448)",
        "sec 5.1",
        "ratio",
        prose("sweep_cost_ratio"),
        {"large": TRANSFER_LARGE.total(), "base": TRANSFER_BASE.total()},
    )


def tokens(ledger: Ledger) -> None:
    """Training tokens and packs."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    steps, per_step = prose("steps"), exact(2 ** int(prose("log2_tokens_per_step").text), "sec 3.2")
    billion = {"unit": Number(text="1e-9", exact=True)}
    for name, where in (("tokens_b", "sec 3.2"), ("tokens_3b_b", "sec 5.1")):
        check(
            name,
            "44,000 steps of 2^20 tokens, in billions",
            where,
            "product",
            prose(name),
            {"steps": steps, "per step": per_step, **billion},
        )
        check(
            f"{name}_half",
            "44,000 steps of 2^19 tokens, in billions",
            where,
            "product",
            prose(name),
            {"steps": steps, "per step": 2**19, **billion},
        )
    for pack in ledger.table("data_packs").index:
        check(
            f"pack_{pack}",
            f"tokens of the pack {pack}, in billions",
            "App A",
            "product",
            cell("data_packs", pack, "tokens_b"),
            {"sequences": cell("data_packs", pack, "sequences", exact=True), "context": prose("context"), **billion},
        )


def initial_values(ledger: Ledger) -> None:
    """Appendix B's values at step 0."""
    check, prose = ledger.check, ledger.prose
    offset, context = prose("ssmax_offset"), prose("context")
    check(
        "ssmax_scale",
        "SSMax's s at init",
        "B.6",
        "softplus plus offset",
        prose("ssmax_scale"),
        {"logit": 0, "offset": offset},
    )
    check("ssmax_log_n", "log of the context", "B.6", "natural logarithm", prose("ssmax_log_n"), {"n": context})
    check(
        "ssmax_temperature",
        "1 / (s log n) at init",
        "B.6",
        "SSMax temperature",
        prose("ssmax_temperature"),
        {"logit": 0, "offset": offset, "n": context},
    )
    check(
        "ssmax_reference",
        "1 / sqrt(d_k)",
        "B.6",
        "inverse square root",
        prose("ssmax_reference"),
        {"d_k": prose("head_width")},
    )
    check(
        "ssmax_within",
        "distance of the two, per cent at most",
        "B.6",
        "SSMax temperature gap",
        Number(text=prose("ssmax_within_pct").text, relation="<", where="B.6"),
        {"logit": 0, "offset": offset, "n": context, "reference": Number(text="0.125", exact=True, where="B.6")},
    )
    check(
        "hyper_beta",
        "slow lane's rate at init",
        "B.11",
        "logistic",
        prose("hyper_beta"),
        {"logit": Number(text=prose("hyper_beta_logit").text, exact=True, where="B.11")},
    )
