"""Recomputes printed numbers of query_free: appendix 8, score scales at init and basis transfer."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import arccos, between, cos, sqrt
from plumbline.published.printed_number import exact

from . import counterexamples, decoder_sizes


def audit(ledger: AuditRows) -> None:
    """Rows of appendices 8.2 to 8.4."""
    check_scores(ledger)
    check_basis_transfer(ledger)
    check_statements(ledger)


def check_scores(ledger: AuditRows) -> None:
    """Appendix 8.2: standard deviation of scores at init."""
    check, prose = ledger.check, ledger.prose
    size = decoder_sizes.decoder(ledger.settings)
    sigma, d_k, h = prose("score_sigma"), exact(size.head_width, "d_k"), exact(size.heads, "h")
    standard, reduced, ratio = prose("score_std_standard"), prose("score_std_reduced"), prose("score_ratio")
    check("score_std_standard", "std of scores, learned query", "App 8.2", standard, sigma**2 * sqrt(d_k))
    check("score_std_reduced", "std of scores, identity query", "App 8.2", reduced, sigma / sqrt(h))
    check("score_ratio", "ratio of the two", "sec 5.1, App 8.2", ratio, reduced / standard)
    label = "the same from its settings: 1 / (sigma sqrt(h d_k))"
    check("score_ratio_exact", label, "App 8.2", ratio, 1 / (sigma * sqrt(h * d_k)))
    check("score_ratio_inverse", "its inverse", "App 8.2", prose("score_ratio_inverse"), 1 / ratio)


def check_basis_transfer(ledger: AuditRows) -> None:
    """Appendix 8.3 and 8.4."""
    check, prose = ledger.check, ledger.prose
    linear, mlp = ({end: prose(f"transfer_{kind}_{end}_pct") for end in ("low", "high")} for kind in ("linear", "mlp"))
    label = "linear error over MLP error, from their printed ranges"
    factor = between(linear["low"] / mlp["high"], linear["high"] / mlp["low"])
    check("transfer_factor", label, "App 8.4", prose("transfer_factor"), factor)
    cosine, angle, distance = (prose(f"transfer_{it}") for it in ("cosine", "angle_deg", "cosine_distance"))
    check("transfer_angle", "angle of the printed cosine, degrees", "App 8.4", angle, arccos(cosine))
    label = "cosine distance in the caption against the {} in the text"
    check("transfer_distance", label.format("cosine"), "App 8.4, fig 2", distance, 1 - cosine)
    check("transfer_angle_distance", label.format("angle"), "App 8.4, fig 2", distance, 1 - cos(angle))
    label = "largest singular value of an N(0, 1/d) matrix, from the printed range of its square"
    check("sigma_max", label, "App 8.3.1", prose("sigma_max"), sqrt(prose("singular_squared_high")))


def check_statements(ledger: AuditRows) -> None:
    """Statements of appendix 8 that are false as they are quantified or worded, by counterexamples."""
    check = ledger.check
    label = f"of {counterexamples.DRAWS} drawn weights, those with the same function at another Z, Z - Z' invertible"
    count = exact(counterexamples.same_function_at_another_skip(), "same_functions")
    check("corollary_8_4_1", label, "App 8.5, corollary 8.4.1", exact(0), count)
    label = f"of {len(counterexamples.SHARES)} multiples other than lambda0, those that satisfy Eq. 10 as well"
    count = exact(counterexamples.other_multiples(), "other_multiples")
    check("theorem_8_3_must", label, "App 8.3, theorem 8.3", exact(0), count)
    label = "entries of v that are zero, so that D~ has no inverse, though Eq. 10 has a solution"
    count = exact(counterexamples.solutions_without_an_inverse(), "zero_entries")
    check("theorem_8_3_inverse", label, "App 8.3, theorem 8.3", exact(0), count)
