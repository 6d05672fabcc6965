"""Finds the runs behind a number in a table: ``plumbline trace TABLE.csv ROW COLUMN``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.core import run_files
from plumbline.core.command_line import Parser, run
from plumbline.core.csv_text import read_rows
from plumbline.core.errors import PlumblineError, nearest, visible
from plumbline.core.files import canonical_json, parse_json, sha256_file, sha256_text
from plumbline.results.measurements import measurement_file
from plumbline.results.tables import provenance

#: What is printed of a manifest, in this order.
FACTS = ("code_from", "git_commit", "git_dirty", "data_fingerprint", "validation_fingerprint", "host", "device")
FACTS += ("wall_seconds", "peak_memory_bytes", "peak_memory_of", "attempts", "resumed_from", "started", "finished")
FACTS += ("packages",)


def trace_cell(table: Path, row: str, column: str) -> str:
    """Write a cell's value and the runs, files and printed numbers that it comes from.

    Rows and columns are named as in the csv or as in the rendered table.

    Raises:
        PlumblineError: no such table, row or column, or no provenance file next to the table.
    """
    content = provenance.read(table)
    with open(table, encoding="utf-8", newline="") as handle:
        rows = {cells[content["key"]]: cells for cells in read_rows(handle)}
    row = _find_name(row, _name_rows(content, rows), f"{table}: no row")
    parts = {entry["heading"]: entry["names"] for entry in content.get("paper_columns", [])}.get(column, ())
    column = _find_name(column, _name_columns(content, rows[row]), f"{table}: no column")
    value = rows[row][column]
    word = content["why_empty"].get(row, {}).get(column, "")
    lines = [
        f"{content['study']} {content['table']}, row {row}, column {column}: "
        f"{f'{value} ({word})' if value and word else value or word}",
        f"  preset {content['preset']}; table {table}; provenance {provenance.provenance_path(table)}",
    ]
    if len(parts) > 1:
        lines.append(f"  first of what stands in that cell: {', '.join(parts)}")
    keys = content["cells"].get(row, {}).get(column, [])
    source = content["sources"].get(row, {}).get(column)
    if column.endswith("_published"):
        lines.append(f"  as printed; see {source or content['published']}")
    elif source:
        lines.append(f"  from {source}")
    elif not keys:
        lines.append("  not measured: this cell comes from no run")
    for key in keys:
        describe = _describe_measurement if measurement_file.is_key(key) else _describe_run
        lines += ["", *describe(key, content["runs"][key])]
    return "\n".join(lines)


def _name_rows(content: dict[str, Any], rows: dict[str, dict[str, str]]) -> dict[str, str]:
    """Map every name of a row to its key: the key itself, or a label or a name of the paper's that no other row has."""
    labels = [entry["name"] for entry in content["columns"] if entry["kind"] == "label"]
    pairs = [(cells[label], key) for label in labels for key, cells in rows.items()]
    for column in content.get("paper_columns", [])[:1]:
        pairs += [(text, key) for key, (text, *_) in column["cells"].items() if key in rows]
    return _select_unique(pairs) | {key: key for key in rows}


def _name_columns(content: dict[str, Any], cells: dict[str, str]) -> dict[str, str]:
    """Map every name of a column to its own: that name, a heading of md and tex, or the plain header."""
    readable = [entry for entry in content["columns"] if entry["shown_in_markdown"]]
    plain = _select_unique((entry["header"], entry["name"]) for entry in readable if entry["kind"] != "published")
    printed = {entry["heading"]: entry["names"][0] for entry in content.get("paper_columns", []) if entry["names"]}
    return plain | printed | {entry["heading"]: entry["name"] for entry in readable} | {name: name for name in cells}


def _select_unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map names to their meaning, without those that have several meanings."""
    meanings: dict[str, set[str]] = {}
    for name, meaning in pairs:
        meanings.setdefault(name, set()).add(meaning)
    return {name: next(iter(meaning)) for name, meaning in meanings.items() if len(meaning) == 1}


def _find_name(name: str, names: dict[str, str], message: str) -> str:
    if name not in names:
        raise PlumblineError(f"{message} {name!r}{nearest(name, names) or f' (there are {list(names)})'}")
    return names[name]


def _describe_run(key: str, facts: dict[str, Any]) -> list[str]:
    lines = [f"run {facts['run_id']}  {key}  {facts['outcome']}"]
    if "manifest" not in facts:
        return [*lines, "  no manifest: this run is missing"]
    lines.append(f"  spec sha256      {facts['spec_sha256']}")
    path = Path(facts["manifest"])
    lines.append(f"  manifest         {path}")
    if not path.exists():
        return [*lines, "  (the manifest is not on this machine; what the table recorded:)", *_list_facts(facts)]
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
        spec = canonical_json(manifest["spec"])
    except (ValueError, KeyError, TypeError) as error:
        return [
            *lines,
            f"  DAMAGED: the manifest is unreadable ({error}); what the table recorded:",
            *_list_facts(facts),
        ]
    if sha256_text(spec) != facts["spec_sha256"]:
        lines.append("  CHANGED since the table was made: the manifest's spec is another one")
    try:
        run_files.require_manifest(path, manifest)
    except PlumblineError as error:
        lines.append(f"  CHANGED: {error}")
    return [
        *lines,
        *_list_facts(manifest),
        *_list_scores(facts),
        *_locate_frame(facts, "examples"),
        *_locate_frame(facts, "probes"),
    ]


def _describe_measurement(key: str, facts: dict[str, Any]) -> list[str]:
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
    return [*lines, *_list_facts(facts | {"device": facts["device_name"]})]


def _list_facts(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name in FACTS:
        if name in facts:
            value = facts[name]
            if isinstance(value, dict):
                value = ", ".join(f"{package} {version}" for package, version in sorted(value.items()))
            lines.append(f"  {name.replace('_', ' '):<16} {value}")
    return lines


def _list_scores(facts: dict[str, Any]) -> list[str]:
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


def _locate_frame(facts: dict[str, Any], name: str) -> list[str]:
    """Write the path of a frame that a table read in addition to scores, and whether it was changed since."""
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
    parser.add_argument("column", help="a column's name or heading, such as z or 'CLIMB-avg'")
    return parser


def main() -> None:
    """Run `plumbline trace`: print the origin of one cell."""
    options = arguments().parse_args()
    print(visible(trace_cell(options.table, options.row, options.column)))


if __name__ == "__main__":
    run(main)
