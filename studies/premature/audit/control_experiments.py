"""Recomputes printed numbers of the premature study: controls (Tables 6 to 10) and the release grid."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count, falling, rank, rising
from plumbline.audit.math_functions import exp, smallest
from plumbline.published.printed_number import exact

from .named_functions import nearest_evaluation, one_of_runs, release_checkpoint


def audit(ledger: AuditRows) -> None:
    """Rows of appendices D to G."""
    check_entropy_floor(ledger)
    check_table_7(ledger)
    check_table_8(ledger)
    check_table_9(ledger)
    check_table_10(ledger)


def check_entropy_floor(ledger: AuditRows) -> None:
    """Table 6, whose reference rows are shortened copies of Table 9's."""
    check, copy, t6, t9 = ledger.check, ledger.copy, ledger.table("table6"), ledger.table("table9")
    for arm in ("entropy_floor", "intervention"):
        gain = t6["control", "final_ppl"] - t6[arm, "final_ppl"]
        check(f"t6_{arm}", f"perplexity gain of {arm}", "table 6", t6[arm, "ppl_reduction"], gain)
    for arm in ("control", "intervention"):
        for column in ("final_ppl", "entropy_3pct", "logit_3pct"):
            label = f"{column} of {arm} is Table 9's"
            copy(f"t6_{column}_{arm}", label, "tables 6, 9", t6[arm, column], t9[arm, column])
    for column, moves, does in (("entropy_3pct", rising, "raises"), ("logit_3pct", falling, "reduces")):
        label, arms = f"the entropy floor {does} {column}", t6.column(column, ["control", "entropy_floor"])
        check(f"t6_{column}_order", label, "App D, table 6", exact(1), moves(arms))
    label, original = "the intervention's gain is Table 9's", t9["intervention", "ppl_reduction"]
    copy("t6_gain_copy", label, "tables 6, 9", t6["intervention", "ppl_reduction"], original)


def check_table_7(ledger: AuditRows) -> None:
    """Global learning-rate control."""
    check, t7 = ledger.check, ledger.table("table7")
    for arm in t7.rows:
        label, ppl = f"perplexity of {arm} against its loss", t7[arm, "final_ppl"]
        check(f"t7_ppl_{arm}", label, "table 7", ppl, exp(t7[arm, "final_loss"]))
        for column in ("loss", "ppl") if arm != "control" else ():
            difference = t7[arm, f"final_{column}"] - t7["control", f"final_{column}"]
            label = f"difference of {column}, {arm}"
            check(f"t7_{column}_{arm}_difference", label, "table 7", t7[arm, f"delta_{column}"], difference)
    label, original = "perplexity at half the rate in the text", t7["global_half_lr", "final_ppl"]
    ledger.copy("half_lr_ppl", label, "sec 5.1", ledger.prose("half_lr_ppl"), original)


def check_table_8(ledger: AuditRows) -> None:
    """Release checkpoints on a grid of evaluations every 0.5 % of whole steps."""
    check, prose, t8 = ledger.check, ledger.prose, ledger.table("table8")
    tokens, batch = prose("tokens"), prose("batch_tokens")
    for rule in t8.rows:
        printed = t8[rule, "release_pct"]
        if rule == "higher_threshold":
            label = "an evaluation of the grid (when the score passes is data)"
            expected = nearest_evaluation(printed.exactly(), tokens, batch)
        else:
            label = f"first release that rule {rule} allows when the score passes at 3 %"
            start, patience = t8[rule, "window_start_pct"].exactly(), t8[rule, "patience"].exactly()
            expected = release_checkpoint(start, patience, tokens, batch)
        check(f"t8_{rule}", label, "table 8", printed, expected)
    releases, forced = t8.column("release_pct"), t8.column("window_end_pct")
    early = count(releases < prose("release_high"))
    check("t8_window_high", "rules that release before 6 %", "sec 5.1", prose("rules_in_window"), early)
    check("t8_window_low", "earliest release", "sec 5.1", prose("release_low").as_rounded(), smallest(releases))
    label = "rules that release before the end of their window"
    check("t8_not_forced", label, "App F, table 8", exact(len(forced)), count(forced > releases))
    label = "start of the main rule's window is the earliest release of section 2"
    start = t8["main", "window_start_pct"].exactly()
    ledger.copy("t8_maturity", label, "sec 2, table 8", start, prose("maturity_pct"))


def check_table_9(ledger: AuditRows) -> None:
    """Fixed releases next to the adaptive rule."""
    check, t1, t9 = ledger.check, ledger.table("table1"), ledger.table("table9")
    for arm in ("intervention", "fixed_3pct", "fixed_6pct"):
        gain = t9["control", "final_ppl"] - t9[arm, "final_ppl"]
        check(f"t9_{arm}", f"perplexity gain of {arm}", "table 9", t9[arm, "ppl_reduction"], gain)
    for arm in ("control", "intervention"):
        label, original = f"perplexity of {arm} is Table 4's", ledger.table("table4")["gpt", f"{arm}_ppl"]
        ledger.copy(f"t9_copy_{arm}", label, "tables 4, 9", t9[arm, "final_ppl"], original)
    for column in ("ppl_reduction", "tokens_saved_pct"):
        adaptive, fixed = t9["intervention", column], t9.column(column, ["fixed_3pct", "fixed_6pct"])
        label = f"rank of the adaptive rule by {column}"
        check(f"t9_best_{column}", label, "App F, table 9", exact(1), rank(adaptive, fixed))
        label, most = f"fixed releases that keep most of {column}", count(fixed > adaptive / 2)
        check(f"t9_retained_{column}", label, "sec 5.1, App F, table 9", exact(len(fixed)), most)
    # Tables 4 and 9 show one matched comparison, Table 1 three pairs under the same rule; that it is one of them is
    # not said.
    # Refused: Table 10's control, and a digit of the others off by two and by one.
    for row, column, mean, refuses in (
        ("control", "final_ppl", "ppl", ledger.table("table10")["control", "final_ppl"].text),
        ("intervention", "final_ppl", "ppl", "26.1324"),
        ("intervention", "tokens_saved_pct", "token_saving_pct", "14.90"),
    ):
        check(
            f"one_of_three_{row}_{mean}",
            f"{column} of {row} in Table 9 can be that of one of Table 1's three runs",
            "tables 1, 9",
            t9[row, column],
            one_of_runs(t1[row, f"{mean}_mean"], t1[row, f"{mean}_std"], ledger.prose("seeds")),
            basis="other interpretation",
            refuses=refuses,
        )


def check_table_10(ledger: AuditRows) -> None:
    """The multiplier sweep."""
    check, t10 = ledger.check, ledger.table("table10")
    for column, moves, direction in (
        ("lr_multiplier", falling, "falling"),
        ("upper_entropy_3pct", rising, "rising"),
        ("upper_logit_3pct", falling, "falling"),
        ("qk_displacement_3pct", falling, "falling"),
    ):
        label, steps = f"steps of the sweep in which {column} is {direction}", exact(len(t10.rows) - 1)
        check(f"t10_{column}", label, "App G", steps, moves(t10.column(column)))
    reduced = t10.column("final_ppl", ["mult_0p5", "mult_0p25", "mult_0p125"])
    label, improved = "reduced multipliers that improve perplexity", count(reduced < t10["control", "final_ppl"])
    check("t10_improved", label, "App G", exact(len(reduced)), improved)
