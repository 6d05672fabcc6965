"""Premature study: attribution and controls (Tables 3 to 10) and the release grid."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """Rows of sections 5.5 and 5.6 and appendices C to G."""
    attribution(ledger)
    table_5(ledger)
    entropy_floor(ledger)
    table_7(ledger)
    table_8(ledger)
    table_9_and_10(ledger)


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


def entropy_floor(ledger: Ledger) -> None:
    """Table 6, whose reference rows are shortened copies of Table 9's."""
    check, cell = ledger.check, ledger.cell
    control = cell("table6", "control", "final_ppl")
    for arm in ("entropy_floor", "intervention"):
        check(
            f"t6_{arm}",
            f"perplexity gain of {arm}",
            "table 6",
            "difference",
            cell("table6", arm, "ppl_reduction"),
            {"control": control, "arm": cell("table6", arm, "final_ppl")},
        )
    for arm in ("control", "intervention"):
        for column in ("final_ppl", "entropy_3pct", "logit_3pct"):
            ledger.copy(
                f"t6_{column}_{arm}",
                f"{column} of {arm} is Table 9's",
                "tables 6, 9",
                cell("table6", arm, column),
                cell("table9", arm, column),
            )
    ledger.copy(
        "t6_gain_copy",
        "the intervention's gain is Table 9's",
        "tables 6, 9",
        cell("table6", "intervention", "ppl_reduction"),
        cell("table9", "intervention", "ppl_reduction"),
    )


def table_7(ledger: Ledger) -> None:
    """Global learning-rate control."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    for arm in ledger.table("table7").index:
        check(
            f"t7_ppl_{arm}",
            f"perplexity of {arm} against its loss",
            "table 7",
            "perplexity",
            cell("table7", arm, "final_ppl"),
            {"loss": cell("table7", arm, "final_loss")},
        )
        if arm == "control":
            continue
        for column in ("loss", "ppl"):
            check(
                f"t7_{column}_{arm}_difference",
                f"difference of {column}, {arm}",
                "table 7",
                "difference",
                cell("table7", arm, f"delta_{column}"),
                {
                    "arm": cell("table7", arm, f"final_{column}"),
                    "control": cell("table7", "control", f"final_{column}"),
                },
            )
    ledger.copy(
        "half_lr_ppl",
        "perplexity at half the rate in the text",
        "sec 5.1",
        prose("half_lr_ppl"),
        cell("table7", "global_half_lr", "final_ppl"),
    )


def table_8(ledger: Ledger) -> None:
    """Release checkpoints on a grid of evaluations every 0.5 % of whole steps."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    budget = {"tokens": prose("tokens"), "batch": prose("batch_tokens")}
    releases = ledger.column("table8", "release_pct")
    for rule in ledger.table("table8").index:
        printed = cell("table8", rule, "release_pct")
        if rule == "higher_threshold":
            check(
                f"t8_{rule}",
                "an evaluation of the grid (when the score passes is data)",
                "table 8",
                "nearest evaluation",
                printed,
                {"share": Number(text=printed.text, exact=True), **budget},
            )
            continue
        check(
            f"t8_{rule}",
            f"first release that rule {rule} allows when the score passes at 3 %",
            "table 8",
            "release checkpoint",
            printed,
            {
                "start": cell("table8", rule, "window_start_pct", exact=True),
                "patience": cell("table8", rule, "patience", exact=True),
                **budget,
            },
        )
    window: dict[str, Number | list[Number]] = {"x": releases, "c": prose("release_high")}
    check("t8_window_high", "rules that release before 6 %", "sec 5.1", "count below", prose("rules_in_window"), window)
    check(
        "t8_window_low",
        "earliest release",
        "sec 5.1",
        "smallest",
        Number(text=prose("release_low").text),
        {"x": releases},
    )


def table_9_and_10(ledger: Ledger) -> None:
    """Fixed releases and the multiplier sweep."""
    check, cell = ledger.check, ledger.cell
    control = cell("table9", "control", "final_ppl")
    for arm in ("intervention", "fixed_3pct", "fixed_6pct"):
        check(
            f"t9_{arm}",
            f"perplexity gain of {arm}",
            "table 9",
            "difference",
            cell("table9", arm, "ppl_reduction"),
            {"control": control, "arm": cell("table9", arm, "final_ppl")},
        )
    for arm, column in (("control", "control_ppl"), ("intervention", "intervention_ppl")):
        ledger.copy(
            f"t9_copy_{arm}",
            f"perplexity of {arm} is Table 4's",
            "tables 4, 9",
            cell("table9", arm, "final_ppl"),
            cell("table4", "gpt", column),
        )
    steps = len(ledger.table("table10")) - 1
    for column, sign in (("upper_entropy_3pct", ""), ("upper_logit_3pct", "-"), ("qk_bilinear_displacement_3pct", "-")):
        values = [Number(text=sign + number.text) for number in ledger.column("table10", column)]
        check(
            f"t10_{column}",
            f"{column} is monotone in the multiplier ({'rises' if not sign else 'falls'})",
            "App G",
            "count rising",
            Number(text=str(steps), exact=True),
            {"x": values},
        )
    improved = ledger.column("table10", "final_ppl", ["mult_0p5", "mult_0p25", "mult_0p125"])
    check(
        "t10_improved",
        "reduced multipliers that improve perplexity",
        "App G",
        "count below",
        Number(text=str(len(improved)), exact=True),
        {"x": improved, "c": cell("table10", "control", "final_ppl")},
    )
