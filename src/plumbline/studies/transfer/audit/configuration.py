"""Transfer study: heads and scales, token and pack counts, and the constants of appendix B."""

from __future__ import annotations

from plumbline.audit.interval import Number, made_of
from plumbline.audit.rows import Ledger
from plumbline.studies.transfer.audit import sizes


def audit(ledger: Ledger) -> None:
    """All rows that follow from the stated configuration."""
    heads_and_scales(ledger)
    tokens(ledger)
    initial_values(ledger)


def heads_and_scales(ledger: Ledger) -> None:
    """Head counts that two sections print differently, and what "3B" means."""
    check, prose = ledger.check, ledger.prose
    check(
        "head_width",
        f"head width at {prose('heads')} heads",
        "B.6",
        "ratio",
        prose("head_width"),
        {"hidden": prose("hidden"), "heads": prose("heads")},
    )
    ledger.copy(
        "heads", "heads in appendix D are those of section 3.2", "sec 3.2, App D", prose("heads_app_d"), prose("heads")
    )
    ledger.copy(
        "key_value_groups",
        "key/value groups in appendix D are those of section 3.2",
        "sec 3.2, App D",
        prose("key_value_groups_app_d"),
        prose("key_value_heads"),
    )
    base, large = sizes.base(ledger.settings), sizes.large(ledger.settings)
    as_printed, printed = sizes.large_as_printed(ledger.settings), prose("parameters_large_b")
    check(
        "size_3b_as_printed",
        f"{as_printed.layers} layers of width {as_printed.width} with all else identical "
        f"(FFN {as_printed.ffn_width}), billions",
        "sec 3.2",
        "parameters",
        printed,
        {"N": as_printed.total(), "unit": 10**9},
    )
    check(
        "size_3b_scaled",
        f"the same with the FFN scaled to {large.ffn_width}",
        "sec 3.2",
        "parameters",
        printed,
        {"N": large.total(), "unit": 10**9},
        basis="other reading",
    )
    check(
        "cost_parameters",
        f"cost of 3B over 1.2B at equal tokens, by parameters (FFN {large.ffn_width})",
        "sec 5.1",
        "ratio",
        prose("sweep_cost_ratio"),
        {"large": large.total(), "base": base.total()},
        basis="other reading",
    )


def tokens(ledger: Ledger) -> None:
    """Training tokens and packs."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    steps, power = prose("steps"), prose("log2_tokens_per_step")
    exponent = int(power.text)
    per_step = made_of(2**exponent, power)
    consistent = ledger.settings.whole("budget", "tokens_per_step_consistent_log2")
    counted = f"{int(steps.text):,} steps"
    billion = {"unit": Number(text="1e-9", exact=True)}
    for name, where in (("tokens_b", "sec 3.2"), ("tokens_3b_b", "sec 5.1")):
        check(
            name,
            f"{counted} of 2^{exponent} tokens, in billions",
            where,
            "product",
            prose(name),
            {"steps": steps, "per step": per_step, **billion},
        )
        check(
            f"{name}_half",
            f"{counted} of 2^{consistent} tokens, in billions",
            where,
            "product",
            prose(name),
            {"steps": steps, "per step": 2**consistent, **billion},
            basis="other reading",
        )
    for pack in ledger.table("data_packs").index:
        sequences = cell("data_packs", pack, "sequences", exact=True)
        check(
            f"pack_{pack}",
            f"tokens of the pack {pack}, in billions",
            "App A",
            "product",
            cell("data_packs", pack, "tokens_b"),
            {"sequences": sequences, "context": prose("context"), **billion},
        )
        check(
            f"discarded_{pack}",
            f"share of {pack} that packing trims, if each shard loses less than a sequence",
            "App A",
            "tokens that packing trims",
            cell("data_packs", pack, "discarded_pct"),
            {
                "shards": cell("data_packs", pack, "shards", exact=True),
                "sequences": sequences,
                "context": prose("context"),
            },
            basis="other reading",
        )
    subset, superset = ledger.table("data_packs").index
    # That all shards but a pack's last are of one length is the usual form of a pack; the text does not say it.
    check(
        "shards_superset",
        f"shards of {superset}, if its shards are as long as those of {subset}",
        "App A",
        "shards at one length",
        cell("data_packs", superset, "shards", exact=True),
        {
            "sequences": cell("data_packs", superset, "sequences", exact=True),
            "others": cell("data_packs", subset, "sequences", exact=True),
            "shards of others": cell("data_packs", subset, "shards", exact=True),
        },
        basis="other reading",
    )


def initial_values(ledger: Ledger) -> None:
    """Appendix B's values at step 0."""
    check, prose = ledger.check, ledger.prose
    offset, context = prose("ssmax_offset"), prose("context")
    reference = prose("ssmax_reference").exactly()
    check(
        "ssmax_scale",
        "SSMax's s at init",
        "B.6",
        "softplus plus offset",
        prose("ssmax_scale"),
        {"logit": 0, "offset": offset},
    )
    check("ssmax_log_n", "log of the context", "B.6", "natural logarithm", prose("ssmax_log_n"), {"n": context})
    check(
        "ssmax_temperature",
        "1 / (s log n) at init",
        "B.6",
        "SSMax temperature",
        prose("ssmax_temperature"),
        {"logit": 0, "offset": offset, "n": context},
    )
    check(
        "ssmax_reference",
        "1 / sqrt(d_k)",
        "B.6",
        "inverse square root",
        prose("ssmax_reference"),
        {"d_k": prose("head_width")},
    )
    check(
        "ssmax_within",
        "distance of the two, per cent at most",
        "B.6",
        "SSMax temperature gap",
        prose("ssmax_within_pct").as_bound(),
        {"logit": 0, "offset": offset, "n": context, "reference": reference},
    )
    check(
        "hyper_beta",
        "slow lane's rate at init",
        "B.11",
        "logistic",
        prose("hyper_beta"),
        {"logit": prose("hyper_beta_logit").exactly()},
    )
