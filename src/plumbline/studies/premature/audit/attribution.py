"""Premature study: attribution to components (Tables 3 to 5)."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """Rows of sections 5.5 and 5.6 and appendix C."""
    attribution(ledger)
    table_5(ledger)


def attribution(ledger: Ledger) -> None:
    """Tables 3 and 4, and section 5.5 and 5.6."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    for arch in ledger.table("table4").index:
        check(
            f"t4_{arch}",
            f"perplexity gain of {arch}",
            "table 4",
            "difference",
            cell("table4", arch, "ppl_reduction"),
            {"control": cell("table4", arch, "control_ppl"), "intervention": cell("table4", arch, "intervention_ppl")},
        )
    for arch in ("gpt", "gpt_swiglu"):
        for column, other in (("ppl_reduction", "ppl_reduction"), ("entropy_3pct", "upper_entropy_3pct")):
            ledger.copy(
                f"t3_{column}_{arch}",
                f"{column} of {arch} is Table 4's",
                "tables 3, 4",
                cell("table3", arch, column),
                cell("table4", arch, other),
            )
    check(
        "llama_gain",
        "perplexity gain of the LLaMA-style block",
        "sec 5.5",
        "difference",
        prose("llama_gain"),
        {"control": prose("llama_control"), "intervention": prose("llama_intervention")},
    )
    single_changes(ledger)
    ledger.copy(
        "t3_llama", "the same in Table 3", "table 3", cell("table3", "llama", "ppl_reduction"), prose("llama_gain")
    )
    ledger.copy(
        "geglu_entropy",
        "GEGLU's entropy in the text",
        "sec 5.6, table 4",
        prose("geglu_entropy"),
        cell("table4", "gpt_geglu", "upper_entropy_3pct"),
    )
    ledger.copy(
        "entropy_b4",
        "the control's entropy in appendix B.4",
        "B.4, table 3",
        prose("control_entropy_b4"),
        cell("table3", "gpt", "entropy_3pct"),
    )
    ledger.copy(
        "logit_b4",
        "the control's logit in appendix B.4",
        "B.4, table 3",
        prose("control_logit_b4"),
        cell("table3", "gpt", "logit_3pct"),
    )


def single_changes(ledger: Ledger) -> None:
    """What section 5.5 says of the order of Table 3's rows."""
    check, cell = ledger.check, ledger.cell
    for column in ("logit_3pct", "entropy_3pct"):
        ledger.copy(
            f"t3_rmsnorm_{column}",
            f"{column} of GPT + RMSNorm is the reference's",
            "sec 5.5, table 3",
            cell("table3", "gpt_rmsnorm", column),
            cell("table3", "gpt", column),
        )
    gain = {arch: cell("table3", arch, "ppl_reduction") for arch in ledger.table("table3").index}
    kept = [gain["gpt_rmsnorm"], gain["gpt_biasless"]]
    check(
        "t3_kept",
        "single changes that keep most of the reference's gain: RMSNorm, no biases",
        "sec 1, 5.5, table 3",
        "count above half",
        Number(text=str(len(kept)), exact=True),
        {"x": kept, "reference": gain["gpt"]},
    )
    ordered = ["gpt_rmsnorm", "gpt_biasless", "gpt_swiglu"]
    check(
        "t3_largest_suppressor",
        "single changes in the order of what is left of the gain: RMSNorm, no biases, SwiGLU",
        "sec 5.5, table 3",
        "count falling",
        Number(text=str(len(ordered)), exact=True),
        {"x": [gain["gpt"], *(gain[arch] for arch in ordered)]},
    )
    # "LLaMA-style+LayerNorm sits between the two": SwiGLU's row stands before it in the text, and either reference
    # can be the other of the two.
    middle = "llama_layernorm"
    for other, said in (("gpt", "the GPT-style reference"), ("llama", "the LLaMA-style reference")):
        for column in ("ppl_reduction", "logit_3pct", "entropy_3pct"):
            check(
                f"t3_between_{other}_{column}",
                f"{column} of LLaMA-style + LayerNorm lies between matched SwiGLU and {said}",
                "sec 5.5, table 3",
                "between",
                cell("table3", middle, column),
                {"swiglu": cell("table3", "gpt_swiglu", column), other: cell("table3", other, column)},
                basis="other reading",
            )
    check(
        "entropy_order",
        "pairs of architectures where the higher entropy goes with the larger gain",
        "sec 5.5, fig 2, table 3",
        "count in same order",
        Number(text="0", exact=True),
        {"entropy": [cell("table3", arch, "entropy_3pct") for arch in gain], "gain": list(gain.values())},
    )


