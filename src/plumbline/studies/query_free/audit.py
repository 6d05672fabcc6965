"""query_free: parameter counts and percentages of Table 2, tokens, score scales, learning-rate ratios."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.parameters import query_free
from plumbline.audit.rows import Ledger

#: id in Table 2 -> (width, learned query); the feed-forward width follows from the printed multiple.
CONFIGURATIONS = {
    "baseline_small_mlp": (768, True),
    "baseline_small_d": (744, True),
    "wq_identity": (768, False),
    "baseline": (768, True),
    "wq_identity_large_mlp": (768, False),
}


def audit(ledger: Ledger) -> None:
    """All rows of the document."""
    table_2(ledger)
    shares(ledger)
    tokens(ledger)
    scores(ledger)
    learning_rates(ledger)
    basis_transfer(ledger)


def table_2(ledger: Ledger) -> None:
    """Counts, percentages and copies of Table 2."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    million = {"unit": 10**6}
    labels = {
        "baseline_small_mlp": "small_mlp",
        "baseline_small_d": "small_d",
        "wq_identity": "wq_identity",
        "baseline": "baseline",
        "wq_identity_large_mlp": "large_mlp",
    }
    for config, (width, learned) in CONFIGURATIONS.items():
        multiple = cell("table2", config, "mlp_mult", exact=True)
        size = query_free(width, round(multiple.value * width), learned_query=learned)
        total = cell("table2", config, "total_params_m")
        check(
            f"t2_total_{config}",
            f"parameters of {config}, in millions",
            "table 2",
            "parameters",
            total,
            {"N": size.total(), **million},
        )
        check(
            f"t2_body_{config}",
            f"parameters of {config} without token and position embeddings",
            "table 2",
            "parameters",
            cell("table2", config, "non_emb_params_m"),
            {"N": size.body(), **million},
        )
        label = prose(f"label_{labels[config]}_m")
        ledger.copy(f"t2_label_{config}", f"size in the name of {config}", "sec 5.1", label, total)
        check(
            f"t2_d_k_{config}",
            f"head width of {config}",
            "table 2",
            "ratio",
            cell("table2", config, "attn_scale_dk", exact=True),
            {"d": width, "heads": prose("heads")},
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
        ("loss_small_high", "baseline_small_d"),
    ):
        ledger.copy(
            name, f"loss of {config} in the text", "sec 5.1", prose(name), cell("table2", config, "val_loss_60k")
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
    for config in ("baseline_small_mlp", "baseline_small_d"):
        ledger.copy(
            f"equal_{config}",
            f"non-embedding count of {config}, said to be the same 78M",
            "sec 5.1",
            prose("equal_non_emb_m"),
            cell("table2", config, "non_emb_params_m"),
        )


def shares(ledger: Ledger) -> None:
    """What W_Q is a share of."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    d = 768
    check(
        "wq",
        "parameters in all W_Q, in millions",
        "sec 5.1",
        "parameters",
        prose("wq_m"),
        {"N": 12 * d * d, "unit": 10**6},
    )
    check(
        "attention_pct",
        "share of attention's matrices",
        "abstract, sec 3.1",
        "share",
        prose("attention_pct"),
        {"W_Q": d * d, "attention": 4 * d * d},
    )
    check(
        "block_pct",
        "share of a block's matrices",
        "sec 1",
        "share",
        prose("block_pct"),
        {"W_Q": d * d, "block": 12 * d * d},
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
        "60k steps of about 490k tokens, in billions",
        "sec 5.1",
        "product",
        prose("tokens_b"),
        {"steps_k": prose("steps_k"), "per step": prose("tokens_per_step"), "unit": unit},
    )
    ratio = {"tokens_b": prose("tokens_b")}
    for config in ("wq_identity", "baseline"):
        check(
            f"chinchilla_{config}",
            f"training tokens over 20 per parameter of {config}",
            "sec 5.1",
            "billions over 20 per million",
            prose("chinchilla"),
            {**ratio, "N_m": cell("table2", config, "total_params_m")},
        )
    check(
        "validation",
        "validation tokens, in millions",
        "sec 5.1",
        "product",
        prose("validation_tokens_m"),
        {"sequences": prose("validation_sequences"), "context": prose("context"), "unit": unit},
    )


def scores(ledger: Ledger) -> None:
    """Appendix 8.2: standard deviation of scores at init."""
    check, prose = ledger.check, ledger.prose
    sigma, heads = prose("score_sigma"), prose("heads")
    check(
        "score_std_standard",
        "std of scores, learned query",
        "App 8.2",
        "std of scores, learned query",
        prose("score_std_standard"),
        {"sigma": sigma, "d_k": 64},
    )
    check(
        "score_std_reduced",
        "std of scores, identity query",
        "App 8.2",
        "std of scores, identity query",
        prose("score_std_reduced"),
        {"sigma": sigma, "h": heads},
    )
    check(
        "score_ratio",
        "ratio of the two",
        "sec 5.1, App 8.2",
        "ratio",
        prose("score_ratio"),
        {"reduced": prose("score_std_reduced"), "standard": prose("score_std_standard")},
    )
    check(
        "score_ratio_exact",
        "the same from its settings: 1 / (sigma sqrt(h d_k))",
        "App 8.2",
        "score ratio",
        prose("score_ratio"),
        {"sigma": sigma, "h": heads, "d_k": 64},
    )
    check(
        "score_ratio_inverse",
        "its inverse",
        "App 8.2",
        "inverse",
        prose("score_ratio_inverse"),
        {"ratio": prose("score_ratio")},
    )


def learning_rates(ledger: Ledger) -> None:
    """Section 6's ratios from Table 2's rates."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    rates = {
        (config, end): cell("table2", config, f"{end}_lr", exact=True)
        for config in ("wq_identity", "wq_identity_large_mlp", "baseline")
        for end in ("peak", "min")
    }
    for side, config in (("low", "wq_identity"), ("high", "wq_identity_large_mlp")):
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
    check(
        "peak_min_standard",
        "peak over smallest rate of the baseline",
        "sec 6",
        "ratio",
        prose("peak_min_standard"),
        {"peak": rates["baseline", "peak"], "min": rates["baseline", "min"]},
    )


def basis_transfer(ledger: Ledger) -> None:
    """Appendix 8.3 and 8.4."""
    check, prose = ledger.check, ledger.prose
    check(
        "transfer_factor",
        "linear error over MLP error, from their printed ranges",
        "App 8.4",
        "ratio of two ranges",
        prose("transfer_factor"),
        {f"{kind} {end}": prose(f"transfer_{kind}_{end}_pct") for kind in ("linear", "mlp") for end in ("low", "high")},
    )
    check(
        "transfer_angle",
        "angle of the printed cosine, degrees",
        "App 8.4",
        "angle",
        prose("transfer_angle_deg"),
        {"cosine": prose("transfer_cosine")},
    )
    check(
        "transfer_distance",
        "cosine distance in the caption against the cosine in the text",
        "App 8.4, fig 2",
        "complement",
        prose("transfer_cosine_distance"),
        {"cosine": prose("transfer_cosine")},
    )
    check(
        "sigma_max",
        "largest singular value of an N(0, 1/d) matrix, from the printed range of its square",
        "App 8.3.1",
        "square root",
        prose("sigma_max"),
        {"largest square": prose("singular_squared_high")},
    )
