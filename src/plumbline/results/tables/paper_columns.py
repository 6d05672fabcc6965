"""Writes a table's cells as the paper's own table has them: its columns, in its order and words.

A study's YAML declares them (`printed` of a target, `plumbline.specs.study_files.PrintedTable`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.tables.table import Cell, Column, PaperCell, PaperColumn, Table
from plumbline.specs import study_folders

#: What stands for a number that was not reproduced here, and what a note says of it.
NOT_REPRODUCED = "n.r."
NOT_REPRODUCED_NOTE = f"{NOT_REPRODUCED}: not reproduced here."

_NAME = re.compile(r"\{(\w+)(?::(\+|,|[+]?\.\d+[fg]))?\}")

#: Rows of ours alone that a note names at most.
FEW = 6


def add_paper_columns(table: Table, printed: Mapping[str, Any] | None, published: PrintedNumbers) -> None:
    """Write the columns that a study declares into its table; none where it declares none.

    Raises:
        PlumblineError: a template, a row or a sign names what is not there, or is no template.
    """
    if printed is None:
        return
    table.transposed = printed.get("transposed", False)
    # Of the study whose declaration it is: one that extends it has none of its own.
    place = f"{published.directory.parent / study_folders.YAML}: targets: {table.name}: printed"
    file_rows = published.rows(table.name)
    first = next(iter(file_rows[0]))
    pairs = _pair_rows(table, file_rows, printed, first, place)
    columns = {column.name: column for column in table.columns}
    for heading, entry in printed["columns"].items():
        our_template, paper, where = entry.get("here", ""), entry.get("paper", ""), f"{place}: columns: {heading}"
        names = _list_names(our_template, columns, f"{where}: here")
        _list_names(paper, file_rows[0], f"{where}: paper")
        _require_known([*entry.get("bold", ()), *entry.get("marks", {})], {row[first] for row in file_rows}, where)
        labels = entry.get("words", {})
        texts = [_write_paper(paper, row, labels, where) for row in file_rows]
        numeric = columns[names[0]].numeric if names else all(map(_is_number, filter(None, texts)))
        is_measured = any(columns[name].numeric and columns[name].kind == "reproduced" for name in names)
        cells, text_above = {}, ""
        for key, (row, printed_row) in pairs.items():
            text = _write_here(table, row, our_template, columns, labels)
            printed_text = _write_paper(paper, printed_row, labels, where)
            paper_text = "" if entry.get("once") and printed_text == text_above else printed_text
            text_above = printed_text
            # What nobody measures, such as the names of rows, is written once.
            is_same = (
                _list_letters_and_numbers(text) == _list_letters_and_numbers(paper_text) or row is None
                if our_template
                else not numeric
            )
            if paper_text and not table.paper_columns:
                text, paper_text = paper_text, ""
            elif paper_text and is_same and not is_measured:
                text, paper_text = text or paper_text, ""
            text = text or (NOT_REPRODUCED if paper_text else "")
            mark = entry.get("marks", {}).get(printed_row.get(first, ""), "")
            bold = printed_row.get(first) in entry.get("bold", ())
            cells[key] = PaperCell(f"{text} {mark}" if mark else text, paper_text, bold=bold)
        table.paper_columns.append(PaperColumn(heading=heading, numeric=numeric, names=names, cells=cells))
    table.notes[:0] = [*printed.get("notes", []), *_name_rows_of_ours(table, pairs)]


def _name_rows_of_ours(table: Table, pairs: Mapping[str, tuple[object, Mapping[str, str]]]) -> list[str]:
    """Name the rows that the paper lacks, where its first column has a name for each and they are few."""
    cells = table.paper_columns[0].cells
    names = [cells[key].text for key, (_, printed_row) in pairs.items() if not printed_row]
    clear = 0 < len(names) <= FEW and len({cell.text for cell in cells.values()}) == len(cells)
    return [f"Not in the paper's table: {', '.join(names)}."] if clear else []


def fill_template(template: str, read: Callable[[str], str | None]) -> str:
    """Write the first alternative of a template whose names all have a text; empty if none has."""
    for alternative in template.split("|"):
        if all(read(name) for name, _ in _NAME.findall(alternative)):
            return _NAME.sub(lambda match: _write_as(read(match[1]) or "", match[2]), alternative)
    return ""


def _write_as(text: str, form: str | None) -> str:
    if form == "+":
        return text if text.startswith(("-", "+")) or not float(text) else f"+{text}"
    if form in (None, ","):
        return f"{int(text):,}" if form else text
    number_text = format(float(text), form)
    # The paper's decimals would leave nothing of a number of a small model.
    too_small = not float(number_text) and float(text)
    return f"{Decimal(format(float(text), '.2g')):{'+' if form[0] == '+' else ''}f}" if too_small else number_text


def _list_letters_and_numbers(text: str) -> list[str]:
    """Take what two texts have in common that say the same: their letters and their numbers, with sign and point."""
    letters = re.sub(r"[\W\d_]", "", text).casefold()
    numbers = re.findall(r"(?<![\w.])-?\d[\d.]*|\d[\d.]*", text)
    return [letters, *(re.sub(r"\.0*$", "", number) for number in numbers)]


def _is_number(text: str) -> bool:
    return not re.search(r"[^\d.e+-]", text)


def _pair_rows(
    table: Table, file_rows: list[dict[str, str]], printed: Mapping[str, Any], first: str, place: str
) -> dict[str, tuple[dict[str, Cell] | None, dict[str, str]]]:
    """Pair our rows, by key, with those of the paper, each of which goes to the first of ours that has its name; its
    other rows follow, and stand for nothing of ours."""
    template, name_column = printed.get("rows", f"{{{first}}}"), printed.get("by", table.key)
    _list_names(template, file_rows[0], f"{place}: rows")
    _require_known([name_column], {column.name for column in table.columns}, f"{place}: by")
    by_name = {fill_template(template, row.get): row for row in file_rows}
    if len(by_name) < len(file_rows):
        raise PlumblineError(f"{place}: rows: {template} calls two rows of {table.published} the same; name more of it")
    pairs: dict[str, tuple[dict[str, Cell] | None, dict[str, str]]] = {}
    for row in table.rows:
        pairs[str(row[table.key].value)] = (row, by_name.pop(str(row[name_column].value), {}))
    return pairs | {name: (None, row) for name, row in by_name.items()}


def _write_paper(template: str, row: Mapping[str, str], labels: Mapping[str, str], where: str) -> str:
    """Write the paper's cell; empty in a row that it lacks, whatever the template ends with."""
    if not row:
        return ""
    try:
        return fill_template(template, lambda name: labels.get(row.get(name, ""), row.get(name)))
    except ValueError as error:
        raise PlumblineError(f"{where}: paper: {template!r} has a form for numbers, and {error}; drop it") from error


