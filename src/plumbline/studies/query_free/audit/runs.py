"""query_free: parameter counts and percentages of Table 2, tokens, learning-rate ratios."""

from __future__ import annotations

from plumbline.audit.interval import Number, made_of
from plumbline.audit.rows import Ledger
from plumbline.studies.query_free.audit import sizes

#: Table 2's configuration with the narrower width.
NARROW = "baseline_small_d"

#: Table 2's configurations without W_Q, the smaller first.
REDUCED = ("wq_identity", "wq_identity_large_mlp")

#: id in Table 2 -> how section 5.1 names its size.
LABELS = {
    "baseline_small_mlp": "small_mlp",
    NARROW: "small_d",
    "wq_identity": "wq_identity",
    "baseline": "baseline",
    "wq_identity_large_mlp": "large_mlp",
}


def audit(ledger: Ledger) -> None:
    """Rows of sections 1, 5 and 6."""
    table_2(ledger)
    shares(ledger)
    tokens(ledger)
    learning_rates(ledger)


def table_2(ledger: Ledger) -> None:
    """Counts, percentages and copies of Table 2."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    million = {"unit": 10**6}
    for config, label in LABELS.items():
        multiple = cell("table2", config, "mlp_mult")
        size = sizes.decoder(
            ledger.settings,
            narrow=config == NARROW,
            multiple=multiple.value,
            learned_query=bool(ledger.table("table2").loc[config, "trainable_wq"] == "yes"),
        )
        total = cell("table2", config, "total_params_m")
        check(
            f"t2_total_{config}",
            f"parameters of {config}, in millions",
            "table 2",
            "parameters",
            total,
            {"N": made_of(size.total(), multiple), **million},
            basis="outside source",
        )
        check(
            f"t2_body_{config}",
            f"parameters of {config} without token and position embeddings",
            "table 2",
            "parameters",
            cell("table2", config, "non_emb_params_m"),
            {"N": made_of(size.body(), multiple), **million},
        )
        named = prose(f"label_{label}_m")
        ledger.copy(f"t2_label_{config}", f"size in the name of {config}", "sec 5.1", named, total)
        check(
            f"t2_d_k_{config}",
            f"head width of {config}",
            "table 2",
            "ratio",
            cell("table2", config, "attn_scale_dk", exact=True),
            {"d": size.width, "heads": size.heads},
        )
        ledger.copy(
            f"t2_weight_decay_{config}",
            f"weight decay of {config} is that of the text",
            "sec 5.1, table 2",
            cell("table2", config, "weight_decay"),
            ledger.settings.number("train", "weight_decay"),
        )
        if config != "baseline":
            check(
                f"t2_pct_{config}",
                f"loss of {config} against the baseline",
                "table 2",
                "relative difference",
                cell("table2", config, "vs_baseline_pct"),
                {
                    "loss": cell("table2", config, "val_loss_60k"),
                    "baseline": cell("table2", "baseline", "val_loss_60k"),
                },
            )
    for name, config in (
        ("loss_reduced", "wq_identity"),
        ("loss_large", "wq_identity_large_mlp"),
        ("loss_small_low", "baseline_small_mlp"),
        ("loss_small_high", NARROW),
    ):
        ledger.copy(
            name, f"loss of {config} in the text", "sec 5.1", prose(name), cell("table2", config, "val_loss_60k")
        )
    check(
        "loss_best",
        "best loss of the five configurations",
        "sec 5.1, table 2",
        "smallest",
        prose("loss_large"),
        {"loss": ledger.column("table2", "val_loss_60k")},
    )
    ledger.copy(
        "loss_matches",
        "the model without W_Q matches the full baseline",
        "sec 5.1, table 2",
        prose("loss_reduced"),
        cell("table2", "baseline", "val_loss_60k"),
    )
    ledger.copy(
        "scale_high",
        "largest model of the scale that section 1 names",
        "sec 1",
        prose("scale_high_m"),
        cell("table2", "baseline", "total_params_m"),
    )
    check(
        "mlp_hidden",
        "feed-forward width",
        "sec 5.1",
        "product",
        prose("mlp_hidden"),
        {"multiple": cell("table2", "baseline", "mlp_mult", exact=True), "d": prose("width")},
    )
    for config in ("baseline_small_mlp", NARROW):
        ledger.copy(
            f"equal_{config}",
            f"non-embedding count of {config}, said to be the same {prose('equal_non_emb_m')}M",
            "sec 5.1",
            prose("equal_non_emb_m"),
            cell("table2", config, "non_emb_params_m"),
        )


def shares(ledger: Ledger) -> None:
    """What W_Q is a share of."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    size = sizes.decoder(ledger.settings)
    query = size.width * size.query_width
    check(
        "wq",
        "parameters in all W_Q, in millions",
        "sec 5.1",
        "parameters",
        prose("wq_m"),
        {"N": size.layers * query, "unit": 10**6},
    )
    check(
        "attention_pct",
        "share of attention's matrices",
        "abstract, sec 3.1",
        "share",
        prose("attention_pct"),
        {"W_Q": query, "attention": size.attention()},
    )
    check(
        "block_pct",
        "share of a block's matrices",
        "sec 1",
        "share",
        prose("block_pct"),
        {"W_Q": query, "block": size.attention() + size.feed_forward()},
    )
    check(
        "non_emb_pct",
        "fewer non-embedding parameters",
        "sec 5.1",
        "reduction",
        prose("non_emb_pct"),
        {
            "reduced": cell("table2", "wq_identity", "non_emb_params_m"),
            "baseline": cell("table2", "baseline", "non_emb_params_m"),
        },
    )


