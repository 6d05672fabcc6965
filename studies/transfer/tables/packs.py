"""Makes the table of the packs that all runs read, from their manifests, next to what the paper publishes of its own.

Made on request; nothing is trained for it.

Source: transfer study, appendix A: "a re-pack from the CLIMB-Mix-400B public shards reproduces our exact training
stream".
"""

from __future__ import annotations

from typing import Any

from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import column_pair, make_table, number_column, text_column
from plumbline.results.tables.table import (
    PRESET,
    Cell,
    Column,
    Table,
    list_published_cells,
    make_printed_cell,
    number_cell,
)
from plumbline.specs.study_config import Study

#: A pack here -> its row among the printed numbers; the held-out one has a claim's.
PRINTED_ROWS = {"base": "1p2b_subset", "large": "3b_superset"}
VALIDATION = "validation"

#: Our columns that are printed -> the printed file's.
PRINTED = {"shards": "shards", "sequences": "sequences", "tokens_b": "tokens_b", "discarded_pct": "discarded_pct"}

COLUMNS = [
    Column(name="pack", header="Pack", kind="label", narrow=True),
    *column_pair("shards", "shards", ",d", narrow=True),
    *column_pair("sequences", "sequences", ",d", narrow=True),
    *column_pair("tokens_b", "tokens (B)", ".4g", narrow=True),
    *column_pair("discarded_pct", "discarded (%)", ".2g", narrow=True),
    number_column("context", "tokens a sequence", "d"),
    number_column("sequences_per_shard", "sequences a shard", ",d"),
    number_column("documents", "documents begun", ",d"),
    number_column("vocabulary", "tokenizer's entries", ",d"),
    text_column("begins_largest", "is the largest pack's beginning"),
    text_column("source", "documents from"),
    text_column("tokenizer_sha256", "tokenizer SHA-256", readable=False),
    text_column("shards_sha256", "SHA-256 of its files' SHA-256", readable=False),
    PRESET,
]


def packs(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each training pack that a run reads, in the order of scales, and one for the held-out pack."""
    spec = next(iter(study.runs.values())).spec
    corpus, context = spec.data.corpus, spec.model.context
    names = list(dict.fromkeys(run.spec.data.pack for run in study.runs.values()))
    manifests = {name: frames.read_pack(corpus, context, "train", name) for name in names}
    present = [manifest for manifest in manifests.values() if manifest is not None]
    largest = max(present, key=lambda manifest: int(manifest["sequences"]), default=None)
    printed, held_out = published.table("data_packs"), str(published.claim("val_pack")["sequences"])
    rows = [
        _make_row(name, manifest, largest) | list_published_cells(printed, PRINTED_ROWS.get(name), PRINTED)
        for name, manifest in manifests.items()
    ]
    rows.append(
        _make_row(VALIDATION, frames.read_pack(corpus, context, VALIDATION, VALIDATION), None)
        | {f"{name}_published": make_printed_cell(NOT_PRINTED) for name in PRINTED}
        | {"sequences_published": make_printed_cell(held_out)}
    )
    return make_table(
        "packs",
        f"What the runs read: packs of the corpus {corpus}.",
        study,
        key="pack",
        columns=COLUMNS,
        rows=[row | {"preset": Cell(study.preset_named)} for row in rows],
        notes=[
            "Discarded: the end of all tokens that fills no sequence; whole sequences beyond a pack's size are not "
            "counted. The paper publishes of its tokenizer a reference, and of its sequences no checksum: that these "
            "are the same ones cannot be checked.",
            "Printed: Appendix A. Every file of a pack is named with its SHA-256 in the pack's manifest, by which a "
            "run refuses other bytes.",
        ],
        published=published.format_path("data_packs"),
    )


def _make_row(name: str, manifest: dict[str, Any] | None, largest: dict[str, Any] | None) -> dict[str, Cell]:
    """Make a pack's own cells: of its manifest, or a word."""
    numbers = ("shards", "sequences", "tokens_b", "discarded_pct", "context", "sequences_per_shard", "documents")
    texts = ("begins_largest", "source", "tokenizer_sha256", "shards_sha256")
    if manifest is None:
        return (
            {"pack": Cell(name)}
            | {column: number_cell(None, MISSING) for column in (*numbers, "vocabulary")}
            | {column: Cell(MISSING) for column in texts}
        )
    values = {column: manifest[column] for column in ("sequences", "context", "sequences_per_shard", "documents")}
    values |= {"shards": len(manifest["shards"]), "tokens_b": manifest["tokens"] / 1e9}
    values |= {"discarded_pct": 100 * manifest["discarded"]["tokens"] / manifest["available"]["tokens"]}
    values |= {"vocabulary": manifest["vocabulary"]}
    begins = "no training pack" if largest is None else "yes" if _begins(manifest, largest) else "no"
    words = {
        "begins_largest": begins,
        "source": manifest["corpus"]["source"],
        "tokenizer_sha256": manifest["tokenizer_sha256"],
        "shards_sha256": sha256_text(canonical_json(_list_checksums(manifest))),
    }
    source = f"the manifest of the pack {name}, {manifest['split']} side"
    return {"pack": Cell(name)} | {column: Cell(value, source=source) for column, value in (values | words).items()}


def _begins(manifest: dict[str, Any], largest: dict[str, Any]) -> bool:
    """Whether a pack's shards are the first ones of another: by their checksums, that of its last one included."""
    ours, theirs = _list_checksums(manifest), _list_checksums(largest)
    return theirs[: len(ours)] == ours and int(manifest["sequences"]) <= int(largest["sequences"])


def _list_checksums(manifest: dict[str, Any]) -> list[str]:
    """List the SHA-256 of a pack's files, in their order."""
    return [str(shard["sha256"]) for shard in manifest["shards"]]
