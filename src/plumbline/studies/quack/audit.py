"""quack: sizes from the full paper's configuration, and numbers that the summary prints more than once."""

from __future__ import annotations

from plumbline.audit.parameters import DecoderSize
from plumbline.audit.rows import Ledger
from plumbline.audit.settings import Settings

#: Entry of setup.yaml with the sizes, which the summary does not print.
PAPER = "external_full_paper"


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
        {"N": multi_head(ledger.settings).total(), **billion},
        basis="outside source",
    )
    for value_width in value_widths(ledger.settings):
        check(
            f"params_mla_{value_width}",
            f"parameters of the latent-attention model with values of {value_width}",
            "Limitations; arXiv 2511.21377",
            "parameters",
            size,
            {"N": latent_total(ledger.settings, value_width), **billion},
            basis="outside source",
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
    for end in ("low", "high"):
        check(
            f"tau_grid_{end}",
            f"the wide tau grid holds the {end} end of the narrow one",
            "First 3 experiments, Next checks",
            "between",
            prose(f"tau_grid_{end}"),
            {"low": prose("tau_wide_low"), "high": prose("tau_wide_high")},
        )


def multi_head(settings: Settings) -> DecoderSize:
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


def value_widths(settings: Settings) -> tuple[int, int]:
    """A value head under latent attention, as wide as a head elsewhere or as a whole key; neither text says which."""
    whole_key = settings.whole(PAPER, "d_nope") + settings.whole(PAPER, "d_rope")
    return settings.whole(PAPER, "d_head"), whole_key


def latent_total(settings: Settings, value_width: int) -> int:
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
