"""Writes the audit as one HTML file that can be sent to an author: each table as the paper prints it, in colour.

Tables with a finding come first, and below each stand the relation with its interval and the line of LaTeX, with a link
to the cell: of a wide table it can stand outside the window. The other tables are folded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from plumbline.audit.audit_csv import Row
from plumbline.audit.audit_rows import MISMATCH
from plumbline.audit.paper.paper_audit import PaperAudit
from plumbline.audit.paper.paper_page import (
    RUNNING_TEXT,
    describe_coverage,
    write_answer,
    write_author_text,
    write_review_sentence,
)
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.audit.paper.printed_cell import PARTS
from plumbline.audit.printed_html import (
    CONTRADICTS,
    HOLDS,
    LIKELY,
    MEANINGS,
    READ,
    STYLE,
    UNCHECKED,
    ShownNumber,
    ShownTable,
    describe_checks,
    write_counts,
    write_remark,
    write_table,
    write_text,
)
from plumbline.published.interval_arithmetic import Cell

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
:root{color-scheme:light dark}
.box{margin:1em 0;width:fit-content;max-width:100%;overflow-x:auto;border-top:2px solid;border-bottom:2px solid}
table{border-collapse:collapse}td,th{padding:.15em .4em}td:first-child{white-space:normal!important}
tr:last-child th,.over{border-bottom:1px solid}a{color:inherit}:target{outline:2px solid}summary{cursor:pointer}
code,pre{background:#f4f4f4;white-space:pre-wrap;overflow-wrap:anywhere}pre{padding:.6em}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#161616}code,pre{background:#262626}}
"""


def write_html(audit: PaperAudit, not_read: Iterable[str] = ()) -> str:
    """The page: the answer and what was read, each table, what to write, what was checked and not."""
    title = write_text(audit.title or audit.folder.resolve().name)
    broken = [(row, CONTRADICTS) for row in audit.contradictions] + [(row, LIKELY) for row in audit.likely]
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Audit: {title}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<style>{_STYLE}{STYLE}</style></head><body><main><h1>{title}: its printed numbers</h1>",
        f"<p><strong>{write_text(write_answer(audit))}</strong></p><p>{write_text(describe_coverage(audit))}</p>",
    ]
    doubted = [f'<li><span class="swatch likely">likely</span> {write_text(entry)}</li>' for entry in audit.doubted]
    parts += ["<ul>", *doubted, "</ul>"] if doubted else []
    link = write_text(audit.link)
    parts += [f'<p><a href="{link}">{link}</a></p>'] if link else []
    cells = dict.fromkeys(_find_cell(row, audit) for row, _ in broken)
    anchors = {cell: f"cell{number}" for number, cell in enumerate(cells, start=1) if cell[0] in audit.names}
    contradicting = {_find_cell(row, audit)[0] for row in audit.contradictions}
    tables_by_name = _show_tables(audit, {row["id"]: kind for row, kind in broken}, anchors)
    total = Counter[str]()
    for shown_table in tables_by_name.values():
        total.update(shown_table.counts)
    parts.append(write_counts({kind: total[kind] for kind in MEANINGS if total[kind]}, with_meanings=True))
    folded = []
    for table in sorted(audit.tables, key=lambda table: (table.name not in contradicting, len(table.name), table.name)):
        table_rows = [(row, kind) for row, kind in broken if _find_cell(row, audit)[0] == table.name]
        caption = f"<p>{write_text(table.title)}</p>" if table.title else ""
        name, counts = write_text(table.name), tables_by_name[table.name].counts
        content = [caption, write_counts(counts), write_table(tables_by_name[table.name])]
        if table_rows:
            parts += [f"<h2>{name}</h2>", *content, *_list_rows(table_rows, audit, anchors)]
        else:
            summary = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no number"
            folded += [f"<details><summary>{name}: {summary}</summary>", *content, "</details>"]
    text_rows = [(row, kind) for row, kind in broken if _find_cell(row, audit)[0] not in audit.names]
    if text_rows:
        parts += ["<h2>In the text</h2>", *_list_rows(text_rows, audit, anchors)]
    parts += ["<h2>Tables without a finding</h2>", *folded] if folded else []
    if broken or audit.doubted:
        parts += [
            f"<h2>To the author</h2><pre>{write_text(write_author_text(audit))}</pre>",
            f"<h2>For a review</h2><pre>{write_text(write_review_sentence(audit))}</pre>",
        ]
    for head, entries in (
        ("Relations that were checked", audit.relations),
        ("Looked at and not checked", [entry for entry in audit.dropped if entry not in audit.doubted]),
        ("Not read, and why", [RUNNING_TEXT, *not_read]),
    ):
        items = "".join(f"<li>{write_text(entry)}</li>" for entry in entries)
        parts += [f"<h2>{head}</h2><ul>{items}</ul>"] if items else []
    return "\n".join([*parts, "</main></body></html>", ""])


