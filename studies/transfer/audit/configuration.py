"""Recomputes printed numbers of the transfer study: heads and scales, token and pack counts, and the constants of
appendix B."""

from __future__ import annotations

import math

from mpmath import iv

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import between, exp, log, sqrt
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval, low
from plumbline.published.printed_number import BILLION, exact

from . import decoder_sizes


def audit(ledger: AuditRows) -> None:
    """All rows that follow from the stated configuration."""
    check_heads_and_scales(ledger)
    check_tokens(ledger)
    check_initial_values(ledger)


def check_heads_and_scales(ledger: AuditRows) -> None:
    """Head counts that two sections print differently, and what "3B" means."""
    check, copy, prose = ledger.check, ledger.copy, ledger.prose
    heads = prose("heads")
    check("head_width", f"head width at {heads} heads", "B.6", prose("head_width"), prose("hidden") / heads)
    label, where = "{} in appendix D are those of section 3.2", "sec 3.2, App D"
    copy("heads", label.format("heads"), where, prose("heads_app_d"), heads)
    printed, original = prose("key_value_groups_app_d"), prose("key_value_heads")
    copy("key_value_groups", label.format("key/value groups"), where, printed, original)
    base, large, literal = (
        make(ledger.settings) for make in (decoder_sizes.base, decoder_sizes.large, decoder_sizes.large_as_printed)
    )
    billions = prose("parameters_large_b")
    label = (
        f"{literal.layers} layers of width {literal.width} with all else identical (FFN {literal.ffn_width}), billions"
    )
    check("size_3b_as_printed", label, "sec 3.2", billions, exact(literal.total(), "counted_parameters") / BILLION)
    label, total = f"the same with the FFN scaled to {large.ffn_width}", exact(large.total(), "counted_parameters")
    check("size_3b_scaled", label, "sec 3.2", billions, total / BILLION, basis="other interpretation")
    label = f"cost of 3B over 1.2B at equal tokens, by parameters (FFN {large.ffn_width})"
    ratio = exact(large.total(), "counted_large") / exact(base.total(), "counted_base")
    check("cost_parameters", label, "sec 5.1", prose("sweep_cost_ratio"), ratio, basis="other interpretation")


def check_tokens(ledger: AuditRows) -> None:
    """Training tokens and packs."""
    check, prose, packs = ledger.check, ledger.prose, ledger.table("data_packs")
    steps, exponent, context = prose("steps"), prose("log2_tokens_per_step"), prose("context")
    consistent = ledger.settings.whole("budget", "tokens_per_step_consistent_log2")
    for name, where in (("tokens_b", "sec 3.2"), ("tokens_3b_b", "sec 5.1")):
        label = f"{int(steps.text):,} steps of 2^{{}} tokens, in billions"
        check(name, label.format(exponent), where, prose(name), steps * 2**exponent / BILLION)
        half = steps * exact(2**consistent, "per_step") / BILLION
        check(f"{name}_half", label.format(consistent), where, prose(name), half, basis="other interpretation")
    for pack in packs.rows:
        sequences, shards = packs[pack, "sequences"].exactly(), packs[pack, "shards"].exactly()
        label, total = f"tokens of the pack {pack}, in billions", sequences * context / BILLION
        check(f"pack_{pack}", label, "App A", packs[pack, "tokens_b"], total)
        check(
            f"discarded_{pack}",
            f"share of {pack} that packing trims, if each shard loses less than a sequence",
            "App A",
            packs[pack, "discarded_pct"],
            between(0, 100 * shards * (context - 1) / (sequences * context)),
            basis="other interpretation",
            refuses=packs[pack, "discarded_pct"].text.replace("e-4", "e-2"),  # a share taken for per cent
        )
    subset, superset = packs.rows
    # That all shards but a pack's last are of one length is the usual form of a pack; the text does not say it.
    sequences, others, shards = (
        packs[pack, column].exactly()
        for pack, column in ((superset, "sequences"), (subset, "sequences"), (subset, "shards"))
    )
    check(
        "shards_superset",
        f"shards of {superset}, if its shards are as long as those of {subset}",
        "App A",
        packs[superset, "shards"].exactly(),
        shards_at_one_length(sequences, others, shards),
        basis="other interpretation",
    )


@audit_function("ceil(s / length), length = ceil(s' / n'): the least that n' shards need")
def shards_at_one_length(sequences: Interval, other_sequences: Interval, other_shards: Interval) -> Interval:
    """Compute the least shards that hold a pack's sequences at the length of another pack's shards."""
    length = math.ceil(low(other_sequences) / low(other_shards))
    return iv.mpf(math.ceil(low(sequences) / length))


def check_initial_values(ledger: AuditRows) -> None:
    """Appendix B's values at step 0."""
    check, prose = ledger.check, ledger.prose
    n, reference = prose("context"), prose("ssmax_reference")
    scale = log(1 + exp(0)) + prose("ssmax_offset")
    temperature = 1 / (scale * log(n))
    check("ssmax_scale", "SSMax's s at init", "B.6", prose("ssmax_scale"), scale)
    check("ssmax_log_n", "log of the context", "B.6", prose("ssmax_log_n"), log(n))
    check("ssmax_temperature", "1 / (s log n) at init", "B.6", prose("ssmax_temperature"), temperature)
    check("ssmax_reference", "1 / sqrt(d_k)", "B.6", reference, 1 / sqrt(prose("head_width")))
    within = prose("ssmax_within_pct").as_bound()
    # Scores are multiplied by s log n and by 1 / sqrt(d_k); 1 / (s log n) is what they are divided by.
    gap = 100 * abs(scale * log(n) / reference.exactly() - 1)
    check("ssmax_within", "distance of the two multipliers of scores, per cent at most", "B.6", within, gap)
    gap = 100 * abs(temperature / reference.exactly() - 1)
    label = "the same of a divisor, 1 / (s log n), and a multiplier, 1 / sqrt(d_k)"
    check("ssmax_within_reciprocal", label, "B.6", within, gap, basis="other interpretation")
    rate = 1 / (1 + exp(-prose("hyper_beta_logit").exactly()))
    check("hyper_beta", "slow lane's rate at init", "B.11", prose("hyper_beta"), rate)
