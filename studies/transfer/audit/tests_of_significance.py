"""Recomputes what the transfer study's paper says of its tests: Stouffer's direction, and what its z are made of."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import between, largest, sqrt
from plumbline.audit.statistic_functions import one_sided_p, sample_sd
from plumbline.published.printed_number import exact

from .base_scale import seeds

#: A correlation between tasks that is tried: the printed p are said to be upper bounds at any positive one.
CORRELATION = 0.1


def audit(ledger: AuditRows) -> None:
    """Rows of section 3.3, Reproducibility and appendix E.4."""
    check_stouffer(ledger)
    check_bootstrap_z(ledger)
    check_query_key_norm(ledger)


def check_stouffer(ledger: AuditRows) -> None:
    """A sum of n correlated z has the variance n (1 + (n - 1) r), so that Z is smaller and p larger than for r = 0."""
    floor, n = ledger.table("noise_floor"), ledger.prose("tasks")
    spread = sqrt(1 + (n - 1) * CORRELATION)
    for method in ("qknorm", "softpick"):
        label = (
            f"{method}'s one-sided p where tasks correlate at {CORRELATION}, of which the printed is 'an upper bound'"
        )
        printed = floor[method, "stouffer_p_one_sided"].as_bound()
        expected = one_sided_p(floor[method, "stouffer_z"] / spread)
        ledger.check(f"stouffer_correlated_{method}", label, "E.4", printed, expected)


def check_bootstrap_z(ledger: AuditRows) -> None:
    """Softpick's z if the bootstrap over the three seeds produced it, as Reproducibility has it.

    A value drawn of three has the sd s sqrt(2 / 3), and a mean of three such values that over sqrt(3).
    """
    t2, value_sd = ledger.table("table2"), sample_sd(seeds(ledger, "baseline")) * sqrt(exact(2) / 3)
    difference = t2["softpick", "climb_avg"] - t2["baseline", "climb_avg"]
    for name, label, sd in (("value", "value", value_sd), ("mean", "mean of three", value_sd / sqrt(exact(3)))):
        label = f"z of Softpick by the sd of a {label} that the bootstrap draws"
        printed = t2["softpick", "z"]
        ledger.check(
            f"bootstrap_z_{name}",
            label,
            "Reproducibility, table 2",
            printed,
            difference / sd,
            basis="other interpretation",
        )


def check_query_key_norm(ledger: AuditRows) -> None:
    """QK-Norm's three seeds are not printed: their mean follows from Welch's t, and how far one can lie from it."""
    floor, n, base = ledger.table("noise_floor"), ledger.prose("seeds"), ledger.table("table2")["baseline", "climb_avg"]
    sd, sigma = floor["qknorm", "climb_avg_std"], floor["baseline", "climb_avg_std"]
    mean = base + floor["qknorm", "welch_t"] * sqrt((sd**2 + sigma**2) / n)
    reach = (n - 1) * sd / sqrt(n)
    label = "QK-Norm's score in Table 2 can be one of the three behind its t and sd"
    score = ledger.table("table2")["qknorm", "climb_avg"]
    others = ledger.table("table2")["softpick", "climb_avg"].text
    ledger.check("qknorm_seed", label, "sec 3.3, table 2", score, between(mean - reach, mean + reach), refuses=others)
    label = (
        "whether the lowest that a seed of QK-Norm can be is above all of the baseline: disjoint bootstrap intervals"
    )
    above = mean - reach > largest(seeds(ledger, "baseline"))
    ledger.check("qknorm_disjoint", label, "sec 3.3", exact(1), above)
