"""Transfer study: two devices, divergences, losses and failure signatures (Tables 5, 6 and 7)."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger
from plumbline.studies.transfer.audit.base_scale import seeds


def audit(ledger: Ledger) -> None:
    """Rows of section 5.3 and appendices D and E."""
    table_5(ledger)
    divergences(ledger)
    losses(ledger)
    failure_signatures(ledger)


def table_5(ledger: Ledger) -> None:
    """The same configuration on two devices."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    tasks = [task for task in ledger.table("table5").index if task != "climb_avg"]
    for task in ledger.table("table5").index:
        check(
            f"t5_delta_{task}",
            f"A100 minus primary, {task}",
            "table 5",
            "difference",
            cell("table5", task, "delta"),
            {"a100": cell("table5", task, "a100"), "primary": cell("table5", task, "primary")},
        )
    for device in ("primary", "a100"):
        check(
            f"t5_mean_{device}",
            f"CLIMB-avg on {device} is the mean of its tasks",
            "table 5",
            "mean",
            cell("table5", "climb_avg", device),
            {"x": ledger.column("table5", device, tasks)},
        )
    ledger.copy(
        "t5_seed",
        "the primary run is the first baseline seed",
        "table 5, sec 4.4",
        cell("table5", "climb_avg", "primary"),
        seeds(ledger, "baseline")[0],
    )
    check(
        "a100_difference",
        "difference of CLIMB-avg",
        "App D",
        "difference",
        prose("a100_difference"),
        {"a100": cell("table5", "climb_avg", "a100"), "primary": cell("table5", "climb_avg", "primary")},
    )
    deltas = ledger.column("table5", "delta", tasks)
    for name, source in (("a100_span", "App D"), ("a100_span_limitations", "Limitations")):
        check(name, "largest per-task difference", source, "largest magnitude", prose(name), {"delta": deltas})
    check(
        "a100_primary_higher",
        "tasks higher on the primary platform",
        "App D",
        "count below",
        prose("a100_primary_higher"),
        {"delta": deltas, "c": 0},
    )
    check(
        "a100_a100_higher",
        "tasks higher on the A100",
        "App D",
        "count above",
        prose("a100_a100_higher"),
        {"delta": deltas, "c": 0},
    )


def divergences(ledger: Ledger) -> None:
    """Table 6 beside the text and the caption of Figure 1."""
    check, prose = ledger.check, ledger.prose
    cell, table = ledger.cell, ledger.table("table6")
    hybrid = [row for row in table.index if row.partition("#")[0] == "hybrid_norm"]
    steps = [number.exactly() for number in ledger.column("table6", "nan_step", hybrid)]
    grads = ledger.column("table6", "pre_nan_grad_norm", hybrid)
    check("hybrid_first", "first HybridNorm NaN", "sec 5.3", "smallest", prose("hybrid_first_nan"), {"x": steps})
    check("hybrid_last", "last HybridNorm NaN", "sec 5.3", "largest", prose("hybrid_last_nan"), {"x": steps})
    check(
        "hybrid_grad_low",
        "smallest gradient norm before",
        "sec 5.3",
        "smallest",
        prose("hybrid_grad_low"),
        {"x": grads},
    )
    check(
        "hybrid_grad_high",
        "largest gradient norm before",
        "sec 5.3",
        "largest",
        prose("hybrid_grad_high"),
        {"x": grads},
    )
    check(
        "hybrid_spike",
        "spike of seed 42 over its level",
        "B.15",
        "ratio",
        prose("spike_factor"),
        {"spike": cell("table6", hybrid[0], "spike_grad_norm"), "before": grads[0]},
    )
    check(
        "hybrid_spike_step",
        "step of the spike: one logging interval before NaN",
        "fig 1 caption",
        "difference",
        prose("spike_step"),
        {"nan": steps[0], "interval": prose("logging_interval")},
    )
    check(
        "hybrid_spike_steps",
        "logging intervals from the spike to NaN",
        "table 6, fig 1 caption",
        "logging intervals between",
        cell("table6", hybrid[0], "spike_steps", exact=True),
        {"nan": steps[0], "spike": prose("spike_step"), "interval": prose("logging_interval")},
    )
    for row, nan in zip(hybrid, steps, strict=True):
        seed = table.loc[row, "seed"]
        ledger.copy(
            f"divergence_{seed}",
            f"step at which seed {seed} diverges in the figure",
            "fig 1 caption, table 6",
            prose(f"divergence_{seed}"),
            nan,
        )
    rise, start = cell("table6", "ssmax", "grad_rise_steps", exact=True), prose("ssmax_rise_start")
    check(
        "ssmax_rise_text",
        "steps of SSMax's rise, from the text's two ends",
        "sec 5.3, table 6",
        "difference",
        rise,
        {"end": prose("ssmax_rise_end"), "start": start},
        basis="other reading",
    )
    check(
        "ssmax_rise_to_nan",
        "the same counted to the NaN",
        "sec 5.3, table 6",
        "difference",
        rise,
        {"nan": prose("ssmax_nan"), "start": start},
        basis="other reading",
    )
    ledger.copy(
        "ssmax_nan",
        "step of SSMax's NaN",
        "sec 5.3, table 6",
        cell("table6", "ssmax", "nan_step", exact=True),
        prose("ssmax_nan"),
    )
    for name, row, column in (
        ("ssmax_rise_from", "ssmax", "grad_rise_from"),
        ("ssmax_rise_to", "ssmax", "grad_rise_to"),
        ("hyper_nan", "hyper", "nan_step"),
        ("hyper_rise_start", "hyper", "sustained_from_step"),
    ):
        ledger.copy(
            name, f"{column} of {row} in the text", "sec 5.3, table 6", prose(name), cell("table6", row, column)
        )
    ledger.copy(
        "peak_step",
        "step of the highest learning rate is the end of warm-up",
        "sec 5.3",
        prose("peak_step"),
        prose("warmup_steps"),
    )


