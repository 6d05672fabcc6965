"""Recomputes printed numbers of the premature study: Tables 1, 2 and 11."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.audit.math_functions import between, exp, mean
from plumbline.published.printed_number import exact

from .named_functions import sd_of_mean

#: What no sd of a paired difference can be by those of its two arms: an arm's own sd (Table 1, and in points where its
#: task has one that is refused), or one with its point misplaced.
REFUSED_SD = {
    "t1_loss_sd": "0.0021",
    "t1_ppl_sd": "0.0560",
    "t11_final_loss_sd": "0.0040",
    "t11_final_ppl_sd": "0.0730",
    "piqa": "0.130",
    "hellaswag": "3.140",
    "arc_easy": "0.340",
    "arc_challenge": "0.230",
    "race": "10.230",
    "lambada": "0.040",
    "mmlu": "0.010",
}


def audit(ledger: AuditRows) -> None:
    """Rows of the main result and its larger replication."""
    check_table_1(ledger)
    check_table_2(ledger)
    check_table_11(ledger)


def check_table_1(ledger: AuditRows) -> None:
    """270M, three pairs."""
    check, prose, t1 = ledger.check, ledger.prose, ledger.table("table1")
    _check_levels(ledger, "table1", "t1", "loss", "ppl")
    _check_differences(ledger, "table1", "t1", ("loss", "ppl", "tokens_to_baseline_loss_b"))
    budget = t1["control", "tokens_to_baseline_loss_b_mean"].exactly()
    needed, needed_sd = (t1["intervention", f"tokens_to_baseline_loss_b_{it}"] for it in ("mean", "std"))
    saving, saving_pct = t1["intervention", "token_saving_m_mean"], t1["intervention", "token_saving_pct_mean"]
    check("t1_saving", "tokens saved, in millions", "table 1", saving, 1000 * (budget - needed))
    label = "tokens saved, per cent of the budget"
    check("t1_saving_pct", label, "table 1", saving_pct, 100 * saving / (1000 * budget))
    saving_pct_sd = t1["intervention", "token_saving_pct_std"]
    check("t1_saving_pct_sd", "sd of the same", "table 1", saving_pct_sd, 100 * needed_sd / budget)
    gain = abs(t1["difference", "ppl_mean"])
    check("ppl_gain_abstract", "perplexity gain in the introduction", "sec 1", prose("ppl_gain_abstract"), gain)
    label = "tokens saved in the introduction"
    ledger.copy("tokens_saved_intro", label, "sec 1", prose("tokens_saved_pct_intro"), saving_pct)


def check_table_2(ledger: AuditRows) -> None:
    """Downstream tasks."""
    check, prose, t2 = ledger.check, ledger.prose, ledger.table("table2")
    tasks = [task for task in t2.rows if task != "mean"]
    for task in tasks:
        label = f"paired difference on {task}, points"
        difference = 100 * (t2[task, "intervention_mean"] - t2[task, "control_mean"])
        check(f"t2_{task}", label, "table 2", t2[task, "delta_pp_mean"], difference)
        a, b = t2[task, "intervention_std"], t2[task, "control_std"]
        possible = 100 * between(abs(a - b), a + b)
        label, refuses = f"its sd on {task} is a possible one", REFUSED_SD[task]
        check(f"t2_sd_{task}", label, "table 2", t2[task, "delta_pp_std"], possible, refuses=refuses)
    gain, gain_sd = t2["mean", "delta_pp_mean"], t2["mean", "delta_pp_std"]
    check("t2_mean", "mean of the seven differences", "table 2", gain, mean(t2.column("delta_pp_mean", tasks)))
    possible = sd_of_mean(t2.column("delta_pp_std", tasks))
    check("t2_sd_mean", "its sd over seeds is a possible one", "table 2", gain_sd, possible, refuses="1.43")
    best = ["lambada", "race", "arc_easy"]
    others = [task for task in tasks if task not in best]
    larger, smaller = [*best, *[best[-1]] * (len(others) - 1)], [*best[1:], *others]
    check(
        "t2_largest",
        "tasks with the largest gains, in the text's order: LAMBADA, RACE, ARC-Easy, all others",
        "sec 5.2, table 2",
        exact(len(tasks) - 1),
        count(t2.column("delta_pp_mean", larger) > t2.column("delta_pp_mean", smaller)),
    )
    ledger.copy("downstream_pp", "mean gain in the text", "sec 5.2", prose("downstream_pp"), gain)
    pairs = exact(len(tasks), "tasks") * prose("seeds")
    check("pairs", "run-task comparisons", "sec 5.2", prose("pairs"), pairs)


def check_table_11(ledger: AuditRows) -> None:
    """0.7B, three pairs."""
    prose, t11 = ledger.prose, ledger.table("table11")
    _check_levels(ledger, "table11", "t11", "final_loss", "final_ppl")
    _check_differences(ledger, "table11", "t11", ("final_loss", "final_ppl", "tokens_to_target_b"))
    for name, column in (("ppl_gain_0p7b", "final_ppl_mean"), ("tokens_saved_0p7b", "tokens_to_target_b_mean")):
        gain = abs(t11["difference", column])
        ledger.check(name, f"{column} difference in the text", "sec 5.1", prose(name), gain)
    label, budget = "the control's tokens are the budget", t11["control", "tokens_to_target_b_mean"]
    ledger.copy("t11_budget", label, "App J, table 11", prose("tokens_0p7b_b"), budget)


def _check_levels(ledger: AuditRows, name: str, prefix: str, loss: str, ppl: str) -> None:
    """Perplexity against loss for arms that print mean and sd of both over three runs."""
    table, n, where = ledger.table(name), ledger.prose("seeds"), name.replace("table", "table ")
    for arm in ("control", "intervention"):
        mean_loss, sd = table[arm, f"{loss}_mean"], table[arm, f"{loss}_std"]
        mean_ppl, sd_ppl = table[arm, f"{ppl}_mean"], table[arm, f"{ppl}_std"]
        # Mean of exp over n values with sample sd: second order of exp around the mean loss.
        expected = exp(mean_loss) * (1 + (1 - 1 / n) * sd**2 / 2)
        label = f"mean perplexity of {arm} against its loss"
        ledger.check(f"{prefix}_ppl_{arm}", label, where, mean_ppl, expected)
        label = f"sd of perplexity of {arm} against that of its loss"
        ledger.check(f"{prefix}_ppl_sd_{arm}", label, where, sd_ppl, mean_ppl * sd)


def _check_differences(ledger: AuditRows, name: str, prefix: str, columns: tuple[str, ...]) -> None:
    """The difference row of a table with mean and sd, from its two arms."""
    table, where = ledger.table(name), name.replace("table", "table ")
    for column in columns:
        difference = table["intervention", f"{column}_mean"] - table["control", f"{column}_mean"]
        label = f"difference of {column}"
        ledger.check(f"{prefix}_{column}_difference", label, where, table["difference", f"{column}_mean"], difference)
        id, printed = f"{prefix}_{column}_sd", table["difference", f"{column}_std"]
        a = table["intervention", f"{column}_std"]
        if "tokens" in column:  # the control's tokens are the budget: the difference has the arm's own sd
            ledger.copy(id, f"sd of the difference of {column}", where, printed, a)
        else:
            b = table["control", f"{column}_std"]
            label = f"sd of the paired difference of {column} is a possible one"
            possible = between(abs(a - b), a + b)
            ledger.check(id, label, where, printed, possible, refuses=REFUSED_SD[id])