def _show_tables(audit: PaperAudit, broken: Mapping[str, str], anchors: Mapping[Cell, str]) -> dict[str, ShownTable]:
    """The tables as printed, by name; `broken`: what a row that does not hold comes to, by its id."""
    rows_of_cell: dict[Cell, list[tuple[str, Row]]] = defaultdict(list)
    for row in audit.rows:
        # A check of the audit file that rejects one of several interpretations accuses nobody.
        kind = broken.get(row["id"], READ if row["verdict"] == MISMATCH else HOLDS)
        rows_of_cell[_find_cell(row, audit)].append((kind, row))
    kinds_by_cell = {_drop_part(cell): UNCHECKED for table in audit.tables for cell in table.printed}
    kinds_by_cell |= {_drop_part(cell): READ for cell in audit.read_cells}
    return {table.name: _show_table(table, rows_of_cell, kinds_by_cell, anchors) for table in audit.tables}


def _show_table(
    table: PaperTable,
    rows_of_cell: Mapping[Cell, Sequence[tuple[str, Row]]],
    kinds_by_cell: Mapping[Cell, str],
    anchors: Mapping[Cell, str],
) -> ShownTable:
    order = list(MEANINGS)
    rows = []
    for name in table.rows:
        shown_cells = []
        for column in table.columns:
            cell, place = table.cells[name][column], (table.name, name, column)
            checks = sorted(rows_of_cell.get(place, ()), key=lambda check: order.index(check[0]))
            number = ShownNumber(
                text=cell.text,
                kind=checks[0][0] if checks else kinds_by_cell.get(place, ""),
                checks=describe_checks([row for _, row in checks]),
                anchor=anchors.get(place, ""),
                bold=cell.bold,
                underlined=cell.underlined,
            )
            shown_cells.append([number])
        rows.append(shown_cells)
    starts = [place for place, group in enumerate(table.groups) if not place or group != table.groups[place - 1]]
    return ShownTable(
        name=table.name,
        columns=table.columns,
        rows=rows,
        rules=frozenset(starts[1:]),
        titles={place: table.titles[group] for place in starts if (group := table.groups[place]) in table.titles},
    )


def _find_cell(row: Row, audit: PaperAudit) -> Cell:
    """The cell that a row checks a number of; nowhere for one of the text."""
    return _drop_part(audit.cells.get(row["id"], ("", "", "")))


def _drop_part(cell: Cell) -> Cell:
    table, name, column = cell
    for part in PARTS:
        column = column.removesuffix(f".{part}")
    return table, name, column


def _list_rows(rows: Sequence[tuple[Row, str]], audit: PaperAudit, anchors: Mapping[Cell, str]) -> list[str]:
    """What is said of numbers: printed, recomputed with its interval, the relation, and the line of LaTeX."""
    lines, marked_anchors = ["<ul>"], set[str]()
    for row, kind in rows:
        where = str(row["source"])
        latex, anchor = audit.latex.get(where, ""), anchors.get(_find_cell(row, audit), "")
        details = (
            f"{write_text(str(row.get('explanation', '')))}"
            f"<br><code>{write_text(where)}{': ' if latex else ''}{write_text(latex)}</code>"
        )
        lines.append(write_remark(kind, row, anchor, details, is_first=anchor not in marked_anchors))
        marked_anchors.add(anchor)
    return [*lines, "</ul>"]
