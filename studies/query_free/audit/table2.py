"""Recomputes printed numbers of query_free: parameter counts and percentages of Table 2, tokens, learning-rate
ratios."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import smallest
from plumbline.audit.repeated_numbers import check_repeats
from plumbline.published.printed_number import MILLION, derive_exact, exact

from . import decoder_sizes

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


def audit(ledger: AuditRows) -> None:
    """Rows of sections 1, 5 and 6."""
    check_table_2(ledger)
    check_shares(ledger)
    check_tokens(ledger)
    check_learning_rates(ledger)
    check_repeats(ledger)


def check_table_2(ledger: AuditRows) -> None:
    """Counts, percentages and copies of Table 2."""
    check, copy, prose, t2 = ledger.check, ledger.copy, ledger.prose, ledger.table("table2")
    losses = {config: t2[config, "val_loss_60k"] for config in LABELS}
    for config, label in LABELS.items():
        multiple, total = t2[config, "ffn_multiple"], t2[config, "params_m"]
        size = decoder_sizes.decoder(
            ledger.settings,
            narrow=config == NARROW,
            multiple=multiple.value,
            learned_query=t2.texts("trainable_wq")[config] == "yes",
        )
        everything, body = (
            derive_exact(count, multiple, name="counted_parameters") for count in (size.total(), size.body())
        )
        text = f"parameters of {config}, in millions"
        check(f"t2_total_{config}", text, "table 2", total, everything / MILLION, basis="outside source")
        text = f"parameters of {config} without token and position embeddings"
        check(f"t2_body_{config}", text, "table 2", t2[config, "non_embedding_params_m"], body / MILLION)
        copy(f"t2_label_{config}", f"size in the name of {config}", "sec 5.1", prose(f"label_{label}_m"), total)
        d_k = exact(size.width, "d") / exact(size.heads, "heads")
        check(f"t2_d_k_{config}", f"head width of {config}", "table 2", t2[config, "head_width"].exactly(), d_k)
        text = f"weight decay of {config} is that of the text"
        decay = ledger.settings.number("train", "weight_decay")
        copy(f"t2_weight_decay_{config}", text, "sec 5.1, table 2", t2[config, "weight_decay"], decay)
        if config != "baseline":
            text, gap = f"loss of {config} against the baseline", 100 * (losses[config] / losses["baseline"] - 1)
            check(f"t2_pct_{config}", text, "table 2", t2[config, "loss_vs_baseline_pct"], gap)
    for name, config in (
        ("loss_reduced", "wq_identity"),
        ("loss_large", "wq_identity_large_mlp"),
        ("loss_small_low", "baseline_small_mlp"),
        ("loss_small_high", NARROW),
    ):
        copy(name, f"loss of {config} in the text", "sec 5.1", prose(name), losses[config])
    best, text = smallest(t2.column("val_loss_60k")), "best loss of the five configurations"
    check("loss_best", text, "sec 5.1, table 2", prose("loss_large"), best)
    text = "the model without W_Q matches the full baseline"
    copy("loss_matches", text, "sec 5.1, table 2", prose("loss_reduced"), losses["baseline"])
    text, largest = "largest model of the scale that section 1 names", t2["baseline", "params_m"]
    copy("scale_high", text, "sec 1", prose("scale_high_m"), largest)
    hidden = t2["baseline", "ffn_multiple"].exactly() * prose("width")
    check("mlp_hidden", "feed-forward width", "sec 5.1", prose("mlp_hidden"), hidden)
    equal = prose("equal_non_emb_m")
    for config in ("baseline_small_mlp", NARROW):
        text = f"non-embedding count of {config}, said to be the same {equal}M"
        copy(f"equal_{config}", text, "sec 5.1", equal, t2[config, "non_embedding_params_m"])


def check_shares(ledger: AuditRows) -> None:
    """What W_Q is a share of."""
    check, prose, t2 = ledger.check, ledger.prose, ledger.table("table2")
    size = decoder_sizes.decoder(ledger.settings)
    matrix = size.width * size.query_width
    query, attention = exact(matrix, "W_Q"), exact(size.attention(), "attention")
    block = exact(size.attention() + size.feed_forward(), "block")
    everywhere = exact(size.layers * matrix, "all_W_Q")
    check("wq", "parameters in all W_Q, in millions", "sec 5.1", prose("wq_m"), everywhere / MILLION)
    share = 100 * query / attention
    check("attention_pct", "share of attention's matrices", "abstract, sec 3.1", prose("attention_pct"), share)
    check("block_pct", "share of a block's matrices", "sec 1", prose("block_pct"), 100 * query / block)
    fewer = 100 * (1 - t2["wq_identity", "non_embedding_params_m"] / t2["baseline", "non_embedding_params_m"])
    check("non_emb_pct", "fewer non-embedding parameters", "sec 5.1", prose("non_emb_pct"), fewer)


def check_tokens(ledger: AuditRows) -> None:
    """Training and validation tokens."""
    check, prose = ledger.check, ledger.prose
    steps, per_step, training = prose("steps_k"), prose("tokens_per_step"), prose("tokens_b")
    label = f"{steps}k steps of about {per_step.value / 1000:g}k tokens, in billions"
    check("tokens", label, "sec 5.1", training, steps * per_step / MILLION)
    # "Approximately 12x" is said of "models of this size": of the largest, not of each to two digits. Twenty tokens a
    # parameter is the usual interpretation of the law that the text names.
    check(
        "chinchilla_baseline",
        "training tokens over 20 per parameter of the baseline",
        "sec 5.1",
        prose("chinchilla"),
        1000 * training / (20 * ledger.table("table2")["baseline", "params_m"]),
        basis="outside source",
    )
    sequences = prose("validation_sequences") * prose("context")
    check("validation", "validation tokens, in millions", "sec 5.1", prose("validation_tokens_m"), sequences / MILLION)


def check_learning_rates(ledger: AuditRows) -> None:
    """Section 6's ratios from Table 2's rates."""
    check, prose, t2 = ledger.check, ledger.prose, ledger.table("table2")
    peak, least = ({config: t2[config, f"{end}_lr"].exactly() for config in LABELS} for end in ("peak", "min"))
    for side, config in zip(("low", "high"), REDUCED, strict=True):
        label, name = f"peak rate of {config} over the standard one", f"lr_ratio_{side}"
        check(name, label, "sec 6", prose(name), peak[config] / peak["baseline"])
        label, name = f"peak over smallest rate of {config}", f"peak_min_{side}"
        check(name, label, "sec 6", prose(name), peak[config] / least[config])
    for config in (name for name in LABELS if name not in REDUCED):
        label, ratio = f"peak over smallest rate of {config}", peak[config] / least[config]
        check(f"peak_min_{config}", label, "sec 6", prose("peak_min_standard"), ratio)
    for config in REDUCED:
        check(
            f"divisor_{config}",
            f"divisor of {config}'s scores, which is to undo the larger spread of an identity query",
            "sec 5.1, App 8.2, table 2",
            t2[config, "extra_score_divisor"],
            prose("score_std_reduced") / prose("score_std_standard"),
        )
