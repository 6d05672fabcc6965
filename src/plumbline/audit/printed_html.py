"""Writes a printed table as HTML, each number in the colour of what the checks of it come to.

The pointer, a finger or the keyboard on a number shows its checks at the foot of the window, where no box that scrolls
cuts them off. It needs no script, and its style is its own: any page can show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from plumbline.audit.audit_csv import Row
from plumbline.audit.audit_page import format_recomputed
from plumbline.audit.audit_rows import CONTRADICTION, MISMATCH
from plumbline.core.errors import visible

CONTRADICTS, LIKELY, HOLDS, READ, UNCHECKED = "contradicts", "likely", "holds", "read", "not checked"

#: What the checks of a number come to, the most telling first, and what the page says of it.
MEANINGS = {
    CONTRADICTS: "no numbers that round to the others give it",
    LIKELY: "it does not fit, and something else may be meant",
    HOLDS: "other printed numbers give it",
    READ: "a check reads it, and none tests it",
    UNCHECKED: "no check looks at it",
}

#: Most letters that are shown of a number's checks.
LONGEST = 600

#: The attribute of a cell in a column of texts.
_TEXT = ' class="text"'

STYLE = """
.printed-table td,.printed-table th{text-align:right;vertical-align:baseline}.printed-table td{white-space:nowrap}
.printed-table tr>:first-child,.printed-table .text{text-align:left}
.printed-table th{vertical-align:bottom}.printed-table .over{text-align:center}
.printed-table tr.rule td{border-top:1px solid}
.printed-table :is(a,button){display:inline-block;min-width:24px;min-height:24px;padding:2px 4px;border:0;
margin:0 -3px;border-radius:3px;font:inherit;color:inherit;background:none;cursor:help}
.counts{display:flex;flex-wrap:wrap;gap:.3em 1.2em}.counts .swatch{padding:0 .4em;border-radius:3px;font-weight:600}
.printed-table .holds,.swatch.holds{background:#dcefdf}.printed-table .read,.swatch.read{border-bottom:1px dotted}
.printed-table .contradicts,.swatch.contradicts{background:#ffc9c9}
.printed-table .likely,.swatch.likely{background:#fff0b3}
.printed-table :is(a,button):is(:hover,:focus)::after{content:attr(aria-label);position:fixed;inset:auto 0 0;
z-index:9;padding:.7em 1em;max-height:50vh;overflow:hidden;white-space:pre-line;text-align:left;font-weight:400;
overflow-wrap:anywhere;color:#fff;background:#222;pointer-events:none}
@media (prefers-color-scheme:dark){.printed-table .holds,.swatch.holds{background:#1d4128}
.printed-table .contradicts,.swatch.contradicts{background:#7a1f1f}
.printed-table .likely,.swatch.likely{background:#5c4c00}
.printed-table :is(a,button):is(:hover,:focus)::after{color:#111;background:#eee}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownNumber:
    """What a cell prints, or one of several numbers in it.

    Attributes:
        text: as printed.
        kind: what its checks come to, of `MEANINGS`; empty of what is no number.
        checks: what is shown of its checks on hover, tap and focus.
        anchor: its id in the page; `anchor`-said is that of what is said of it elsewhere. Empty: nothing is.
        bold, underlined: as printed.
    """

    text: str
    kind: str = ""
    checks: str = ""
    anchor: str = ""
    bold: bool = False
    underlined: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTable:
    """A printed table.

    Attributes:
        name: what the page calls it.
        columns: heads; those that begin with the same words before " / " stand under these words.
        rows: the numbers of each cell of each row, which " ± " joins.
        rules: places of the rows that a rule stands above.
        titles: place of a row -> the title above it.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Sequence[ShownNumber]]]
    rules: frozenset[int] = frozenset()
    titles: Mapping[int, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many numbers there are of each kind, of those that occur."""
        counts = Counter(number.kind for row in self.rows for cell in row for number in cell)
        return {kind: counts[kind] for kind in MEANINGS if counts[kind]}

    @property
    def text_columns(self) -> frozenset[int]:
        """Places of the columns in which something is printed, and no number; the first is on the left anyway."""
        columns = enumerate(zip(*self.rows, strict=True))
        by_place = {place: [number for cell in cells for number in cell] for place, cells in columns}
        return frozenset(
            place
            for place, numbers in by_place.items()
            if place and any(number.text for number in numbers) and not any(number.kind for number in numbers)
        )


def judge_row(row: Row) -> str:
    """What a row of the audit comes to, of `MEANINGS`."""
    if row["verdict"] != MISMATCH:
        return HOLDS
    return CONTRADICTS if row["evidence_kind"] == CONTRADICTION else LIKELY


def describe_checks(rows: Sequence[Row]) -> str:
    """Describe the checks of a number: the relation, the interval that it gives, and the verdict of each."""
    lines = [
        f"{row['verdict']}: {row['quantity']} = {row['formula']}; {format_recomputed(row)}"
        f". {row.get('explanation') or ''}"
        for row in rows
    ]
    text = "\n".join(line.strip() for line in lines)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def write_table(table: ShownTable) -> str:
    """Write a table."""
    lines, texts = [], table.text_columns
    for place, cells in enumerate(table.rows):
        rule = ' class="rule"' if place in table.rules else ""
        if place in table.titles:
            title = f'<td colspan="{len(table.columns)}"><i>{write_text(table.titles[place])}</i></td>'
            lines.append(f"<tr{rule}>{title}</tr>")
            rule = ""
        cells_html = "".join(
            f"<td{_TEXT * (column in texts)}>{' ± '.join(map(_write_number, numbers))}</td>"
            for column, numbers in enumerate(cells)
        )
        lines.append(f"<tr{rule}>{cells_html}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{write_text(table.name)} as printed">'
        f'<table class="printed-table"><thead>{_write_head(table.columns, texts)}</thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def write_counts(counts: Mapping[str, int], *, with_meanings: bool = False) -> str:
    """Write how many numbers are of each kind, in its colour; `with_meanings`: the key of the colours, too."""
    parts = [
        f'<span><span class="swatch {kind.partition(" ")[0]}">{count} {kind}</span>'
        f"{f' {MEANINGS[kind]}' if with_meanings else ''}</span>"
        for kind, count in counts.items()
    ]
    return f'<p class="counts">{"".join(parts)}</p>'


def write_remark(kind: str, row: Row, anchor: str, addition: str, *, is_first: bool = True) -> str:
    """Write what is said of a number below its table as an entry of a list; `addition`: HTML that follows.

    `is_first`: the number's link leads to this entry, and not to one before it.
    """
    quantity = write_text(str(row["quantity"]))
    quantity = f'<a href="#{anchor}">{quantity}</a>' if anchor else quantity
    return (
        f"<li{f' id={chr(34)}{anchor}-said{chr(34)}' if anchor and is_first else ''}>"
        f'<span class="swatch {kind}">{kind}</span> {quantity}: printed '
        f"<b>{write_text(str(row['printed']))}</b>, {write_text(format_recomputed(row))}. {addition}</li>"
    )


def write_text(text: str) -> str:
    """Write a text of a paper into HTML: nothing in it is a tag, or invisible."""
    return escape(visible(text))


def _write_number(number: ShownNumber) -> str:
    text = write_text(number.text)
    text = f"<b>{text}</b>" if number.bold else text
    text = f"<u>{text}</u>" if number.underlined else text
    if number.checks:
        label = f'class="{number.kind}" aria-label="{write_text(number.text)}: {write_text(number.checks)}"'
        if number.anchor:
            return f'<a id="{number.anchor}" href="#{number.anchor}-said" {label}>{text}</a>'
        return f'<button type="button" {label}>{text}</button>'
    return f'<span class="{READ}">{text}</span>' if number.kind == READ else text


def _write_head(columns: Sequence[str], texts: Collection[int]) -> str:
    """The head of a table; what stands above several columns in print has a line of its own."""
    above, names = "", []
    for over, group in groupby(columns, key=lambda column: column.rpartition(" / ")[0]):
        group_columns = list(group)
        shared = over if len(group_columns) > 1 else ""
        title = f'<th class="over" colspan="{len(group_columns)}">{write_text(shared)}</th>'
        above += title if shared else "<td></td>" * len(group_columns)
        names += [column.removeprefix(f"{shared} / ") if shared else column for column in group_columns]
    head = "".join(f"<th{_TEXT * (column in texts)}>{write_text(name)}</th>" for column, name in enumerate(names))
    return f"<tr>{above}</tr><tr>{head}</tr>" if "colspan" in above else f"<tr>{head}</tr>"
