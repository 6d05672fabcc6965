"""Recomputes printed numbers of quack: sizes from the full paper's configuration, and numbers that the summary prints
more than once."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import sqrt
from plumbline.audit.parameter_counts import DecoderSize
from plumbline.published.printed_cells import PrintedSetup
from plumbline.published.printed_number import BILLION, exact

#: Entry of setup.yaml with the sizes, which the summary does not print.
PAPER = "external_full_paper"

#: The highest rate as the results print it.
HIGHEST = "lr_highest_results"

#: From one value of a grid of tau to the next.
TAU_STEP = 10


def audit(ledger: AuditRows) -> None:
    """All rows of the summary: a summary without tables, so there are few."""
    check, copy, prose = ledger.check, ledger.copy, ledger.prose
    totals = {"mha": ("the multi-head model, in billions", multi_head(ledger.settings).total())}
    for width in value_widths(ledger.settings):
        model = f"the latent-attention model with values of {width}"
        totals[f"mla_{width}"] = model, latent_total(ledger.settings, width)
    for name, (model, size) in totals.items():
        check(
            f"params_{name}",
            f"parameters of {model}",
            "Limitations; arXiv 2511.21377",
            prose("params_b"),
            exact(size, "counted_parameters") / BILLION,
            basis="outside source",
        )
    removed = exact(1, "query_norm") + exact(1, "key_norm")
    label = "RMS norms that go with QK norm: one on queries, one on keys"
    check("norms", label, "Key Results", prose("norms_removed"), removed)
    for name, label, where, first, again in (
        ("faster", "how much faster than QK norm", "Design tradeoffs", "faster_pct_results", "faster_pct_tradeoffs"),
        ("highest_lr", "highest rate in results and mechanism", "Mechanism 2", HIGHEST, "lr_highest_mechanism"),
        ("highest_lr_grid", "highest rate of the proposed grid", "First 3 experiments", HIGHEST, "lr_highest_grid"),
    ):
        copy(name, label, f"Key Results, {where}", prose(first), prose(again))
    check(
        "lr_grid",
        "middle of the rate grid is the geometric mean of its ends",
        "First 3 experiments",
        prose("lr_grid_middle"),
        sqrt(prose("lr_grid_low") * prose("lr_highest_grid")),
    )
    # Both grids go by tens: {0.01, ..., 10} and {0.001, ..., 100}.
    for end, further in (("low", prose("tau_grid_low") / TAU_STEP), ("high", prose("tau_grid_high") * TAU_STEP)):
        label = f"the {end} end of the wide tau grid is one step beyond the narrow one's"
        printed = prose(f"tau_wide_{end}")
        check(f"tau_wide_{end}", label, "Next checks", printed, further, basis="other interpretation")


def multi_head(settings: PrintedSetup) -> DecoderSize:
    """The decoder with multi-head attention."""
    heads = settings.whole(PAPER, "heads")
    return DecoderSize(
        layers=settings.whole(PAPER, "layers"),
        width=settings.whole(PAPER, "d_model"),
        heads=heads,
        key_value_heads=heads,
        head_width=settings.whole(PAPER, "d_head"),
        ffn_width=settings.whole(PAPER, "d_ff"),
        vocabulary=settings.whole(PAPER, "vocab"),
        tied=settings.flag(PAPER, "tied"),
    )


def value_widths(settings: PrintedSetup) -> tuple[int, int]:
    """A value head under latent attention, as wide as a head elsewhere or as a whole key; neither text says which."""
    whole_key = settings.whole(PAPER, "d_nope") + settings.whole(PAPER, "d_rope")
    return settings.whole(PAPER, "d_head"), whole_key


def latent_total(settings: PrintedSetup, value_width: int) -> int:
    """Parameters of the decoder with latent attention; no norms on the latents."""
    size = multi_head(settings)
    plain, rotary = settings.whole(PAPER, "d_nope"), settings.whole(PAPER, "d_rope")
    latent_query, latent = settings.whole(PAPER, "d_cq"), settings.whole(PAPER, "d_ckv")
    attention = (
        size.width * latent_query
        + latent_query * size.heads * (plain + rotary)
        + size.width * (latent + rotary)
        + latent * size.heads * (plain + value_width)
        + size.heads * value_width * size.width
    )
    return size.total() + size.layers * (attention - size.attention())
