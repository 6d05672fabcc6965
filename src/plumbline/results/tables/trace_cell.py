"""Finds the runs behind a number in a table: ``plumbline trace TABLE.csv ROW COLUMN``."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.core import run_files
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, nearest, visible
from plumbline.core.files import canonical_json, parse_json, sha256_file, sha256_text
from plumbline.results.measurements import measurement_file
from plumbline.results.tables import provenance

#: What is printed of a manifest, in this order.
FACTS = ("code_from", "git_commit", "git_dirty", "data_fingerprint", "validation_fingerprint", "host", "device")
FACTS += ("wall_seconds", "peak_memory_bytes", "peak_memory_of", "attempts", "resumed_from", "started", "finished")
FACTS += ("packages",)


def trace(table: Path, row: str, column: str) -> str:
    """Write a cell's value and the runs, files and printed numbers that it comes from.

    Rows and columns are named as in the csv or as in the rendered table.

    Raises:
        PlumblineError: no such table, row or column, or no provenance file beside the table.
    """
    content = provenance.read(table)
    with open(table, encoding="utf-8", newline="") as handle:
        rows = {cells[content["key"]]: cells for cells in csv.DictReader(handle)}
    row = _named(row, _rows(content, rows), f"{table}: no row")
    column = _named(column, _columns(content, rows[row]), f"{table}: no column")
    value = rows[row][column]
    word = content["why_empty"].get(row, {}).get(column, "")
    lines = [
        f"{content['study']} {content['table']}, row {row}, column {column}: "
        f"{f'{value} ({word})' if value and word else value or word}",
        f"  preset {content['preset']}; table {table}; provenance {provenance.beside(table)}",
    ]
    keys = content["cells"].get(row, {}).get(column, [])
    source = content["sources"].get(row, {}).get(column)
    if source:
        lines.append(f"  from {source}")
    elif column.endswith("_published"):
        lines.append(f"  as printed; see {content['published']}")
    elif not keys:
        lines.append("  not measured: this cell comes from no run")
    for key in keys:
        show = _measured if measurement_file.is_key(key) else _run
        lines += ["", *show(key, content["runs"][key])]
    return "\n".join(lines)


def _rows(content: dict[str, Any], rows: dict[str, dict[str, str]]) -> dict[str, str]:
    """Every way to call a row -> its key: the key itself, or a label that no other row has."""
    labels = [entry["name"] for entry in content["columns"] if entry["kind"] == "label"]
    return _unique((cells[label], key) for label in labels for key, cells in rows.items()) | {key: key for key in rows}


def _columns(content: dict[str, Any], cells: dict[str, str]) -> dict[str, str]:
    """Every way to call a column -> its name: the name, the heading in md and tex, or the plain header."""
    shown = [entry for entry in content["columns"] if entry["shown_in_markdown"]]
    plain = _unique((entry["header"], entry["name"]) for entry in shown if entry["kind"] != "published")
    return plain | {entry["heading"]: entry["name"] for entry in shown} | {name: name for name in cells}


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names -> what they stand for, without those that stand for several things."""
    found: dict[str, set[str]] = {}
    for name, meant in pairs:
        found.setdefault(name, set()).add(meant)
    return {name: next(iter(meant)) for name, meant in found.items() if len(meant) == 1}


def _named(given: str, known: dict[str, str], what: str) -> str:
    if given not in known:
        raise PlumblineError(f"{what} {given!r}{nearest(given, known) or f' (there are {list(known)})'}")
    return known[given]


def _run(key: str, facts: dict[str, Any]) -> list[str]:
    lines = [f"run {facts['run_id']}  {key}  {facts['outcome']}"]
    if "manifest" not in facts:
        return [*lines, "  no manifest: this run is missing"]
    lines.append(f"  spec sha256      {facts['spec_sha256']}")
    path = Path(facts["manifest"])
    lines.append(f"  manifest         {path}")
    if not path.exists():
        return [*lines, "  (the manifest is not on this machine; what the table recorded:)", *_show(facts)]
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
        spec = canonical_json(manifest["spec"])
    except (ValueError, KeyError, TypeError) as error:
        return [*lines, f"  DAMAGED: the manifest is unreadable ({error}); what the table recorded:", *_show(facts)]
    if sha256_text(spec) != facts["spec_sha256"]:
        lines.append("  CHANGED since the table was made: the manifest's spec is another one")
    try:
        run_files.require_manifest(path, manifest)
    except PlumblineError as error:
        lines.append(f"  CHANGED: {error}")
    return [*lines, *_show(manifest), *_scores(facts), *_beside(facts, "examples"), *_beside(facts, "probes")]


def _measured(key: str, facts: dict[str, Any]) -> list[str]:
    if "frame" not in facts:
        return [key, "  missing: this was not measured"]
    path = Path(facts["frame"])
    lines = [f"{key}  made of {facts['fingerprint']}", f"  frame            {path}"]
    if not path.exists():
        lines.append("  (not on this machine; what the table recorded:)")
    elif sha256_file(path) != facts["frame_sha256"]:
        lines.append("  CHANGED since the table was made")
    options = ", ".join(f"{name} {value}" for name, value in facts["options"].items())
    lines += [f"  options          {options or 'none'}", f"  seconds          {facts['seconds']}"]
    return [*lines, *_show(facts | {"device": facts["device_name"]})]


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


def _beside(facts: dict[str, Any], name: str) -> list[str]:
    """Where a frame lies that a table read beside scores, and whether it is still that one."""
    if name not in facts:
        return []
    path = Path(facts[name])
    changed = path.exists() and sha256_file(path) != facts[f"{name}_sha256"]
    return [f"  {name:<16} {path}", *(["  CHANGED since the table was made"] if changed else [])]


def arguments() -> Parser:
    """Build the command-line parser of `plumbline trace`."""
    parser = Parser(__doc__)
    parser.add_argument("table", type=Path, help="a table's csv, such as results/table2.csv")
    parser.add_argument("row", help="a row's name or label, such as softpick or 'QK-Norm'")
    parser.add_argument("column", help="a column's name or heading, such as z or 'CLIMB-avg (reproduced)'")
    return parser


def main() -> None:
    """Run `plumbline trace`: print the origin of one cell."""
    given = arguments().parse_args()
    print(visible(trace(given.table, given.row, given.column)))


if __name__ == "__main__":
    run(main)
