"""Premature study: parameter counts, the constants of the theorems and Table 12."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger
from plumbline.studies.premature.audit import sizes


def audit(ledger: Ledger) -> None:
    """Parameter counts, matched widths, Theorem 2's ratios, Corollary 3's factor and the locality ratios."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    million = {"unit": 10**6}
    base = sizes.base(ledger.settings)
    check(
        "params_270m",
        "parameters, in millions",
        "sec 4",
        "parameters",
        prose("params_m"),
        {"N": base.total(), **million},
    )
    # Both are said to have "roughly 270M".
    check(
        "params_llama",
        "parameters of the LLaMA-style variant of the same size, in millions",
        "sec 4",
        "parameters",
        prose("params_m"),
        {"N": sizes.llama(ledger.settings).total(), **million},
    )
    check(
        "params_0p7b",
        "parameters at 0.7B, in millions",
        "App H",
        "parameters",
        prose("params_0p7b_m"),
        {"N": sizes.large(ledger.settings).total(), **million},
    )
    check(
        "ffn_match",
        f"GELU width that three maps of width {prose('ffn_gated')} equal in parameters",
        "sec 4",
        "matched width",
        prose("ffn_single"),
        {"gated": prose("ffn_gated")},
    )
    widths = {"m": prose("ffn_single"), "r": prose("ffn_gated")}
    check(
        "r_over_m",
        "r / m of the two widths against 2/3",
        "theorem 2",
        "cross ratio",
        prose("r_over_m_numerator"),
        {**widths, "denominator": prose("r_over_m_denominator")},
    )
    check(
        "nu",
        "variance of the pre-activations: width x 0.02^2 (initial sd not printed)",
        "theorem 2",
        "pre-activation variance",
        prose("nu"),
        {"width": base.width, "sd": ledger.settings.number("external_init", "std")},
        basis="outside source",
    )
    for gate, name in (("geglu", "GEGLU"), ("swiglu", "SwiGLU")):
        check(
            f"rho_{gate}",
            f"energy ratio of {name} at init",
            "sec 6, theorem 2",
            f"energy ratio at init, {name}",
            prose(f"rho_{gate}"),
            {**widths, "nu": prose("nu")},
        )
    check(
        "fourfold",
        "factor of the multiplier 0.25",
        "corollary 3",
        "inverse",
        prose("fourfold"),
        {"alpha": prose("alpha")},
    )
    ratios = ledger.column("table12", "lambda_q") + ledger.column("table12", "lambda_k")
    arms = list(ledger.table("table12").index)
    for arm in arms:
        ledger.copy(
            f"energy_{arm}",
            f"immature energy of {arm} in the text",
            "App I, table 12",
            prose(f"energy_{arm}"),
            cell("table12", arm, "rp_over_x_energy"),
        )
    columns = ("lambda_q", "lambda_k", "rp_over_x_energy")
    check(
        "t12_order",
        "readings of Table 12 that are larger in the control",
        "App I, table 12",
        "count larger",
        Number(text=str(len(columns)), exact=True),
        {arm: [cell("table12", arm, column) for column in columns] for arm in arms},
    )
    check(
        "locality",
        "locality ratios below one",
        "sec 6, table 12",
        "count below",
        Number(text=str(len(ratios)), exact=True),
        {"lambda": ratios, "c": prose("locality_below")},
    )
