"""Recomputes constants and sizes that query_free's appendix 8 says are one, small, unchanged or of one head's width."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import sqrt
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval
from plumbline.published.printed_number import exact

from . import decoder_sizes


def audit(ledger: AuditRows) -> None:
    """Rows of section 6, Figure 2 and appendices 8.1, 8.3."""
    check_clamping(ledger)
    check_inverse_of_layernorm(ledger)
    check_slices(ledger)
    check_unchanged(ledger)
    check_distances(ledger)


@audit_function("E min(s^2, 1) = 1 - 3 sqrt(r^2 - 1) / (4 pi), s^2 of the Marchenko-Pastur law on [0, r^2 = 4]")
def compute_clamped_trace(squared_high: Interval) -> Interval:
    """Compute Tr(S^2) / d where squared singular values follow the law on [0, 4] and are clamped to 1.

    s has the density sqrt(4 - s^2) / pi on [0, 2]: the integral of s^2 over [0, 1] and of 1 over [1, 2], by hand.
    """
    return 1 - 3 * iv.sqrt(squared_high - 1) / (4 * iv.pi)


def check_clamping(ledger: AuditRows) -> None:
    """Appendix 8.3.1: what clamping leaves of the trace, and what it moves."""
    check, prose = ledger.check, ledger.prose
    spread = prose("singular_squared_high")
    # "The metric defect of the clamped matrix" is what the passage is about: unclamped the trace is 1.
    label = "Tr(S^2) / d of the clamped matrix, said to be about 1"
    check("clamped_trace", label, "App 8.3.1", prose("trace_over_d"), compute_clamped_trace(spread))
    label = "norm of what clamping changes, said to be O(d^-1/2): its limit"
    check("clamping_cost", label, "App 8.3.1", exact(0), sqrt(spread) - 1)


def check_inverse_of_layernorm(ledger: AuditRows) -> None:
    """Lemma 8.2: c = (s / r) z, with s = r sqrt(eps) / sqrt(d - r^2), against the inverse two lines below it."""
    d = exact(ledger.settings.whole("model", "d"), "d")
    r, epsilon = exact(1, "r"), exact(1, "eps")
    step = (r * sqrt(epsilon) / sqrt(d - r**2)) / r
    inverse = sqrt(d * epsilon / (d - r**2))
    label = "c / z by the proof's s over c / z by the inverse that it gives (any r and eps)"
    ledger.check("lemma_8_2_step", label, "App 8.3, lemma 8.2", exact(1), step / inverse)


def check_slices(ledger: AuditRows) -> None:
    """Appendix 8.1: how many entries the slice (x_m, ..., x_n) has, m = a d_k and n = (a + 1) d_k."""
    d_k, a = exact(decoder_sizes.decoder(ledger.settings).head_width, "d_k"), exact(1, "a")
    label = "entries of (x_m, ..., x_n) for m = a d_k, n = (a + 1) d_k, against a head's"
    ledger.check("slice_entries", label, "App 8.1", d_k, (a + 1) * d_k - a * d_k + 1)


def check_unchanged(ledger: AuditRows) -> None:
    """Section 6: all hyperparameters other than the learning rate "remain unchanged".

    Section 5.1 lists the divisor of scores among the "practical adjustments"; who calls it no hyperparameter, or counts
    the floor of the schedule to the learning rate, sees no contradiction.
    """
    t2, reduced, base = ledger.table("table2"), "wq_identity", "baseline"
    for name, column, label in (
        ("unchanged_scale", "extra_score_divisor", "divisor of scores"),
        ("unchanged_floor", "min_lr", "smallest rate"),
    ):
        printed, other = (t2[row, column].exactly() for row in (reduced, base))
        label += " without W_Q, beside the baseline's"
        ledger.check(name, label, "sec 6, table 2", printed, other, basis="other interpretation")


def check_distances(ledger: AuditRows) -> None:
    """Figure 2: no prediction with a relative error e is further off than 1 - sqrt(1 - e^2) by the cosine."""
    check, prose = ledger.check, ledger.prose
    largest = 1 - sqrt(1 - (prose("transfer_linear_low_pct") / 100) ** 2)
    label = "whether an error of the linear baseline's low end leaves a cosine distance above 0.009"
    above = largest > prose("linear_distance_above")
    check("linear_distance", label, "fig 2 caption", exact(1), above, basis="other interpretation")
    for end in ("low", "high"):
        label = f"largest cosine distance that the MLP's {end} error allows"
        largest = 1 - sqrt(1 - (prose(f"transfer_mlp_{end}_pct") / 100) ** 2)
        printed = prose("transfer_cosine_distance")
        check(f"mlp_distance_{end}", label, "fig 2 caption", printed, largest, basis="other interpretation")
