"""Writes the audit as one HTML file that can be sent to an author: each table with a finding as the paper prints it.

The cell in question is coloured, and below the table stand the relation with its interval and the line of LaTeX, with
a link to the cell: of a wide table it can stand outside the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby

from plumbline.audit.audit_csv import Row
from plumbline.audit.audit_page import format_recomputed
from plumbline.audit.paper.paper_audit import PaperAudit
from plumbline.audit.paper.paper_page import (
    RUNNING_TEXT,
    describe_coverage,
    write_answer,
    write_author_text,
    write_review_sentence,
)
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.core.errors import visible
from plumbline.published.interval_arithmetic import Cell

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
:root{color-scheme:light dark}
table{border-collapse:collapse;margin:1em 0;display:block;width:fit-content;max-width:100%;overflow-x:auto}
table{border-top:2px solid;border-bottom:2px solid}
th,td{padding:.15em .4em;text-align:right}td{white-space:nowrap}th{vertical-align:bottom}
th:first-child,td:first-child{text-align:left}td:first-child{white-space:normal}
tr:last-child th,.over{border-bottom:1px solid}.over{text-align:center}tr.rule td{border-top:1px solid}a{color:inherit}
:target{outline:2px solid}.contradicts{background:#ffc9c9}.likely{background:#fff0b3}.key{padding:0 .4em}
code,pre{background:#f4f4f4;white-space:pre-wrap;overflow-wrap:anywhere}pre{padding:.6em}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#161616}code,pre{background:#262626}
.contradicts{background:#7a1f1f}.likely{background:#665500}}
"""


def write_html(audit: PaperAudit, not_read: Iterable[str] = ()) -> str:
    """The page: the answer and what was read, each table with a finding, what to write, what was checked and not."""
    title = _escape(audit.title or audit.folder.resolve().name)
    broken = [(row, "contradicts") for row in audit.contradictions] + [(row, "likely") for row in audit.likely]
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Audit: {title}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><h1>{title}: its printed numbers</h1>",
        f"<p><strong>{_escape(write_answer(audit))}</strong></p><p>{_escape(describe_coverage(audit))}</p>",
    ]
    if broken:
        parts.append(
            '<p><span class="key contradicts">contradicts</span>: no numbers that round to the others give it. '
            '<span class="key likely">likely</span>: it does not fit, and something else may be meant.</p>'
        )
    doubted = [f'<li><span class="key likely">likely</span> {_escape(entry)}</li>' for entry in audit.doubted]
    parts += ["<ul>", *doubted, "</ul>"] if doubted else []
    cells = dict.fromkeys(_find_cell(row, audit) for row, _ in broken)
    anchors = {cell: f"cell{number}" for number, cell in enumerate(cells, start=1) if cell[0] in audit.names}
    contradicting = {_find_cell(row, audit)[0] for row in audit.contradictions}
    for table in sorted(audit.tables, key=lambda table: (table.name not in contradicting, len(table.name), table.name)):
        own = [(row, kind) for row, kind in broken if _find_cell(row, audit)[0] == table.name]
        parts += _write_table(table, own, audit, anchors) if own else []
    other = [(row, kind) for row, kind in broken if _find_cell(row, audit)[0] not in audit.names]
    if other:
        parts += ["<h2>In the text</h2>", *_list_rows(other, audit, anchors)]
    if broken or audit.doubted:
        parts += [
            f"<h2>To the author</h2><pre>{_escape(write_author_text(audit))}</pre>",
            f"<h2>For a review</h2><pre>{_escape(write_review_sentence(audit))}</pre>",
        ]
    for head, entries in (
        ("Relations that were checked", audit.relations),
        ("Looked at and not checked", [entry for entry in audit.dropped if entry not in audit.doubted]),
        ("Not read, and why", [RUNNING_TEXT, *not_read]),
    ):
        items = "".join(f"<li>{_escape(entry)}</li>" for entry in entries)
        parts += [f"<h2>{head}</h2><ul>{items}</ul>"] if items else []
    return "\n".join([*parts, "</body></html>", ""])


