"""A table's four files: tidy csv, md, tex, and where each cell comes from. Each is written whole or not at all."""

from __future__ import annotations

import csv
import io
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.files import atomic_write_json, atomic_write_text, canonical_json, sha256_file, sha256_text
from plumbline.results.runs import RunFrames
from plumbline.results.table import Column, Table

#: Manifest entries that a provenance file repeats for each run.
FACTS = ("git_commit", "git_dirty", "data_fingerprint", "validation_fingerprint", "device", "packages")

#: What a kind of column is called where two kinds stand side by side.
KINDS = {"reproduced": "reproduced", "published": "published"}

TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "^": r"\textasciicircum{}", "<": r"$<$"}
TEX |= {">": r"$>$", "Δ": r"$\Delta$", "σ": r"$\sigma$", "−": "$-$", "√": r"$\surd$", "ρ": r"$\rho$", "±": r"$\pm$"}
TEX |= {"→": r"$\to$", "≤": r"$\le$", "×": r"$\times$", "²": "$^2$", "\\": r"\textbackslash{}"}


def write(table: Table, frames: RunFrames, out: str | Path) -> list[Path]:
    """Write `out` (csv) and, beside it, md, tex and provenance.json; returns the paths."""
    out = Path(out)
    paths = [out, out.with_suffix(".md"), out.with_suffix(".tex"), out.with_suffix(".provenance.json")]
    text = to_csv(table)
    atomic_write_text(paths[1], to_markdown(table))
    atomic_write_text(paths[2], to_tex(table))
    atomic_write_json(paths[3], provenance(table, frames, text))
    atomic_write_text(out, text)
    return paths


def plain_value(value: Any) -> str:
    """A csv cell: floats in full, an underflowed probability or any word as text."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def to_csv(table: Table) -> str:
    """All columns, numbers in full precision, words where there is no number."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_cell(column, row[column.name].value) for column in table.columns])
    return stream.getvalue()


def _csv_cell(column: Column, value: Any) -> str:
    # A p of zero is an underflow: its bound is what is known.
    if isinstance(value, float) and value == 0 and column.show(value).startswith("<"):
        return column.show(value)
    return plain_value(value)


def headers(table: Table) -> list[str]:
    """Readable headers: whose number it is, where the document has one beside ours."""
    shown = [column for column in table.columns if column.readable]
    both = {column.header for column in shown if column.kind == "published"}
    return [
        f"{column.header} ({KINDS[column.kind]})" if column.header in both and column.kind in KINDS else column.header
        for column in shown
    ]


def to_markdown(table: Table) -> str:
    """The readable columns as a Markdown table under its title, over its notes."""
    shown = [column for column in table.columns if column.readable]
    lines = [f"# {table.title}", "", f"Preset: {table.preset}", ""]
    lines.append("| " + " | ".join(headers(table)) + " |")
    lines.append("|" + "|".join(" --- " if column.kind == "label" else " ---: " for column in shown) + "|")
    for row in table.rows:
        cells = [column.show(row[column.name].value).replace("|", r"\|") for column in shown]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"- {note}" for note in table.notes)]) + "\n"


def tex(text: str) -> str:
    """A text with TeX's special characters written out."""
    return "".join(TEX.get(character, character) for character in text.replace("^2", "²"))


def to_tex(table: Table) -> str:
    """A booktabs table; the caption carries title, preset and notes."""
    shown = [column for column in table.columns if column.readable]
    align = "".join("l" if column.kind == "label" else "r" for column in shown)
    body = [" & ".join(tex(column.show(row[column.name].value)) for column in shown) + r" \\" for row in table.rows]
    caption = " ".join([table.title, *table.notes])
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage{graphicx}",
        r"\begin{table}",
        r"\centering",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(tex(header) for header in headers(table)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{tex(caption)}}}",
        rf"\label{{tab:{table.study}-{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def provenance(table: Table, frames: RunFrames, csv_text: str) -> dict[str, Any]:
    """Each cell's runs, and of each run its id, files and the manifest's facts."""
    cells = {
        str(row[table.key].value): {name: list(cell.runs) for name, cell in row.items() if cell.runs}
        for row in table.rows
    }
    sources = {
        str(row[table.key].value): {name: cell.source for name, cell in row.items() if cell.source}
        for row in table.rows
    }
    used = sorted({key for row in cells.values() for runs in row.values() for key in runs})
    return {
        "table": table.name,
        "study": table.study,
        "preset": table.preset,
        "key": table.key,
        "csv_sha256": sha256_text(csv_text),
        "published": table.published,
        "work": frames.work.as_posix(),
        "made_with": {name: version(name) for name in ("numpy", "pandas", "scipy", "statsmodels")},
        "cells": cells,
        "sources": {row: named for row, named in sources.items() if named},
        "runs": {key: run_facts(frames, key) for key in used},
    }


def run_facts(frames: RunFrames, key: str) -> dict[str, Any]:
    """What a provenance file says of one run."""
    facts: dict[str, Any] = {name: frames.runs.loc[key, name] for name in ("run_id", "outcome")}
    manifest = frames.manifests.get(key)
    if manifest is None:
        return facts
    facts["manifest"] = (frames.work / "runs" / key / "manifest.json").as_posix()
    scores = frames.work / "scores" / key / "scores.parquet"
    if scores.exists():
        facts |= {"scores": scores.as_posix(), "scores_sha256": sha256_file(scores)}
    facts["spec_sha256"] = sha256_text(canonical_json(manifest["spec"]))
    return facts | {name: manifest[name] for name in FACTS if name in manifest}