def _write_here(
    table: Table, row: dict[str, Cell] | None, template: str, columns: Mapping[str, Column], labels: Mapping[str, str]
) -> str:
    """Write our cell; the word of its first column that has none, where a number is missing."""
    if row is None or not template:
        return ""

    formats = dict(_NAME.findall(template))

    def read(name: str) -> str:
        cell = row[name]
        if cell.value is None and not cell.text:
            return ""
        # A format of the template's own begins from the whole number.
        text = repr(cell.value) if "." in formats[name] else table.format_cell(row, columns[name])
        return labels.get(text, text)

    return fill_template(template, read) or next((row[name].word for name in formats if row[name].word), "")


def _list_names(template: str, permitted: Iterable[str], where: str) -> tuple[str, ...]:
    """List the columns that a template names."""
    names = tuple(dict.fromkeys(name for name, _ in _NAME.findall(template)))
    _require_known(names, permitted, where)
    if set("{}") & set(_NAME.sub("", template)):
        raise PlumblineError(f"{where}: {template!r} has a brace that is around no name with a known form; correct it")
    return names


def _require_known(names: Iterable[str], permitted: Iterable[str], where: str) -> None:
    for name in names:
        if name not in permitted:
            raise PlumblineError(
                f"{where}: there is no {name!r}{nearest(name, permitted)} (there are {sorted(permitted)})"
            )
