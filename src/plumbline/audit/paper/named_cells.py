"""Checks numbers of the text against the cell that their sentence names: "Sparrow reaches 54.5 on GSM8K".

A sentence names a cell where it has the label of one row, letter by letter, and beside the number that of a column,
which is no common word; and where it compares nothing, so that the number can be of no other setting. One that differs
accuses nobody: it is to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from plumbline.audit.paper.evidence import meets
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import ends_of
from plumbline.audit.paper.names import is_change, is_spread
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.audit.paper.sentence_checks import Sentence, make_number
from plumbline.published.interval_arithmetic import Cell

#: Share of a cell's number by which one of the text may differ and still be meant for it.
NEAR = 0.1

#: Most labels of rows, and of columns, that are looked for.
LABELS = 2_000

#: Words of a sentence whose numbers may be differences, or of another setting than the row's.
_OTHER = re.compile(
    r"\b(?:than|from|by|over|compared|versus|vs|between|respectively|points?|gains?|drops?|margin|lead|gap|w/o|without|"
    r"when|if|after|before|variants?|versions?|up to|more|less|most|least|reported|subset|split|dev|validation|"
    r"relative|(?:improv|outperform|increas|decreas|reduc|remov|ablat|surpass|exceed|add|drop|fall|rais)\w*)\b|et al",
    re.IGNORECASE,
)
_NUMBER = r"(?P<number>(?<![\w.,+-])\d+\.\d+)(?P<unit>\s?%)?(?![\w-]|\.\d)"
#: What a label ends in that a text leaves out: an arrow, a unit or a note in brackets.
_END = re.compile(r"\s*(?:[↑↓*†‡]|\([^()]*\))+$")


def check_named_cells(sentences: Sequence[Sentence], tables: Sequence[PaperTable], ledger: Ledger) -> int:
    """Check the numbers of sentences that name a cell; returns how many sentences have one."""
    rows, columns = _collect_labels(tables)
    count = 0
    for sentence in sentences:
        checks = [] if _OTHER.search(sentence.text) else list(_list_checks(sentence, rows, columns, tables))
        count += bool(checks)
        for description, row in checks:
            ledger.hold("text", row.key, description, [row], "hold")
    return count


def _collect_labels(tables: Sequence[PaperTable]) -> tuple[dict[str, set[Cell]], dict[str, set[Cell]]]:
    """Labels of rows and of columns, each with where it stands: table, row, column, one of them empty."""
    rows: dict[str, set[Cell]] = {}
    columns: dict[str, set[Cell]] = {}
    for table in tables:
        for row in table.rows:
            label = _END.sub("", row)
            if len(re.findall("[A-Za-z]", label)) > 3 and (len(rows) < LABELS or label in rows):
                rows.setdefault(label, set()).add((table.name, row, ""))
        for column in table.columns[1:]:
            label = _END.sub("", column.rpartition(" / ")[2])
            is_value = is_change(column) is False and is_spread(column) is False
            if is_value and re.search(r"[A-Za-z].*[A-Z0-9]", label) and (len(columns) < LABELS or label in columns):
                columns.setdefault(label, set()).add((table.name, "", column))
    return rows, columns


def _list_checks(
    sentence: Sentence,
    rows: Mapping[str, set[Cell]],
    columns: Mapping[str, set[Cell]],
    tables: Sequence[PaperTable],
) -> Iterator[tuple[str, RelationRow]]:
    """The numbers of a sentence that stand beside a column's label, where it has the label of one row."""
    labels = [label for label in rows if label in sentence.text and _find(label, sentence.text)]
    longest_labels = [label for label in labels if not any(label != other and label in other for other in labels)]
    if len(longest_labels) != 1:
        return
    by_name = {table.name: table for table in tables}
    for label in [label for label in columns if label in sentence.text]:
        name = rf"(?<![\w-]){re.escape(label)}(?![\w-]| on\b| in\b)"
        patterns = rf"{_NUMBER} (?:on|in) (?:the )?{name}", rf"{name}(?: scores?)?(?: of|:| is| =|) {_NUMBER}"
        for match in [match for pattern in patterns for match in re.finditer(pattern, sentence.text)]:
            printed = make_number(match["number"], "", sentence)
            cells = [
                by_name[table].number(row, column).as_rounded()
                for table, row, _ in sorted(rows[longest_labels[0]])
                for other, _, column in sorted(columns[label])
                if other == table and by_name[table].prints(row, column)
            ]
            equal_cells = [cell for cell in cells if meets(ends_of(cell), ends_of(printed))]
            is_near = cells and abs(printed.value - cells[0].value) <= NEAR * abs(cells[0].value)
            if equal_cells or (len(cells) == 1 and is_near):
                number = (equal_cells or cells)[0]
                quantity = f"text, {sentence.where}: {match.group()!r}"
                yield (
                    f"{match.group()!r} is {number.name} ({number.where})",
                    RelationRow(sentence.where, quantity, printed, number, doubt="it may be that of another setting"),
                )


def _find(label: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(label)}(?![\w-])", text) is not None
