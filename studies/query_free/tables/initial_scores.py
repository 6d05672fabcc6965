"""Makes the table of initial scores: how far they spread before training, as the paper derives it and as its models
start.

Source: query_free study, section 5.1 and appendix 8.2. Not a table of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import PRESET, Cell, Column, Table, make_printed_cell
from plumbline.specs.study_config import Study

from .. import theorem_checks
from ..run_values import BASELINE, IDENTITY, divisor

SOURCE = "plumbline.studies.query_free.theorem_checks, at the sizes of the paper preset"

#: The baseline, the reduced model, and the two other variants of its scale.
METHODS = (BASELINE, "wq_identity_unscaled", IDENTITY, "wq_identity_matched")

COLUMNS = [
    *label_columns("query_setting", "Scores"),
    Column(name="inputs", header="inputs", kind="label"),
    *column_pair("value_by_formula", "by the formula", ".4f", narrow=True),
    number_column("value_random_weights", "with random weights", ".4f"),
    number_column("value_first_layer", "of a first layer", ".4f", narrow=True),
    PRESET,
]


def initial_scores(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The paper's derivation, then the scores of its models, at its sizes whatever the preset."""
    rows = [*_derivation_rows(study, published), *_model_rows(study)]
    return make_table(
        "initial_scores",
        "Standard deviation of attention scores before training, at the paper's sizes.",
        study,
        key="query_setting",
        columns=COLUMNS,
        rows=[row | {"preset": Cell(study.preset)} for row in rows],
        notes=[
            "The paper derives its factor for rows of norm 1 and before the division by √d_k; behind a LayerNorm a "
            "row has the norm √d, and scores are those of the lower rows. The ratio is the same, 1 / (σ √d): it "
            "belongs to a width and a start, and is 1 at d = 2,500 for σ = 0.02.",
            "With half the scale the reduced model starts flatter than the baseline, by the tenth that rounding 1.8 to "
            "2 makes. First layers start a hundredth below the formula: LayerNorm's epsilon beside small embeddings.",
        ],
        published=published.format_path("prose"),
        exact=True,
    )


def _derivation_rows(study: Study, published: PrintedNumbers) -> Iterator[dict[str, Cell]]:
    model, prose = theorem_checks.find_model(study.code), published.prose()
    expected, measured = theorem_checks.by_formula(model), theorem_checks.draw_spread(model)
    inputs = "‖x‖ = 1, not divided"
    yield _row(
        "standard", "learned query", inputs, expected.standard, measured.standard, prose["score_std_standard"].text
    )
    yield _row("reduced", "W_Q = I", inputs, expected.reduced, measured.reduced, prose["score_std_reduced"].text)
    yield _row("ratio", "W_Q = I over learned", inputs, expected.ratio, measured.ratio, prose["score_ratio"].text)
    inverse = prose["score_ratio_inverse"].text
    yield _row("inverse", "learned over W_Q = I", inputs, 1 / expected.ratio, 1 / measured.ratio, inverse)


def _model_rows(study: Study) -> Iterator[dict[str, Cell]]:
    """What a method's first layer starts with; by the formula with rows as long as a LayerNorm makes them."""
    for method in METHODS:
        model = theorem_checks.find_model(study.code, method)
        scale, length = math.sqrt(model.head_width) * divisor(model), math.sqrt(model.width)
        learned = method == BASELINE
        expected, measured = (
            spread.divide(scale).standard if learned else spread.divide(scale).reduced
            for spread in (theorem_checks.by_formula(model, length), theorem_checks.draw_spread(model, length))
        )
        label = study.label(method) + (", scale 1/(2√d_k)" if method == IDENTITY else "")
        yield _row(method, label, "LayerNorm, divided", expected, measured, layer=theorem_checks.first_spread(model))


def _row(
    name: str,
    label: str,
    inputs: str,
    expected: float,
    measured: float,
    printed: str = "not printed",
    layer: float | None = None,
) -> dict[str, Cell]:
    word = "" if layer is not None else "no such layer"
    return {
        "query_setting": Cell(name),
        "label": Cell(label),
        "inputs": Cell(inputs),
        "value_by_formula": Cell(expected, source=SOURCE),
        "value_by_formula_published": make_printed_cell(printed),
        "value_random_weights": Cell(measured, source=SOURCE),
        "value_first_layer": Cell(layer, source=SOURCE, word=word),
    }
