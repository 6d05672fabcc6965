"""Premature study: Tables 1, 2 and 11."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """Rows of the main result and its larger replication."""
    table_1(ledger)
    table_2(ledger)
    table_11(ledger)


def table_1(ledger: Ledger) -> None:
    """270M, three pairs."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    _levels(ledger, "table1", "t1", "loss", "ppl", ("control", "intervention"))
    _differences(ledger, "table1", "t1", ("loss", "ppl", "tokens_to_baseline_loss_b"))
    budget = cell("table1", "control", "tokens_to_baseline_loss_b_mean", exact=True)
    saving = cell("table1", "intervention", "token_saving_m_mean")
    check(
        "t1_saving",
        "tokens saved, in millions",
        "table 1",
        "tokens saved",
        saving,
        {"budget_b": budget, "needed_b": cell("table1", "intervention", "tokens_to_baseline_loss_b_mean")},
    )
    check(
        "t1_saving_pct",
        "tokens saved, per cent of the budget",
        "table 1",
        "saving in per cent",
        cell("table1", "intervention", "token_saving_pct_mean"),
        {"saving_m": saving, "budget_b": budget},
    )
    check(
        "t1_saving_pct_sd",
        "sd of the same",
        "table 1",
        "share",
        cell("table1", "intervention", "token_saving_pct_std"),
        {"sd_b": cell("table1", "intervention", "tokens_to_baseline_loss_b_std"), "budget_b": budget},
    )
    check(
        "ppl_gain_abstract",
        "perplexity gain in the introduction",
        "sec 1",
        "magnitude",
        prose("ppl_gain_abstract"),
        {"difference": cell("table1", "difference", "ppl_mean")},
    )
    ledger.copy(
        "tokens_saved_intro",
        "tokens saved in the introduction",
        "sec 1",
        prose("tokens_saved_pct_intro"),
        cell("table1", "intervention", "token_saving_pct_mean"),
    )


def table_2(ledger: Ledger) -> None:
    """Downstream tasks."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    tasks = [task for task in ledger.table("table2").index if task != "mean"]
    for task in tasks:
        check(
            f"t2_{task}",
            f"paired difference on {task}, points",
            "table 2",
            "difference in points",
            cell("table2", task, "delta_pp_mean"),
            {
                "intervention": cell("table2", task, "intervention_mean"),
                "control": cell("table2", task, "control_mean"),
            },
        )
        check(
            f"t2_sd_{task}",
            f"its sd on {task} is a possible one",
            "table 2",
            "sd of a paired difference in points",
            cell("table2", task, "delta_pp_std"),
            {"a": cell("table2", task, "intervention_std"), "b": cell("table2", task, "control_std")},
        )
    check(
        "t2_mean",
        "mean of the seven differences",
        "table 2",
        "mean",
        cell("table2", "mean", "delta_pp_mean"),
        {"x": ledger.column("table2", "delta_pp_mean", tasks)},
    )
    check(
        "t2_sd_mean",
        "its sd over seeds is a possible one",
        "table 2",
        "sd of a mean of tasks",
        cell("table2", "mean", "delta_pp_std"),
        {"x": ledger.column("table2", "delta_pp_std", tasks)},
    )
    best = ("lambada", "race", "arc_easy")
    check(
        "t2_largest",
        "tasks with the largest gains, in the text's order: LAMBADA, RACE, ARC-Easy, all others",
        "sec 5.2, table 2",
        "count larger",
        Number(text=str(len(tasks) - 1), exact=True),
        {
            "larger": [cell("table2", task, "delta_pp_mean") for task in (*best, *[best[-1]] * (len(tasks) - 4))],
            "smaller": [
                cell("table2", task, "delta_pp_mean")
                for task in (*best[1:], *(task for task in tasks if task not in best))
            ],
        },
    )
    ledger.copy(
        "downstream_pp",
        "mean gain in the text",
        "sec 5.2",
        prose("downstream_pp"),
        cell("table2", "mean", "delta_pp_mean"),
    )
    check(
        "pairs",
        "run-task comparisons",
        "sec 5.2",
        "product",
        prose("pairs"),
        {"tasks": len(tasks), "seeds": prose("seeds")},
    )


def table_11(ledger: Ledger) -> None:
    """0.7B, three pairs."""
    check, cell, prose = ledger.check, ledger.cell, ledger.prose
    _levels(ledger, "table11", "t11", "final_loss", "final_ppl", ("control", "intervention"))
    _differences(ledger, "table11", "t11", ("final_loss", "final_ppl", "tokens_to_target_b"))
    for name, column in (("ppl_gain_0p7b", "final_ppl_mean"), ("tokens_saved_0p7b", "tokens_to_target_b_mean")):
        check(
            name,
            f"{column} difference in the text",
            "sec 5.1",
            "magnitude",
            prose(name),
            {"difference": cell("table11", "difference", column)},
        )
    ledger.copy(
        "t11_budget",
        "the control's tokens are the budget",
        "App J, table 11",
        prose("tokens_0p7b_b"),
        cell("table11", "control", "tokens_to_target_b_mean"),
    )


def _levels(ledger: Ledger, table: str, prefix: str, loss: str, ppl: str, arms: tuple[str, ...]) -> None:
    """Perplexity against loss for arms that print mean and sd of both over three runs."""
    cell, n = ledger.cell, ledger.prose("seeds")
    where = table.replace("table", "table ")
    for arm in arms:
        mean, sd = cell(table, arm, f"{loss}_mean"), cell(table, arm, f"{loss}_std")
        ledger.check(
            f"{prefix}_ppl_{arm}",
            f"mean perplexity of {arm} against its loss",
            where,
            "mean perplexity",
            cell(table, arm, f"{ppl}_mean"),
            {"loss": mean, "sd": sd, "n": n},
        )
        ledger.check(
            f"{prefix}_ppl_sd_{arm}",
            f"sd of perplexity of {arm} against that of its loss",
            where,
            "sd of perplexity",
            cell(table, arm, f"{ppl}_std"),
            {"ppl": cell(table, arm, f"{ppl}_mean"), "sd": sd},
        )


def _differences(ledger: Ledger, table: str, prefix: str, columns: tuple[str, ...]) -> None:
    """The difference row of a table with mean and sd, from its two arms."""
    cell = ledger.cell
    where = table.replace("table", "table ")
    for column in columns:
        ledger.check(
            f"{prefix}_{column}_difference",
            f"difference of {column}",
            where,
            "difference",
            cell(table, "difference", f"{column}_mean"),
            {
                "intervention": cell(table, "intervention", f"{column}_mean"),
                "control": cell(table, "control", f"{column}_mean"),
            },
        )
        if "tokens" in column:  # the control's tokens are the budget: the difference has the arm's own sd
            ledger.copy(
                f"{prefix}_{column}_sd",
                f"sd of the difference of {column}",
                where,
                cell(table, "difference", f"{column}_std"),
                cell(table, "intervention", f"{column}_std"),
            )
        else:
            ledger.check(
                f"{prefix}_{column}_sd",
                f"sd of the paired difference of {column} is a possible one",
                where,
                "sd of a paired difference",
                cell(table, "difference", f"{column}_std"),
                {"a": cell(table, "intervention", f"{column}_std"), "b": cell(table, "control", f"{column}_std")},
            )
