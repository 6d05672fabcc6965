"""Recomputes printed numbers of the transfer study: two devices, divergences, losses and failure signatures (Tables 5,
6 and 7)."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.audit.math_functions import between, largest, mean, smallest
from plumbline.published.printed_number import exact

from .base_scale import seeds


def audit(ledger: AuditRows) -> None:
    """Rows of section 5.3 and appendices D and E."""
    check_table_5(ledger)
    check_divergences(ledger)
    check_losses(ledger)
    check_failure_signatures(ledger)


def check_table_5(ledger: AuditRows) -> None:
    """The same configuration on two devices."""
    check, prose, t5 = ledger.check, ledger.prose, ledger.table("table5")
    for task in t5.rows:
        label, difference = f"A100 minus primary, {task}", t5[task, "a100"] - t5[task, "primary"]
        check(f"t5_delta_{task}", label, "table 5", t5[task, "delta"], difference)
    tasks = [task for task in t5.rows if task != "climb_avg"]
    for device in ("primary", "a100"):
        label = f"CLIMB-avg on {device} is the mean of its tasks"
        check(f"t5_mean_{device}", label, "table 5", t5["climb_avg", device], mean(t5.column(device, tasks)))
    label, printed = "the primary run is the first baseline seed", t5["climb_avg", "primary"]
    ledger.copy("t5_seed", label, "table 5, sec 4.4", printed, seeds(ledger, "baseline")[0])
    difference = t5["climb_avg", "a100"] - t5["climb_avg", "primary"]
    check("a100_difference", "difference of CLIMB-avg", "App D", prose("a100_difference"), difference)
    deltas = t5.others("delta", "climb_avg")
    for name, source in (("a100_span", "App D"), ("a100_span_limitations", "Limitations")):
        check(name, "largest per-task difference", source, prose(name), largest(abs(deltas)))
    for name, label, higher in (
        ("a100_primary_higher", "tasks higher on the primary platform", deltas < 0),
        ("a100_a100_higher", "tasks higher on the A100", deltas > 0),
    ):
        check(name, label, "App D", prose(name), count(higher))


def check_divergences(ledger: AuditRows) -> None:
    """Table 6 next to the text and the caption of Figure 1."""
    check_hybrid_norm(ledger)
    copy, prose, t6 = ledger.copy, ledger.prose, ledger.table("table6")
    rise, start, nan = t6["ssmax", "grad_rise_steps"].exactly(), prose("ssmax_rise_start"), prose("ssmax_nan")
    for name, label, end in (
        ("ssmax_rise_text", "steps of SSMax's rise, from the text's two ends", prose("ssmax_rise_end")),
        ("ssmax_rise_to_nan", "the same counted to the NaN", nan),
    ):
        ledger.check(name, label, "sec 5.3, table 6", rise, end - start, basis="other interpretation")
    copy("ssmax_nan", "step of SSMax's NaN", "sec 5.3, table 6", t6["ssmax", "nan_step"].exactly(), nan)
    for name, row, column in (
        ("ssmax_rise_from", "ssmax", "grad_rise_from"),
        ("ssmax_rise_to", "ssmax", "grad_rise_to"),
        ("hyper_nan", "hyper", "nan_step"),
        ("hyper_rise_start", "hyper", "sustained_from_step"),
    ):
        copy(name, f"{column} of {row} in the text", "sec 5.3, table 6", prose(name), t6[row, column])
    label = "step of the highest learning rate is the end of warm-up"
    copy("peak_step", label, "sec 5.3", prose("peak_step"), prose("warmup_steps"))


def check_hybrid_norm(ledger: AuditRows) -> None:
    """HybridNorm's three divergences."""
    check, prose, t6 = ledger.check, ledger.prose, ledger.table("table6")
    rows = [row for row in t6.rows if row.partition("#")[0] == "hybrid_norm"]
    steps, grads = t6.column("nan_step", rows).exactly(), t6.column("pre_nan_grad_norm", rows)
    check("hybrid_first", "first HybridNorm NaN", "sec 5.3", prose("hybrid_first_nan"), smallest(steps))
    check("hybrid_last", "last HybridNorm NaN", "sec 5.3", prose("hybrid_last_nan"), largest(steps))
    label = "{} gradient norm before"
    check("hybrid_grad_low", label.format("smallest"), "sec 5.3", prose("hybrid_grad_low"), smallest(grads))
    check("hybrid_grad_high", label.format("largest"), "sec 5.3", prose("hybrid_grad_high"), largest(grads))
    growth = t6[rows[0], "spike_grad_norm"] / grads[0]
    check("hybrid_spike", "spike of seed 42 over its level", "B.15", prose("spike_factor"), growth)
    spike, interval = prose("spike_step"), prose("logging_interval")
    label = "step of the spike: one logging interval before NaN"
    check("hybrid_spike_step", label, "fig 1 caption", spike, steps[0] - interval)
    label, printed = "logging intervals from the spike to NaN", t6[rows[0], "spike_steps"].exactly()
    check("hybrid_spike_steps", label, "table 6, fig 1 caption", printed, (steps[0] - spike) / interval)
    for row, nan in zip(rows, steps, strict=True):
        seed = t6.texts("seed")[row]
        label, printed = f"step at which seed {seed} diverges in the figure", prose(f"divergence_{seed}")
        ledger.copy(f"divergence_{seed}", label, "fig 1 caption, table 6", printed, nan)


