"""Writes and reads the file next to a table that records how to read it and where each cell comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import canonical_json, parse_json, sha256_file, sha256_text
from plumbline.core.package_version import version
from plumbline.results.measurements import measurement_file

if TYPE_CHECKING:  # a finished table is shown and traced without loading what makes one
    from plumbline.results.runs.finished_runs import RunFrames
    from plumbline.results.tables.table import Cell, Column, Table

#: Manifest entries that a provenance file repeats for each run.
FACTS = ("git_commit", "git_dirty", "data_fingerprint", "validation_fingerprint", "device", "packages")

#: Facts of a measurement that a provenance file repeats.
MEASURED_FACTS = ("fingerprint", "options", "seconds", "git_commit", "git_dirty", "host", "device_name", "packages")

#: Kinds of columns that are named where two of them stand side by side.
KINDS = ("reproduced", "published")


def map_headings(columns: list[Column]) -> dict[str, str]:
    """Map each column's name to its heading for people, which names the kind (reproduced, published) if both kinds
    stand side by side.
    """
    published_headers = {column.header for column in columns if column.kind == "published" and column.readable}
    return {
        column.name: f"{column.header} ({column.kind})"
        if column.header in published_headers and column.kind in KINDS
        else column.header
        for column in columns
    }


def collect_provenance(table: Table, frames: RunFrames, csv_text: str) -> dict[str, Any]:
    """Collect the content of a provenance file: how to read the csv, and where each cell comes from.

    It has columns, why cells are empty, warnings and notes; each cell's runs; and of each run its id, files and the
    manifest's facts.
    """
    headings_by_name = map_headings(table.columns)
    cells = _map_cells(table, lambda row, column: list(row[column.name].runs))
    run_keys = sorted({key for row in cells.values() for runs in row.values() for key in runs})
    return {
        "table": table.name,
        "title": table.title,
        "study": table.study,
        "paper": str(table.paper or ""),
        "preset": table.preset,
        "key": table.key,
        "columns": [
            {
                "name": column.name,
                "header": column.header,
                "heading": headings_by_name[column.name],
                "kind": column.kind,
                "format": column.format,
                "shown_in_markdown": column.readable,
                "shown_in_terminal": column.narrow,
                "shown_in_tex": column.paper,
                "sd_column": column.noise,
                "hide_repeats": column.once,
            }
            for column in table.columns
        ],
        "paper_columns": [
            {
                "heading": column.heading,
                "numeric": column.numeric,
                "names": list(column.names),
                "cells": {key: [cell.text, cell.printed, cell.bold] for key, cell in column.cells.items()},
            }
            for column in table.paper_columns
        ],
        **({"transposed": True} if table.transposed else {}),
        "warnings": table.warnings,
        "notes": table.notes,
        "interpretations": table.interpretations,
        "runs_of_other_specs": table.others,
        "csv_sha256": sha256_text(csv_text),
        "published": table.published,
        "work": frames.named,
        "made_with": {name: version(name) for name in ("numpy", "pandas", "scipy")},
        "cells": cells,
        "sources": _map_cells(table, lambda row, column: row[column.name].source),
        "why_empty": _map_cells(table, table.word),
        "runs": {key: collect_run_facts(frames, key) for key in run_keys},
    }


def _map_cells(table: Table, read_cell: Callable[[dict[str, Cell], Column], Any]) -> dict[str, dict[str, Any]]:
    """Map row -> column -> what `read_cell` returns of a cell, without the empty values."""
    return {
        str(row[table.key].value): {column.name: value for column in table.columns if (value := read_cell(row, column))}
        for row in table.rows
    }


def collect_run_facts(frames: RunFrames, key: str) -> dict[str, Any]:
    """Collect the facts that a provenance file has on one run, or on one measurement."""
    if measurement_file.is_key(key):
        return _collect_measurement_facts(frames, key)
    facts: dict[str, Any] = {name: frames.runs.loc[key, name] for name in ("run_id", "outcome")}
    manifest = frames.manifests.get(key)
    if manifest is None:
        return facts
    facts["manifest"] = f"{frames.named}/runs/{key}/manifest.json"
    for name, folder in {"scores": "scores", "probes": "probes", "examples": "scores"}.items():
        if name not in frames.read:
            continue
        file = f"{folder}/{frames.scores_key(key) if folder == 'scores' else key}/{name}.parquet"
        path = frames.work / file
        if path.exists():
            facts |= {name: f"{frames.named}/{file}", f"{name}_sha256": sha256_file(path)}
    facts["texts"] = manifest["spec"]["data"]["source"]
    facts["spec_sha256"] = sha256_text(canonical_json(manifest["spec"]))
    return facts | {name: manifest[name] for name in FACTS if name in manifest}


def _collect_measurement_facts(frames: RunFrames, key: str) -> dict[str, Any]:
    path = measurement_file.frame_path(frames.work, key)
    if not path.exists():
        return {"outcome": "missing"}
    record = measurement_file.read_facts(path)
    facts = {
        "outcome": "measured",
        "frame": measurement_file.frame_path(Path(frames.named), key).as_posix(),
        "frame_sha256": record["frame_sha256"],
    }
    return facts | {name: record[name] for name in MEASURED_FACTS if name in record}


def read(table: Path) -> dict[str, Any]:
    """Read the provenance of a table's csv, which lies next to it.

    Raises:
        PlumblineError: there is no table, no provenance, or one of another state of the table or that was edited.
    """
    if table.suffix != ".csv" or table.is_dir():
        raise PlumblineError(f"{table} is no table; name the csv of one, such as results/table2.csv")
    if not table.exists():
        raise PlumblineError(f"there is no table {table}{_suggest_table(table)}")
    path = provenance_path(table)
    if not path.exists():
        raise PlumblineError(f"there is no {path}, so the origin of {table} is unknown; make the table again")
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        made_from = content["csv_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path} does not say where numbers came from ({error}); make the table again") from error
    fingerprint_file.require_sealed(path, content, "make the table again")
    if made_from != sha256_file(table):
        raise PlumblineError(f"{path} belongs to another state of {table}; make the table again")
    return content


def _suggest_table(table: Path) -> str:
    """Suggest what to do about a missing table, as the end of a message."""
    names = [path.as_posix().removesuffix(".provenance.json") for path in Path("results").glob("**/*.provenance.json")]
    if suggestion := nearest(table.as_posix(), [f"{name}.csv" for name in names]):
        return suggestion
    if table.parts[:1] == ("results",):
        return f"; make it first: snakemake {table}"
    return (
        "; plumbline ls targets lists those that can be made, such as results/table2.csv (snakemake results/table2.csv)"
    )


def provenance_path(table: Path) -> Path:
    """Return the file next to a table's csv that holds its provenance."""
    return table.with_suffix(".provenance.json")
