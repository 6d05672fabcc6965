"""Makes a table of the paper's theorems as executable checks: what each says, what is printed, and what comes out here.

Source: premature study, section 6 and appendix B. Not a table of the paper. It needs no run.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import PRESET, Cell, Column, Table, make_printed_cell
from plumbline.specs.study_config import Study

from .. import theorem_numbers

#: Where the numbers are from.
SOURCE = "plumbline.studies.premature.theorem_numbers, at the sizes of the paper preset"

#: Rounding of float64 next to quantities of order one.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class TheoremRow:
    """One row. `drawn_value`: the same from networks that were drawn, where `computed` is a formula."""

    id: str
    says: str
    source: str
    computed: float
    holds: bool
    printed: str = NOT_PRINTED
    drawn_value: float | None = None


COLUMNS = [
    *label_columns("check", "Statement"),
    Column(name="source", header="source", kind="label"),
    number_column("computed_value", "computed", ".5g", narrow=True),
    Column(name="computed_value_published", header="computed", kind="published", format="as printed", narrow=True),
    number_column("value_random_weights", "with random weights", ".5g"),
    text_column("statement_holds", "statement holds", narrow=True),
    PRESET,
]


def theory(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each statement, at the sizes of the paper's 270M model whatever the preset."""
    rows = [
        {
            "check": Cell(row.id),
            "label": Cell(row.says),
            "source": Cell(row.source),
            "computed_value": Cell(row.computed, source=SOURCE),
            "computed_value_published": make_printed_cell(row.printed),
            "value_random_weights": Cell(
                row.drawn_value, source=SOURCE, word="" if row.drawn_value is not None else "not drawn"
            ),
            "statement_holds": Cell("yes" if row.holds else "no", source=SOURCE),
            "preset": Cell(study.preset),
        }
        for row in check_theorems(study.code, published)
    ]
    return make_table(
        "theory",
        "The theorems of section 6, checked at the sizes of the 270M model.",
        study,
        key="check",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "A share of a bound is |ΔZ_P| of one step over its bound, the largest over heads and rates: above 1 it is "
            "broken. The bound is met at a head of rank one; at drawn heads it is loose by a factor of a hundred.",
            "Theorem 3 is false as stated: Eq. 61 divides two upper bounds, and the steps themselves may be nearer to "
            "them or further below. The counterexample has equal C_t and rates, and a quarter of the energy (finding "
            "theorem_3_ratio of the audit).",
            "Theorem 3's square needs locality constants that stay; beside a mature rest the power is nearer to 3/2.",
            "Heads have no positions and no biases (interpretation theory_head).",
        ],
        published=published.format_path("claims", "yaml"),
        exact=True,
    )


def check_theorems(study: str, published: PrintedNumbers) -> list[TheoremRow]:
    """All checks."""
    these = theorem_numbers.sizes(study)
    heads = theorem_numbers.heads(these.single)
    rho, fourfold = published.claim("rho_init"), published.claim("fourfold")
    square = published.claim("rho_squared")
    shares = {
        name: theorem_numbers.largest_share(heads, name)
        for name in ("bound", "unconditional_bound", "bound_by_localisation")
    }
    sharp, multiplier = theorem_numbers.sharpest_share(these.single), float(fourfold["alpha"])
    factor = theorem_numbers.learning_rate_factor(heads, multiplier)
    alone, beside = (theorem_numbers.energy_power(heads, alone=alone) for alone in (True, False))
    least, equal = theorem_numbers.least_slack(these.single), theorem_numbers.equality_slack()
    share = "share of the bound that a step reaches"
    rows = [
        TheoremRow("theorem_1", f"Theorem 1, {share}", "Eqs. 19-20", shares["bound"], shares["bound"] <= 1),
        TheoremRow(
            "theorem_1_sharp", "the same at an aligned head of rank one", "Eqs. 19-20", sharp, abs(sharp - 1) < 1e-3
        ),
        TheoremRow("corollary_1", f"Corollary 1, {share}", "Eq. 32", *_compare_with_one(shares["unconditional_bound"])),
        TheoremRow(
            "corollary_2", f"Corollary 2, {share}", "Eqs. 34-35", *_compare_with_one(shares["bound_by_localisation"])
        ),
        TheoremRow(
            "corollary_3",
            "Corollary 3, what a multiplier leaves of a step",
            "Eq. 37",
            factor,
            abs(factor - multiplier) < 1e-4,
            printed=f"{multiplier:g}",
        ),
    ]
    for gate, name in (("gelu", "geglu"), ("silu", "swiglu")):
        single, gated, with_single, with_gated = theorem_numbers.draw_energies(these, gate)
        ratio = theorem_numbers.rho(these, gate)
        holds = abs(gated / single / ratio - 1) < 0.03
        text = f"{float(rho[name]):g}"
        rows.append(
            TheoremRow(f"theorem_2_{name}", f"Theorem 2, ρ of {name}", "Eq. 44", ratio, holds, text, gated / single)
        )
        stream = with_single - single
        contracted = (stream + ratio * single) / (stream + single)
        holds = contracted < 1 and abs(with_gated / with_single / contracted - 1) < 0.03
        says = f"Corollary 4, stream energy after {name} over that after GELU"
        rows.append(
            TheoremRow(f"corollary_4_{name}", says, "Eq. 55", contracted, holds, drawn_value=with_gated / with_single)
        )
    power, ratio = f"{square['power']:g}", max(theorem_numbers.ratio_of_steps(head) for head in heads)
    rows += [
        TheoremRow(
            "theorem_3", "Theorem 3, power of R_P, nothing but X_P", "Eq. 59", alone, abs(alone - 2) < 0.01, power
        ),
        TheoremRow(
            "theorem_3_beside", "the same beside a mature rest", "Eq. 59", beside, abs(beside - 2) < 0.01, power
        ),
        TheoremRow(
            "theorem_3_ratio",
            "Theorem 3, step at a quarter of R_P and equal C_t over ρ² times the other's: at most 1 as stated",
            "Eqs. 59-61",
            ratio,
            ratio <= 1,
        ),
        TheoremRow("logit_range", "least slack of the range of a row", "Eq. 64", least, least >= -ROUNDING),
        TheoremRow("logit_range_sharp", "slack where the other keys are alike", "Eq. 64", equal, abs(equal) < 1e-6),
    ]
    return rows


def _compare_with_one(share: float) -> tuple[float, bool]:
    return share, share <= 1