def check_losses(ledger: AuditRows) -> None:
    """Table 7 and the loss gaps of appendix E."""
    check, prose, t2, t7 = ledger.check, ledger.prose, ledger.table("table2"), ledger.table("table7")
    base = t7["baseline", "val_loss"]
    for method in t7.rows:
        for column in ("climb_avg", "z"):
            label = f"{column} of {method} is Table 2's"
            ledger.copy(f"t7_{column}_{method}", label, "table 7", t7[method, column], t2[method, column])
    for method, name, side, nats in (
        ("sigmoid_attn", "sigmoid", "low", ""),
        ("ssmax", "ssmax", "high", "loss_gap_attention_nats"),
        ("attnres", "attnres", "", "loss_gap_attnres_nats"),
    ):
        loss = t7[method, "val_loss"]
        gap = 100 * (loss / base - 1)
        label, printed = f"validation loss of {method} above baseline", prose(f"loss_gap_{name}_pct")
        check(f"loss_gap_{name}", label, "sec 1, E.1", printed, gap)
        if side:
            label, printed = f"{side} end of the band of losses of the two attention failures", f"loss_band_{side}_pct"
            check(f"loss_band_{side}", label, "abstract, sec 6 R6", prose(printed), gap)
        if nats:
            check(nats, f"{method} above baseline in nats", "fig 2 caption", prose(nats), loss - base)
        if side:
            drop = 100 * (t2["baseline", "climb_avg"] - t2[method, "climb_avg"])
            label, printed = f"points that {method} loses", prose(f"drop_{name}_points")
            check(f"drop_{name}", label, "sec 1, E.1", printed, drop)
    # Figure 2's caption: the two attention-side failures converge to within about this of the baseline.
    winners = t7.column("val_loss", [row for row in t7.rows if t7[row, "z"].value > 0])
    label = "improvers whose loss is nearer to the baseline's than the two failures come"
    nearer = count(abs(winners - base) < prose("loss_gap_attention_nats"))
    check("loss_winners", label, "fig 2 caption, table 7", exact(len(winners)), nearer)
    scores, label = t2.column("climb_avg"), "range of CLIMB-avg over the 20 methods, in points"
    check("range_points", label, "E.1", prose("range_points"), 100 * (largest(scores) - smallest(scores)))


def check_failure_signatures(ledger: AuditRows) -> None:
    """Appendix E.2's per-task losses against the drops of the average they must add up to."""
    check, prose, t2 = ledger.check, ledger.prose, ledger.table("table2")
    replacement, subtraction, residual = (
        prose(f"{kind}_failures") for kind in ("replacement", "subtraction", "residual")
    )
    label = "failures by kind: replacements, a subtraction, residual methods"
    check("failure_kinds", label, "App E", prose("degraders"), replacement + subtraction + residual)
    z = t2.column("z", ["hybrid_norm", "ssmax", "hyper"])
    label = "methods that diverge at 3B and had not fallen below -2 sigma at 1.2B"
    check("diverged_after_passing", label, "sec 5.3", prose("diverged_after_passing"), count(z > -prose("z_line")))
    lambada, n = ledger.table("table5")["lambada_openai", "primary"], prose("tasks")
    label = "the baseline's LAMBADA"
    ledger.copy("lambada_baseline", label, "E.2, table 5", prose("lambada_baseline"), lambada)
    sigmoid, ssmax, layerscale = (
        t2[method, "delta"].without_sign() for method in ("sigmoid_attn", "ssmax", "layerscale")
    )
    for side in ("low", "high"):
        label = f"Sigmoid's drop if LAMBADA falls to 0 and 11 tasks lose the {side} end"
        drop = (lambada + (n - 1) * prose(f"sigmoid_other_{side}")) / n
        check(f"sigmoid_drop_{side}", label, "E.2, table 2", sigmoid, drop)
    lo, hi = prose("ssmax_task_low"), prose("ssmax_task_high")
    label = "SSMax's drop of the average if 11 tasks lose 0.014-0.025 and one anything up to LAMBADA"
    drop = between((n - 1) * lo / n, (lambada + (n - 1) * hi) / n)
    check("ssmax_drop", label, "E.2, table 2", ssmax, drop, refuses=ssmax.text)
    label = "LayerScale's drop of the average if every task loses 0.01-0.02"
    drop = between(prose("layerscale_task_low"), prose("layerscale_task_high"))
    check("layerscale_drop", label, "E.2, table 2", layerscale, drop, refuses="0.004")
