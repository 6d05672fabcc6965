"""Cache: what decoding remembers of a token, in each kind of attention.

Source: quack study, Mechanism 3: QK norm needs each token's keys, latent attention keeps latents. Not a table of the
document. It needs no run; caches are those of the models at the document's size, whatever the preset.
"""

from __future__ import annotations

from plumbline.results.published import Published
from plumbline.results.runs import RunFrames
from plumbline.results.table import Cell, Column, Table
from plumbline.specs.sheet import Study
from plumbline.studies.quack import memory
from plumbline.studies.quack.layout import attention, finished, labels, ours

#: Where the numbers are from.
SOURCE = "plumbline.studies.quack.memory, at the sizes of the paper preset"

COLUMNS = [
    *labels("row", "What is remembered"),
    ours("numbers", "numbers a token and layer", ",.0f", narrow=True),
    ours("bytes", "bytes a token (bfloat16)", ",.0f", narrow=True),
    ours("ratio", "of MHA's", ".4f", narrow=True),
    Column(name="cached", header="is in our cache", kind="reproduced", narrow=True),
    Column(name="qk_norm", header="QK norm", kind="reproduced"),
    Column(name="preset", header="preset", kind="fact", readable=False),
]


def cache(frames: RunFrames, study: Study, published: Published) -> Table:
    """Multi-head attention; latent attention as it is decoded here; the same with keys and values of every head."""
    paper = memory.paper(study.code)
    mha, mla = (memory.model_of(paper, scale) for scale in ("mha", "mla"))
    whole = memory.remembered(mha)
    refused = {scale: memory.refused(paper, scale) for scale in ("mha", "mla")}
    sizes = [
        ("mha", f"{attention('mha')}: keys and values", mha, whole, True, "possible" if not refused["mha"] else "refused"),
        ("mla", f"{attention('mla')}: latents and rotary keys", mla, memory.remembered(mla), True, "refused" if refused["mla"] else "possible"),
        ("mla_materialised", f"{attention('mla')}: keys and values of all heads", mla, memory.materialised(mla), False, "needs these"),
    ]  # fmt: skip
    rows = [
        {
            "row": Cell(name),
            "label": Cell(label),
            "numbers": Cell(size / memory.BFLOAT16 / model.layers, source=SOURCE),
            "bytes": Cell(size, source=SOURCE),
            "ratio": Cell(size / whole, source=SOURCE),
            "cached": Cell("yes" if cached else "no", source=SOURCE),
            "qk_norm": Cell(norm, source=SOURCE),
            "preset": Cell(study.preset),
        }
        for name, label, model, size, cached, norm in sizes
    ]
    notes = [f"QK norm on latent attention is refused here: {refused['mla']}."] if refused["mla"] else []
    return finished(
        "cache",
        "What decoding remembers of a token at the document's size.",
        study,
        key="row",
        columns=COLUMNS,
        rows=rows,
        notes=[*notes, "Rates of QuacK are by weights alone: it asks nothing of a model that is decoded."],
    )
