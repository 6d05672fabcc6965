"""Makes Table 1: what each result covers, as printed, next to its numerical check, with its premises and without
each of them.

Source: query_free study, Table 1; sections 4.1 to 4.4 and 6, appendices 8.3 to 8.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import make_table, number_column, text_column
from plumbline.results.tables.table import PRESET, Cell, Column, Table
from plumbline.specs.study_config import Study

from .. import theorem_checks
from ..theory.theorem_check import FAILURE, ROUNDING, TheoremCheck

SOURCE = "plumbline.studies.query_free.theorem_checks, on random weights"

#: Words of the printed table, as it spells them.
SIGNS = {
    "yes": "✓",
    "no": "×",
    "indep": "Indep.",
    "post_training_yes_during_training_no": "✓ post-training, × during training",
}

#: Sections whose row is of an experiment -> where that is.
ELSEWHERE = {"8.4": "figure 2", "5.1": "table 2"}

#: Why a row without a check has no residual.
NO_ROW = "no row"

#: Columns of the printed table between its section and its end -> their headers here.
PREMISES = {
    "normalization": "norm",
    "skip_connections": "skips",
    "multihead": "heads",
    "multi_layer": "layers",
    "weight_decay": "weight decay",
}

COLUMNS = [
    Column(name="check", header="Result", kind="label", readable=False, narrow=True),
    Column(name="label", header="Result", kind="label", once=True),
    Column(name="section", header="section", kind="label", once=True),
    Column(name="source", header="source", kind="label", once=True),
    Column(name="premise_removed", header="premise removed", kind="label"),
    number_column("relative_residual", "relative residual", ".1e", narrow=True),
    text_column("verdict", "outputs are", narrow=True),
    *(Column(name=f"covers_{name}_published", header=header, kind="published") for name, header in PREMISES.items()),
    Column(name="checked_on", header="checked on", kind="fact", readable=False),
    PRESET,
]
#: A paper has room for all that people read, but where a statement stands.
COLUMNS = [replace(column, paper=column.readable and column.name != "source") for column in COLUMNS]


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The printed rows in order, each with the statements of its section; then those that have no row."""
    printed = published.table("table1", key="section")
    checks = list(theorem_checks.theorems().values())
    rows: list[dict[str, Cell]] = []
    for section, row in printed.iterrows():
        covers = {name: _sign(row[name]) for name in PREMISES}
        mine = [check for check in checks if check.section == section]
        for check in mine:
            rows += _rows(check, covers)
        if not mine:
            rows.append(_make_row_of_other_target(str(section), row["result_type"], covers))
    for check in checks:
        if check.section not in printed.index:
            rows += _rows(check, dict.fromkeys(PREMISES, NO_ROW))
    return make_table(
        "table1",
        "What each result covers, and its check on random weights.",
        study,
        key="check",
        columns=COLUMNS,
        rows=[row | {"preset": Cell(study.preset)} for row in rows],
        notes=[
            "A residual is |found - stated| / |stated| of outputs in float64: the largest over shapes and seeds with "
            f"all premises kept (equal: at most {ROUNDING:g}), the smallest without the one that is named (apart: at "
            f"least {FAILURE:g}). It is the same at every preset; no model is trained for it.",
            "Sections, not theorems, name the printed rows: 4.1 holds Propositions 4.1 (one head) and 4.2 (several), "
            "4.2 to 4.4 hold Theorems 4.1 to 4.3 (interpretation table_1_rows).",
        ],
        published=published.format_path("table1"),
        exact=True,
    )


def _sign(word: str) -> str:
    return SIGNS.get(word, word.replace("_", " "))


def _rows(check: TheoremCheck, covers: dict[str, str]) -> Iterator[dict[str, Cell]]:
    """One row with all premises, and one without each."""
    holds = check.residual <= check.tolerance
    yield _row(check.id, check, "", check.residual, "equal" if holds else "NOT EQUAL", covers)
    for number, broken in enumerate(check.broken, 1):
        verdict = "apart" if broken.fails else "NOT APART"
        nothing = dict.fromkeys(PREMISES, "")
        yield _row(f"{check.id}_without_{number}", check, broken.premise, broken.residual, verdict, nothing)


def _row(
    name: str, check: TheoremCheck, without: str, residual: float, verdict: str, covers: dict[str, str]
) -> dict[str, Cell]:
    cells = {
        "check": Cell(name),
        "label": Cell(check.statement),
        "section": Cell(check.section),
        "source": Cell(check.source),
        "premise_removed": Cell(without),
        "relative_residual": Cell(residual, source=SOURCE),
        "verdict": Cell(verdict, source=SOURCE),
        "checked_on": Cell(check.tried),
    }
    return cells | {f"covers_{premise}_published": Cell(covers[premise]) for premise in PREMISES}


def _make_row_of_other_target(section: str, kind: str, covers: dict[str, str]) -> dict[str, Cell]:
    """A printed row of an experiment, which another target is about."""
    where = ELSEWHERE.get(section, "not checked")
    cells = {"check": Cell(f"section_{section.replace('.', '_')}"), "label": Cell(f"{kind}, see {where}")}
    cells |= {"section": Cell(section), "source": Cell(f"sec {section}"), "premise_removed": Cell("")}
    cells |= {"relative_residual": Cell(None, word=where), "verdict": Cell(""), "checked_on": Cell("")}
    return cells | {f"covers_{premise}_published": Cell(covers[premise]) for premise in PREMISES}
