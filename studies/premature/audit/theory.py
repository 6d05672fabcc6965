"""Recomputes printed numbers of the premature study: parameter counts, the constants of the theorems and Table 12."""

from __future__ import annotations

from fractions import Fraction

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.published.printed_number import MILLION, exact

from . import decoder_sizes
from .named_functions import rho_geglu, rho_swiglu


def audit(ledger: AuditRows) -> None:
    """Rows of sections 4 and 6, appendices H and I."""
    check_decoders(ledger)
    check_constants(ledger)
    check_table_12(ledger)


def check_decoders(ledger: AuditRows) -> None:
    """Parameter counts and matched widths."""
    check, prose = ledger.check, ledger.prose
    base, llama, large = (
        make(ledger.settings) for make in (decoder_sizes.base, decoder_sizes.llama, decoder_sizes.large)
    )
    # Both of the first two are said to have "roughly 270M".
    for name, label, where, printed, size in (
        ("270m", "parameters", "sec 4", "params_m", base),
        ("llama", "parameters of the LLaMA-style variant of the same size", "sec 4", "params_m", llama),
        ("0p7b", "parameters at 0.7B", "App H", "params_0p7b_m", large),
    ):
        total = exact(size.total(), "counted_parameters") / MILLION
        check(f"params_{name}", f"{label}, in millions", where, prose(printed), total)
    label = f"GELU width that three maps of width {prose('ffn_gated')} equal in parameters"
    check("ffn_match", label, "sec 4", prose("ffn_single"), 3 * prose("ffn_gated") / 2)


def check_constants(ledger: AuditRows) -> None:
    """Theorem 2's ratios and Corollary 3's factor."""
    check, prose = ledger.check, ledger.prose
    m, r, nu = prose("ffn_single"), prose("ffn_gated"), prose("nu")
    numerator = prose("r_over_m_denominator") * r / m
    check("r_over_m", "r / m of the two widths against 2/3", "theorem 2", prose("r_over_m_numerator"), numerator)
    width, sd = (
        exact(decoder_sizes.base(ledger.settings).width, "width"),
        ledger.settings.number("external_init", "std"),
    )
    label = "variance of the pre-activations: width x 0.02^2 (initial sd not printed)"
    check("nu", label, "theorem 2", nu, width * sd**2, basis="outside source")
    for name, ratio in (("GEGLU", rho_geglu), ("SwiGLU", rho_swiglu)):
        id, label = f"rho_{name.lower()}", f"energy ratio of {name} at init"
        check(id, label, "sec 6, theorem 2", prose(id), ratio(m, r, nu))
    label = "step at a quarter of R_P and equal C_t, over rho^2 times the other's: at most this"
    ratio = exact(float(ratio_of_steps()), "ratio_of_steps")
    check("theorem_3_ratio", label, "sec 6, App B, theorem 3", exact(1), ratio)
    check("fourfold", "factor of the multiplier 0.25", "corollary 3", prose("fourfold"), 1 / prose("alpha"))


def check_table_12(ledger: AuditRows) -> None:
    """Immature energies and locality ratios."""
    check, prose, t12 = ledger.check, ledger.prose, ledger.table("table12")
    for arm in t12.rows:
        label, energy = f"immature energy of {arm} in the text", t12[arm, "immature_energy_share"]
        ledger.copy(f"energy_{arm}", label, "App I, table 12", prose(f"energy_{arm}"), energy)
    columns, below = ("locality_query", "locality_key", "immature_energy_share"), prose("locality_below")
    control, intervention = (t12.line(arm, columns) for arm in t12.rows)
    label = "values of Table 12 that are larger in the control"
    check("t12_order", label, "App I, table 12", exact(len(columns)), count(control > intervention))
    ratios = [t12.column("locality_query"), t12.column("locality_key")]
    small = count(ratios[0] < below) + count(ratios[1] < below)
    check("locality", "locality ratios below one", "sec 6, table 12", exact(sum(map(len, ratios))), small)


#: W_Q and W_K of a head of width one on a stream of width two; the projector chooses the first coordinate.
QUERY, KEY = (Fraction(1), Fraction(-7, 4)), (Fraction(1), Fraction(0))


def step_and_constant(chosen: Fraction, adjoint: Fraction) -> tuple[Fraction, Fraction]:
    """Compute |dZ_P| over the rate, to first order, and C_t = bound / (rate R_P^2), at one token x = (chosen, 1).

    dZ_P = -rate E x_P^3 (k_P (x k) + q_P (x q)), and the bound has the absolute values of both terms.
    """
    along_key = chosen * KEY[0] + KEY[1]
    along_query = chosen * QUERY[0] + QUERY[1]
    step = abs(adjoint) * chosen**3 * abs(KEY[0] * along_key + QUERY[0] * along_query)
    bound = abs(adjoint) * chosen**3 * (abs(KEY[0] * along_key) + abs(QUERY[0] * along_query))
    return step, bound / chosen**4


def ratio_of_steps() -> Fraction:
    """Compute |dZ_P| at a quarter of the energy R_P and equal C_t, over rho^2 = 1/16 times the other's: at most 1 by
    Eq. 59.

    Raises:
        ValueError: the two heads do not have equal C_t.
    """
    single, single_constant = step_and_constant(Fraction(1), Fraction(1))
    gated, gated_constant = step_and_constant(Fraction(1, 2), Fraction(1, 2))
    if single_constant != gated_constant:
        raise ValueError(f"C_t is {single_constant} and {gated_constant}")
    return gated / (Fraction(1, 16) * single)