def losses(ledger: Ledger) -> None:
    """Table 7 and the loss gaps of appendix E."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    base = cell("table7", "baseline", "val_loss")
    mean = cell("table2", "baseline", "climb_avg")
    for method in ledger.table("table7").index:
        for column in ("climb_avg", "z"):
            ledger.copy(
                f"t7_{column}_{method}",
                f"{column} of {method} is Table 2's",
                "table 7",
                cell("table7", method, column),
                cell("table2", method, column),
            )
    for method, name in (("sigmoid_attn", "sigmoid"), ("ssmax", "ssmax"), ("attnres", "attnres")):
        loss = {"loss": cell("table7", method, "val_loss"), "baseline": base}
        check(
            f"loss_gap_{name}",
            f"validation loss of {method} above baseline",
            "sec 1, E.1",
            "relative difference",
            prose(f"loss_gap_{name}_pct"),
            loss,
        )
        if name != "attnres":
            side = "low" if name == "sigmoid" else "high"
            check(
                f"loss_band_{side}",
                f"{side} end of the band of losses of the two attention failures",
                "abstract, sec 6 R6",
                "relative difference",
                prose(f"loss_band_{side}_pct"),
                loss,
            )
        if name != "sigmoid":
            target = "loss_gap_attention_nats" if name == "ssmax" else "loss_gap_attnres_nats"
            check(target, f"{method} above baseline in nats", "fig 2 caption", "difference", prose(target), loss)
        if name != "attnres":
            check(
                f"drop_{name}",
                f"points that {method} loses",
                "sec 1, E.1",
                "difference in points",
                prose(f"drop_{name}_points"),
                {"baseline": mean, "x": cell("table2", method, "climb_avg")},
            )
    # Figure 2's caption: the two attention-side failures converge to within about this of the baseline.
    winners = [row for row in ledger.table("table7").index if ledger.cell("table7", row, "z").value > 0]
    check(
        "loss_winners",
        "improvers whose loss is nearer to the baseline's than the two failures come",
        "fig 2 caption, table 7",
        "count near",
        Number(text=str(len(winners)), exact=True),
        {"x": ledger.column("table7", "val_loss", winners), "baseline": base, "c": prose("loss_gap_attention_nats")},
    )
    check(
        "range_points",
        "range of CLIMB-avg over the 20 methods, in points",
        "E.1",
        "range in points",
        prose("range_points"),
        {"x": ledger.column("table2", "climb_avg")},
    )


def failure_signatures(ledger: Ledger) -> None:
    """Appendix E.2's per-task losses against the drops of the average they must add up to."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    check(
        "failure_kinds",
        "failures by kind: replacements, a subtraction, residual methods",
        "App E",
        "sum",
        prose("degraders"),
        {kind: prose(f"{kind}_failures") for kind in ("replacement", "subtraction", "residual")},
    )
    check(
        "diverged_after_passing",
        "methods that diverge at 3B and had not fallen below -2 sigma at 1.2B",
        "sec 5.3",
        "count above",
        prose("diverged_after_passing"),
        {
            "z": ledger.column("table2", "z", ["hybrid_norm", "ssmax", "hyper"]),
            "c": prose("z_line").negated(),
        },
    )
    lambada, n = cell("table5", "lambada_openai", "primary"), prose("tasks")
    ledger.copy("lambada_baseline", "the baseline's LAMBADA", "E.2, table 5", prose("lambada_baseline"), lambada)
    drops = {name: cell("table2", name, "delta").without_sign() for name in ("sigmoid_attn", "ssmax", "layerscale")}
    for side, other in (("low", "sigmoid_other_low"), ("high", "sigmoid_other_high")):
        check(
            f"sigmoid_drop_{side}",
            f"Sigmoid's drop if LAMBADA falls to 0 and 11 tasks lose the {side} end",
            "E.2, table 2",
            "mean drop of a one-task failure",
            drops["sigmoid_attn"],
            {"lambada": lambada, "others": prose(other), "n": n},
        )
    check(
        "ssmax_drop",
        "SSMax's drop of the average if 11 tasks lose 0.014-0.025 and one anything up to LAMBADA",
        "E.2, table 2",
        "mean drop, one task free",
        drops["ssmax"],
        {"lo": prose("ssmax_task_low"), "hi": prose("ssmax_task_high"), "free": lambada, "n": n},
    )
    check(
        "layerscale_drop",
        "LayerScale's drop of the average if every task loses 0.01-0.02",
        "E.2, table 2",
        "between",
        drops["layerscale"],
        {"lo": prose("layerscale_task_low"), "hi": prose("layerscale_task_high")},
    )