def table_5(ledger: Ledger) -> None:
    """Feed-forward residual writes."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    first = {arm: cell("table5", arm, "first_upper_write_rms") for arm in ledger.table("table5").index}
    # Section 5.6: measured "at the same 3% checkpoint used for the attention diagnostics".
    diagnostics = {
        "gelu_3840": (cell("table3", "gpt", "logit_3pct"), cell("table3", "gpt", "entropy_3pct")),
        "swiglu_2560": (cell("table3", "gpt_swiglu", "logit_3pct"), cell("table3", "gpt_swiglu", "entropy_3pct")),
        "geglu_2560": (prose("geglu_logit"), prose("geglu_entropy")),
    }
    for arm, (logit, entropy) in diagnostics.items():
        ledger.copy(
            f"t5_logit_{arm}",
            f"logit of {arm} in the diagnostics is Table 5's",
            "sec 5.6, tables 3, 5",
            logit,
            cell("table5", arm, "upper_logit"),
        )
        ledger.copy(
            f"t5_entropy_{arm}",
            f"entropy of {arm} in the diagnostics is Table 5's",
            "sec 5.6, tables 3, 5",
            entropy,
            cell("table5", arm, "upper_entropy"),
        )
    for column, shown in (("upper_logit", 0), ("upper_entropy", 1)):
        check(
            f"t5_rank_{column}",
            f"pairs of architectures that {column} orders alike in the diagnostics and in Table 5",
            "sec 5.6, tables 3, 5",
            "count in same order",
            Number(text=str(len(diagnostics) * (len(diagnostics) - 1) // 2), exact=True),
            {
                "diagnostics": [printed[shown] for printed in diagnostics.values()],
                "pathway": [cell("table5", arm, column) for arm in diagnostics],
            },
        )
    gated, single = ("swiglu_2560", "geglu_2560"), ("gelu_3840", "gelu_2560")
    pairs = [(a, b) for a in gated for b in single]
    for column, more, less in (("upper_logit", "gelu", "gated"), ("upper_entropy", "gated", "gelu")):
        sides = {
            "gated": [cell("table5", a, column) for a, _ in pairs],
            "gelu": [cell("table5", b, column) for _, b in pairs],
        }
        check(
            f"t5_order_{column}",
            f"pairs of a gated and a GELU layer where {more} has the higher {column}",
            "sec 5.6, table 5",
            "count larger",
            Number(text=str(len(pairs)), exact=True),
            {more: sides[more], less: sides[less]},
        )
    for gate in ("swiglu", "geglu"):
        for width in ("3840", "2560"):
            check(
                f"write_{gate}_{width}",
                f"{gate} write below GELU-{width}",
                "sec 5.6",
                "reduction",
                prose(f"write_{gate}_{width}"),
                {
                    "gated": cell("table5", f"{gate}_2560", "upper_ffn_write_rms"),
                    "gelu": cell("table5", f"gelu_{width}", "upper_ffn_write_rms"),
                },
            )
    check(
        "first_upper_low",
        "smallest reduction in the first upper layer (GEGLU against GELU-2560)",
        "App C",
        "reduction",
        prose("first_upper_low"),
        {"gated": first["geglu_2560"], "gelu": first["gelu_2560"]},
    )
    check(
        "first_upper_high",
        "largest reduction (SwiGLU against GELU-3840)",
        "App C",
        "reduction",
        prose("first_upper_high"),
        {"gated": first["swiglu_2560"], "gelu": first["gelu_3840"]},
    )
