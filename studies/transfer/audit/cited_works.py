"""Recomputes what the transfer study's paper says of the works that it cites, of its own headings and of its tables."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.audit.math_functions import largest, smallest
from plumbline.audit.repeated_numbers import check_references, check_repeats
from plumbline.audit.statistic_functions import bonferroni_survivors
from plumbline.published.printed_number import exact

#: The failures that appendix E analyses.
FAILURES = ["diff_attn", "layerscale", "hyper", "attnres", "ssmax", "sigmoid_attn"]


def audit(ledger: AuditRows) -> None:
    """Rows of sections 1 to 3, of references to tables and sections, and of repeated numbers of tables."""
    check_years(ledger)
    check_sizes(ledger)
    check_headings(ledger)
    check_references(ledger)
    check_repeats(ledger)


def check_years(ledger: AuditRows) -> None:
    """Dates of the works that the methods are taken from, as section 2.2 cites them."""
    check, prose, years = ledger.check, ledger.prose, ledger.table("cited_works").column("year").exactly()
    narang = prose("narang_year")
    check("years_later", "years since Narang et al.", "sec 1", prose("years_later"), prose("catalogue_last") - narang)
    for end, expected in (("first", smallest(years)), ("last", largest(years))):
        label = f"{end} year of the works that methods are taken from"
        check(f"catalogue_{end}", label, "title, table 1 caption", prose(f"catalogue_{end}"), expected)
    label = "works 'proposed since' Narang et al. that are older: QK-Norm's and GeGLU's"
    check("works_before", label, "sec 1, 2.2, 3.1", exact(0), count(years < narang))
    label = "works that are after 2021, of those of a 'post-2021' catalogue"
    expected = count(years > narang)
    check("works_after", label, "abstract, sec 2.2", exact(len(years)), expected, basis="other interpretation")
    # Narang et al. tried GLU, GeGLU, ReGLU, SwiGLU and LiGLU (their Table 1).
    label = "methods that are in Narang et al.'s set too, 'disjoint by construction': GeGLU"
    both = exact(1, "geglu_in_both")
    check("disjoint", label, "sec 2.1; Narang et al. 2021", exact(0), both, basis="outside source")


def check_sizes(ledger: AuditRows) -> None:
    """The size of cited work against the criterion of inclusion."""
    check, prose = ledger.check, ledger.prose
    label = "whether the largest scale that section 4.4 gives of Softpick's paper meets the criterion of inclusion"
    meets = prose("softpick_scale_m") / 1000 > prose("criterion_b")
    check("softpick_criterion", label, "sec 3.1, 4.4", exact(1), meets, basis="other interpretation")


def check_headings(ledger: AuditRows) -> None:
    """Labels of soft and hard in section 2.2's headings against those of Table 1."""
    check, t1, t2 = ledger.check, ledger.table("table1"), ledger.table("table2")
    heading, label = ledger.table("cited_works").texts("heading"), t1.texts("soft_hard")
    agree = exact(sum(label[method] == kind for method, kind in heading.items()), "agree")
    text = "attention methods that stand under their label of Table 1 in section 2.2"
    check("soft_hard_headings", text, "sec 2.2, 3.1, table 1", exact(len(heading)), agree)
    # Softpick, Sigmoid, Diff-Attn: 4.4, B.5 and E.2 say of each that its rows need not sum to one.
    text = "methods without rows that sum to one and with z > 2, of a kind that is 'not productive'"
    better = count(t2.column("z", [method for method in label if label[method] == "hard"]) > ledger.prose("z_line"))
    check("unnormalised_better", text, "sec 2.2, 4.1", exact(0), better, basis="other interpretation")
    text = "of the six degraders, those of Post-LN variance growth (HybridNorm by Table 6): at least"
    worse = count(t2.column("z", ["hybrid_norm"]) < -ledger.prose("z_line"))
    check("post_ln_degrades", text, "sec 6, table 2", exact(1), worse)
    text = "methods that significantly improve over baseline (z > 2), by appendix E.3"
    expected = count(t2.column("z") > ledger.prose("z_line"))
    printed = ledger.prose("significant_improvers_e3")
    check("significant_improvers_e3", text, "E.3", printed, expected, basis="other interpretation")
    # "Significant" is |z| > 2 in section 3.3, and what a correction leaves in 4.1 and in the limitations.
    alpha = ledger.prose("alpha")
    for name, text, methods, printed in (
        (
            "winners_e1",
            "of the two 'significant winners' of Figure 2",
            ["softpick", "qknorm"],
            "significant_winners_e1",
        ),
        ("failures_app_e", "of the six that 'significantly underperform' by Table 2", FAILURES, "degraders"),
    ):
        survivors = bonferroni_survivors(t2.column("z", methods), ledger.prose("m"), alpha)
        text += ", those that Table 2's p leaves significant"
        check(name, text, "E, E.1, table 2", ledger.prose(printed), survivors, basis="other interpretation")
    text = "of the two residual failures whose loss is said to fit their drop, those whose loss is printed"
    printed_losses = exact(sum(method in ("attnres", "layerscale") for method in ledger.table("table7").rows), "rows")
    check("losses_of_r6", text, "sec 6 R6, table 7", exact(2), printed_losses, basis="other interpretation")
    text, once = "shuffles of the data in the noise floor's runs: appendix A holds one seed fixed", exact(1, "shuffles")
    check("shuffle_seeds", text, "sec 3.3, App A", ledger.prose("shuffle_seeds"), once)
    others = exact(len(ledger.table("noise_floor").rows), "rows")
    check("noise_floor_references", "configurations of the noise floor", "sec 3.3", ledger.prose("references"), others)
    text = "configurations that the introduction gives three seeds: the baseline and the strongest modification"
    ledger.copy("references_intro", text, "sec 1, 3.3", exact(2), ledger.prose("references"))
    tasks = exact(len(ledger.table("table5").rows) - 1, "rows")
    check("tasks_rows", "tasks of the suite, in Table 5", "sec 3.4, table 5", ledger.prose("tasks"), tasks)
