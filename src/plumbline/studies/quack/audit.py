"""quack: sizes from the full paper's configuration, and numbers that the summary prints more than once."""

from __future__ import annotations

from plumbline.audit.parameters import QUACK_MHA, quack_mla
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """All rows of the document: a summary without tables, so there are few."""
    check, prose = ledger.check, ledger.prose
    billion, size = {"unit": 10**9}, prose("params_b")
    check(
        "params_mha",
        "parameters of the multi-head model, in billions",
        "Limitations; arXiv 2511.21377",
        "parameters",
        size,
        {"N": QUACK_MHA.total(), **billion},
    )
    for value_width in (64, 128):
        check(
            f"params_mla_{value_width}",
            f"parameters of the latent-attention model with values of {value_width}",
            "Limitations; arXiv 2511.21377",
            "parameters",
            size,
            {"N": quack_mla(value_width), **billion},
        )
    check(
        "norms",
        "RMS norms that go with QK norm: one on queries, one on keys",
        "Key Results",
        "sum",
        prose("norms_removed"),
        {"queries": 1, "keys": 1},
    )
    ledger.copy(
        "faster",
        "how much faster than QK norm",
        "Key Results, Design tradeoffs",
        prose("faster_pct_results"),
        prose("faster_pct_tradeoffs"),
    )
    ledger.copy(
        "highest_lr",
        "highest rate in results and mechanism",
        "Key Results, Mechanism 2",
        prose("lr_highest_results"),
        prose("lr_highest_mechanism"),
    )
    ledger.copy(
        "highest_lr_grid",
        "highest rate of the proposed grid",
        "Key Results, First 3 experiments",
        prose("lr_highest_results"),
        prose("lr_highest_grid"),
    )
    steps = {"low": prose("lr_grid_low"), "middle": prose("lr_grid_middle"), "high": prose("lr_highest_grid")}
    check(
        "lr_grid",
        "middle of the rate grid is the geometric mean of its ends",
        "First 3 experiments",
        "geometric middle",
        steps.pop("middle"),
        steps,
    )
    check(
        "tau_grid",
        "the wide tau grid holds the narrow one",
        "First 3 experiments, Next checks",
        "between",
        prose("tau_grid_high"),
        {"low": prose("tau_wide_low"), "high": prose("tau_wide_high")},
    )
