"""Validation loss of each width beside the printed one, and the norm of its keys at the end."""

from __future__ import annotations

from plumbline.results.published import Published
from plumbline.results.runs import RunFrames
from plumbline.results.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    absent,
    context,
    number,
    printed_cells,
    published_column,
)
from plumbline.specs.sheet import Study

COLUMNS = [
    Column(name="method", header="Method", kind="label", narrow=True),
    Column(name="loss", header="loss", kind="reproduced", format=".4f", narrow=True),
    published_column("loss", "loss", narrow=True),
    Column(name="key_norm", header="key norm", kind="reproduced", format=".3f"),
    *CONTEXT[:2],
]


def losses(frames: RunFrames, study: Study, published: Published) -> Table:
    """One row for each width."""
    printed, rows = published.table("losses"), []
    for method in study.methods:
        runs = frames.select("tiny", [method])
        own, word = tuple(runs.index), absent(runs["outcome"])
        last = frames.probes[(frames.probes["method"] == method) & (frames.probes["fraction"] == 1.0)]
        norms = last[(last["probe"] == "key_norm") & (last["source"] == "offline")]["value"]
        row = {"method": Cell(method), "loss": number(runs["validation_loss"].iloc[0], word, own)}
        row |= {"key_norm": number(float(norms.mean()), word, own)}
        rows.append(row | printed_cells(printed, method, {"loss": "loss"}) | context(study, "tiny"))
    return Table(
        name="losses",
        title="Loss by width.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        published=published.shown("losses"),
    )
