"""Validation loss of each width beside the printed one, the norm of its keys at the end, and what a width stretches."""

from __future__ import annotations

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context_cells,
    list_published_cells,
    make_published_column,
    missing_word,
    number_cell,
)
from plumbline.specs.study_config import Study

from ..scale import SCALE

COLUMNS = [
    Column(name="method", header="Method", kind="label", narrow=True),
    Column(name="loss", header="loss", kind="reproduced", format=".4f", narrow=True),
    make_published_column("loss", "loss", narrow=True),
    Column(name="key_norm", header="key norm", kind="reproduced", format=".3f"),
    Column(name="stretch", header="stretch", kind="reproduced", format=".2f"),
    *CONTEXT[:2],
]


def losses(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each width."""
    printed, rows = published.table("losses"), []
    measured = frames.read_measurement("stretch")
    largest = {} if measured is None else dict(measured[["width", "largest"]].itertuples(index=False))
    for method in study.methods:
        runs = frames.select(SCALE, [method])
        own, word = tuple(runs.index), missing_word(runs["outcome"])
        last = frames.probes[(frames.probes["method"] == method) & (frames.probes["fraction"] == 1.0)]
        norms = last[(last["probe"] == "key_norm") & (last["source"] == "offline")]["value"]
        row = {"method": Cell(method), "loss": number_cell(runs["validation_loss"].iloc[0], word, own)}
        row |= {"key_norm": number_cell(float(norms.mean()), word, own)}
        width = next(run.spec.model.ffn_width for run in study.runs.values() if run.spec.method == method)
        row |= {"stretch": number_cell(largest.get(width), MISSING, [frames.find_measurement_key("stretch")])}
        rows.append(row | list_published_cells(printed, method, {"loss": "loss"}) | context_cells(study, SCALE))
    return Table(
        name="losses",
        title="Loss by width.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        published=published.format_path("losses"),
    )
