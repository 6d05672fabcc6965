"""Makes the table of the cache: what decoding remembers of a token, in each kind of attention.

Source: quack study, Mechanism 3: QK norm needs each token's keys, latent attention keeps latents. Not a table of the
summary. It needs no run; caches are those of the models at the summary's size, whatever the preset.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import PRESET, Cell, Table
from plumbline.specs.study_config import Study

from .. import decoding_memory
from ..run_grid import ATTENTION

#: Where the numbers are from.
SOURCE = "plumbline.studies.quack.decoding_memory, at the sizes of the paper preset"

COLUMNS = [
    *label_columns("cached_state", "Cached of a token"),
    number_column("values_per_layer", "values a layer", ",.0f", narrow=True),
    number_column("bytes_per_token", "bytes (bfloat16)", ",.0f", narrow=True),
    number_column("ratio_to_mha", "ratio to MHA's", ".4f", narrow=True),
    text_column("used_in_our_cache", "in our cache", narrow=True),
    text_column("qk_norm_support", "QK norm"),
    PRESET,
]


def cache(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Multi-head attention; latent attention as it is decoded here; the same with keys and values of every head."""
    paper = decoding_memory.paper(study.code)
    mha, mla = (decoding_memory.find_model(paper, scale) for scale in ("mha", "mla"))
    whole, reason = decoding_memory.count_cached_bytes(mha), decoding_memory.explain_refusal(paper, "mla")
    takes = {
        scale: "refused" if decoding_memory.explain_refusal(paper, scale) else "possible" for scale in ("mha", "mla")
    }
    sizes = [
        ("mha", "keys and values", mha, whole, takes["mha"]),
        ("mla", "latents and rotary keys", mla, decoding_memory.count_cached_bytes(mla), takes["mla"]),
        (
            "mla_materialised",
            "all keys and values",
            mla,
            decoding_memory.count_materialised_bytes(mla),
            "would need these",
        ),
    ]
    rows = [
        {
            "cached_state": Cell(name),
            "label": Cell(f"{ATTENTION[name.partition('_')[0]]}: {label}"),
            "values_per_layer": Cell(size / decoding_memory.BFLOAT16 / model.layers, source=SOURCE),
            "bytes_per_token": Cell(size, source=SOURCE),
            "ratio_to_mha": Cell(size / whole, source=SOURCE),
            "used_in_our_cache": Cell("no" if name == "mla_materialised" else "yes", source=SOURCE),
            "qk_norm_support": Cell(norm, source=SOURCE),
            "preset": Cell(study.preset),
        }
        for name, label, model, size, norm in sizes
    ]
    notes = [f"QK norm on latent attention is refused here: {reason}."] if reason else []
    return make_table(
        "cache",
        "What decoding remembers of a token at the summary's size.",
        study,
        key="cached_state",
        columns=COLUMNS,
        rows=rows,
        notes=[*notes, "Rates of QuacK are by weights alone: it asks nothing of a model that is decoded."],
        exact=True,
    )