def tokens(ledger: Ledger) -> None:
    """Training and validation tokens."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    unit = Number(text="1e-6", exact=True)
    check(
        "tokens",
        f"{prose('steps_k')}k steps of about {prose('tokens_per_step').value / 1000:g}k tokens, in billions",
        "sec 5.1",
        "product",
        prose("tokens_b"),
        {"steps_k": prose("steps_k"), "per step": prose("tokens_per_step"), "unit": unit},
    )
    # "Approximately 12x" is said of "models of this size": of the largest, not of each to two digits. Twenty tokens a
    # parameter is the usual reading of the law that the text names.
    check(
        "chinchilla_baseline",
        "training tokens over 20 per parameter of the baseline",
        "sec 5.1",
        "billions over 20 per million",
        prose("chinchilla"),
        {"tokens_b": prose("tokens_b"), "N_m": cell("table2", "baseline", "total_params_m")},
        basis="outside source",
    )
    check(
        "validation",
        "validation tokens, in millions",
        "sec 5.1",
        "product",
        prose("validation_tokens_m"),
        {"sequences": prose("validation_sequences"), "context": prose("context"), "unit": unit},
    )


def learning_rates(ledger: Ledger) -> None:
    """Section 6's ratios from Table 2's rates."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    rates = {
        (config, end): cell("table2", config, f"{end}_lr", exact=True) for config in LABELS for end in ("peak", "min")
    }
    for side, config in zip(("low", "high"), REDUCED, strict=True):
        peak = rates[config, "peak"]
        check(
            f"lr_ratio_{side}",
            f"peak rate of {config} over the standard one",
            "sec 6",
            "ratio",
            prose(f"lr_ratio_{side}"),
            {"peak": peak, "standard": rates["baseline", "peak"]},
        )
        check(
            f"peak_min_{side}",
            f"peak over smallest rate of {config}",
            "sec 6",
            "ratio",
            prose(f"peak_min_{side}"),
            {"peak": peak, "min": rates[config, "min"]},
        )
    for config in (name for name in LABELS if name not in REDUCED):
        check(
            f"peak_min_{config}",
            f"peak over smallest rate of {config}",
            "sec 6",
            "ratio",
            prose("peak_min_standard"),
            {"peak": rates[config, "peak"], "min": rates[config, "min"]},
        )
    for config in REDUCED:
        check(
            f"divisor_{config}",
            f"divisor of {config}'s scores, which is to undo the larger spread of an identity query",
            "sec 5.1, App 8.2, table 2",
            "ratio",
            cell("table2", config, "attn_scale_extra_divisor"),
            {"reduced": prose("score_std_reduced"), "standard": prose("score_std_standard")},
        )
