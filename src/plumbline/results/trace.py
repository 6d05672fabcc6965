"""``python -m plumbline.results.trace TABLE.csv ROW COLUMN``: from a number in a table to the runs that gave it."""

from __future__ import annotations

import argparse
import csv
import difflib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.cli import PlumblineError, run
from plumbline.files import canonical_json, sha256_file, sha256_text

#: What is printed of a manifest, in this order.
FACTS = ("git_commit", "git_dirty", "data_fingerprint", "validation_fingerprint", "host", "device", "wall_seconds")
FACTS += ("attempts", "resumed_from", "started", "finished", "packages")


def trace(table: Path, row: str, column: str) -> str:
    """The cell's value and its ancestry, as text.

    Raises:
        PlumblineError: no such table, row or column, or no provenance file beside the table.
    """
    if not table.exists():
        raise PlumblineError(f"there is no table {table}; make it first (for instance snakemake {table})")
    provenance, place = _provenance(table)
    with open(table, encoding="utf-8", newline="") as handle:
        rows = {cells[provenance["key"]]: cells for cells in csv.DictReader(handle)}
    if row not in rows:
        raise PlumblineError(f"{table}: no row {row!r}{_hint(row, list(rows))}")
    if column not in rows[row]:
        raise PlumblineError(f"{table}: no column {column!r}{_hint(column, list(rows[row]))}")
    lines = [
        f"{provenance['study']} {provenance['table']}, row {row}, column {column}: {rows[row][column]}",
        f"  preset {provenance['preset']}; table {table}; provenance {place}",
    ]
    keys = provenance["cells"].get(row, {}).get(column, [])
    source = provenance["sources"].get(row, {}).get(column)
    if source:
        lines.append(f"  from {source}")
    elif column.endswith("_published"):
        lines.append(f"  as printed; see {provenance['published']}")
    elif not keys:
        lines.append("  not measured: this cell comes from no run")
    for key in keys:
        lines += ["", *_run(key, provenance["runs"][key])]
    return "\n".join(lines)


def _provenance(table: Path) -> tuple[dict[str, Any], Path]:
    """The provenance file beside the table, or of the study whose table this is a copy of."""
    beside = table.with_suffix(".provenance.json")
    places = [beside, *sorted(table.parent.glob(f"*/{beside.name}"))]
    sha256 = sha256_file(table)
    for place in places:
        if place.exists():
            content = json.loads(place.read_text(encoding="utf-8"))
            if content["csv_sha256"] == sha256:
                return content, place
    if beside.exists():
        raise PlumblineError(f"{beside} belongs to another state of {table}; make the table again")
    raise PlumblineError(f"there is no {beside}; make the table again")


def _hint(given: str, known: list[str]) -> str:
    close = difflib.get_close_matches(given, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f" (there are {known})"


def _run(key: str, facts: dict[str, Any]) -> list[str]:
    lines = [f"run {facts['run_id']}  {key}  {facts['outcome']}"]
    if "manifest" not in facts:
        return [*lines, "  no manifest: this run is not there"]
    lines.append(f"  spec sha256      {facts['spec_sha256']}")
    path = Path(facts["manifest"])
    lines.append(f"  manifest         {path}")
    if not path.exists():
        return [*lines, "  (the manifest is not on this machine; what the table recorded:)", *_show(facts)]
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if sha256_text(canonical_json(manifest["spec"])) != facts["spec_sha256"]:
        lines.append("  CHANGED since the table was made: the manifest's spec is another one")
    return [*lines, *_show(manifest), *_scores(facts)]


def _show(facts: dict[str, Any]) -> list[str]:
    shown = []
    for name in FACTS:
        if name in facts:
            value = facts[name]
            if isinstance(value, dict):
                value = ", ".join(f"{package} {version}" for package, version in sorted(value.items()))
            shown.append(f"  {name.replace('_', ' '):<16} {value}")
    return shown


def _scores(facts: dict[str, Any]) -> list[str]:
    if "scores" not in facts:
        return ["  scores           none"]
    path = Path(facts["scores"])
    lines = [f"  scores           {path}"]
    if not path.exists():
        return [*lines, "  (not on this machine)"]
    if sha256_file(path) != facts["scores_sha256"]:
        lines.append("  CHANGED since the table was made")
    for score in pq.read_table(path).to_pylist():
        if score["primary"]:
            lines.append(
                f"    {score['task']:<16} {score['metric']:<10} {score['value']:.4f}  "
                f"{score['items']} items, {score['task_source']}"
            )
    return lines


def main() -> None:
    """Trace one cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="a table's csv, such as results/table2.csv")
    parser.add_argument("row", help="value of the table's first column, such as softpick")
    parser.add_argument("column", help="name of a column, such as climb_avg")
    given = parser.parse_args()
    print(trace(given.table, given.row, given.column))


if __name__ == "__main__":
    run(main)