def _write_table(
    table: PaperTable, own: Sequence[tuple[Row, str]], audit: PaperAudit, anchors: Mapping[Cell, str]
) -> list[str]:
    """A table as printed, with its cells in question in colour, and what is said of them."""
    kinds: dict[Cell, tuple[str, str]] = {}
    for row, kind in reversed(own):
        kinds[_find_cell(row, audit)] = kind, str(row.get("explanation", ""))
    lines = []
    for place, name in enumerate(table.rows):
        cells = []
        for column in table.columns:
            cell = table.cells[name][column]
            text = _escape(cell.text)
            text = f"<b>{text}</b>" if cell.bold else text
            text = f"<u>{text}</u>" if cell.underlined else text
            where = table.name, name, column
            kind, why = kinds.get(where, ("", ""))
            mark = f' id="{anchors[where]}" class="{kind}" title="{_escape(why)}"' if kind else ""
            # A finger cannot point: a tap leads to what is said below, a tap there leads back.
            text = f'<a href="#{anchors[where]}-said">{text}</a>' if kind else text
            cells.append(f"<td{mark}>{text}</td>")
        group = table.groups[place]
        rule = ' class="rule"' if place and group != table.groups[place - 1] else ""
        if group in table.titles and (not place or rule):
            span = len(table.columns)
            lines.append(f'<tr{rule}><td colspan="{span}"><i>{_escape(table.titles[group])}</i></td></tr>')
            rule = ""
        lines.append(f"<tr{rule}>{''.join(cells)}</tr>")
    caption = f"<p>{_escape(table.title)}</p>" if table.title else ""
    body = "\n".join(lines)
    return [
        f"<h2>{_escape(table.name)}</h2>{caption}",
        f"<table><thead>{_write_head(table.columns)}</thead><tbody>\n{body}\n</tbody></table>",
        *_list_rows(own, audit, anchors),
    ]


def _write_head(columns: Sequence[str]) -> str:
    """The head of a table; what stands above several columns in print has a line of its own."""
    above, names = "", []
    for over, group in groupby(columns, key=lambda column: column.rpartition(" / ")[0]):
        own = list(group)
        shared = over if len(own) > 1 else ""
        above += f'<th class="over" colspan="{len(own)}">{_escape(shared)}</th>' if shared else "<th></th>" * len(own)
        names += [column.removeprefix(f"{shared} / ") if shared else column for column in own]
    head = "".join(f"<th>{_escape(name)}</th>" for name in names)
    return f"<tr>{above}</tr><tr>{head}</tr>" if "colspan" in above else f"<tr>{head}</tr>"


def _find_cell(row: Row, audit: PaperAudit) -> Cell:
    """The cell that a row checks a number of; nowhere for one of the text."""
    table, name, column = audit.cells.get(row["id"], ("", "", ""))
    return table, name, column.removesuffix(".sd").removesuffix(".brackets")


def _list_rows(rows: Sequence[tuple[Row, str]], audit: PaperAudit, anchors: Mapping[Cell, str]) -> list[str]:
    """What is said of numbers: printed, recomputed with its interval, the relation, and the line of LaTeX."""
    lines, marked_anchors = ["<ul>"], set[str]()
    for row, kind in rows:
        where = str(row["source"])
        latex, anchor = audit.latex.get(where, ""), anchors.get(_find_cell(row, audit), "")
        quantity = _escape(str(row["quantity"]))
        quantity = f'<a href="#{anchor}">{quantity}</a>' if anchor else quantity
        mark = f' id="{anchor}-said"' if anchor and anchor not in marked_anchors else ""
        marked_anchors.add(anchor)
        lines.append(
            f'<li{mark}><span class="key {kind}">{kind}</span> {quantity}: printed '
            f"<b>{_escape(str(row['printed']))}</b>, {_escape(format_recomputed(row))}. "
            f"{_escape(str(row.get('explanation', '')))}"
            f"<br><code>{_escape(where)}{': ' if latex else ''}{_escape(latex)}</code></li>"
        )
    return [*lines, "</ul>"]


def _escape(text: str) -> str:
    return escape(visible(text))
