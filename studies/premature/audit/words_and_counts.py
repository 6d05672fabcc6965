"""Recomputes what premature's sentences count, order, define and refer to."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import count
from plumbline.audit.repeated_numbers import check_references, check_repeats
from plumbline.published.printed_number import exact

from .named_functions import possible_wins

#: Networks of Table 3 with gated layers.
GATED = ["gpt_swiglu", "llama_layernorm", "llama"]


def audit(ledger: AuditRows) -> None:
    """Rows of sections 3, 4, 5.2 and 5.4, references to sections, corollaries and tables, and repeated numbers."""
    check, prose, t2, t4 = ledger.check, ledger.prose, ledger.table("table2"), ledger.table("table4")
    tasks = [task for task in t2.rows if task != "mean"]
    label = "pairs won, of those that means and sd of three paired differences allow"
    won = possible_wins(t2.column("delta_pp_mean", tasks), t2.column("delta_pp_std", tasks))
    check("wins", label, "sec 5.2, table 2", prose("wins"), won, refuses="18")
    label = "GEGLU suppresses the gain at least as strongly as SwiGLU"
    stronger = t4["gpt_geglu", "ppl_reduction"] < t4["gpt_swiglu", "ppl_reduction"]
    check("geglu_suppresses", label, "sec 3, table 4", exact(1), stronger)
    check_sharpness(ledger)
    # W_Q and W_K are d x d_k by Eq. 13: W_Q^t W_K is d_k x d_k, the bilinear form B = W_Q W_K^t is d x d.
    label = "rows of W_Q^t W_K by Eq. 13, said to be the bilinear form, which has as many as the stream is wide"
    check("bilinear_rows", label, "sec 2, 5.4, fig 3, App G", prose("width"), prose("width") / prose("heads"))
    label = "feed-forward width at 0.7B: four times the width, as at 270M"
    ratio = prose("ffn_single") / prose("width")
    ffn = ratio * prose("width_0p7b")
    check("ffn_0p7b", label, "sec 4, App H", prose("ffn_0p7b"), ffn, basis="other interpretation")
    # Corollary 1 has the rates in its bound as well; the sweep's factor is Corollary 3's.
    check_references(ledger, other_interpretation=["learning_rate_app_g"])
    check_repeats(ledger)


def check_sharpness(ledger: AuditRows) -> None:
    """What Figure 3 calls sharp and mature, against section 1 and the entropies of other networks.

    The intervention's upper half becomes sharp at 20 %: the threshold is no lower than its entropy there, which
    appendix E prints of one of its runs.
    """
    check, prose, t3, t4 = ledger.check, ledger.prose, ledger.table("table3"), ledger.table("table4")
    label = "whether the control's upper half is sharp before its lower half is mature, by Figure 3"
    before = prose("upper_sharp_pct") < prose("lower_mature_pct")
    check("sharp_before_mature", label, "abstract, sec 1, fig 3", exact(1), before, basis="other interpretation")
    label = "gated networks that are sharp at 3 % by the entropy at which the intervention becomes so"
    entropies = [*t3.column("entropy_3pct", GATED), t4["gpt_geglu", "upper_entropy_3pct"]]
    sharp = count([entropy < prose("selective_entropy_20pct") for entropy in entropies])
    check("gated_sharp", label, "fig 3, tables 3, 4, App B.4, E", exact(0), sharp, basis="other interpretation")
