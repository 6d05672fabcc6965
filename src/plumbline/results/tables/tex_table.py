"""Writes a table for TeX: as a paper has room for it, with all columns for people, and its notes.

What a document's preamble needs stands in each file's first line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.results.tables.shown_table import (
    ShownColumn,
    arrange_columns,
    choose_columns,
    explain_signs,
    without_repeats,
    write_caption,
)
from plumbline.results.tables.table import Table
from plumbline.results.tables.tex_text import number_to_tex, tex
from plumbline.specs.paper import name_study

#: The packages that the files need in a document's preamble.
PACKAGES = r"\usepackage{amssymb,array,booktabs,graphicx,longtable,pdflscape}"

#: Points that a table may take before it is made smaller, a sign and the room between two columns at TeX's \\small.
ROOM, SIGN, GAP = 430.0, 4.7, 7.0

#: Signs from which on a cell of words is broken into lines, and the points that such a column takes at least.
LONG, LEAST = 20, 76.0

#: Signs of a line of a heading, at least.
HEADING = 9

#: Points of a line of LaTeX's class article, upright and in landscape, and lines of text that a page holds beside a
#: caption.
LINE, LANDSCAPE, LINES = 345.0, 540.0, 44

#: What a table over pages is tried with, until it fits: letters, their share of \\small, and the line.
OVER_PAGES = (
    (r"\small", 1.0, LINE),
    (r"\footnotesize", 0.92, LINE),
    (r"\small", 1.0, LANDSCAPE),
    (r"\footnotesize", 0.92, LANDSCAPE),
    (r"\scriptsize", 0.87, LANDSCAPE),
)

#: What words take of the room of as many signs, where the table is made smaller as a whole if they should need more.
WORDS = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """Columns in print: the letter of the preamble, the lines of the heading, and whether words are broken into lines,
    of each. `wide`: the points that all take; `lines`: how many lines the rows take."""

    columns: list[ShownColumn]
    letters: list[str]
    heads: list[list[str]]
    broken: list[bool]
    wide: float
    lines: int


def to_tex(table: Table) -> str:
    """Write the paper's columns, and others that a paper has room for, as a booktabs table with a caption; as several
    below each other where no page holds them."""
    columns = choose_columns(arrange_columns(table), estimate_width, ROOM)
    fits = _count_lines(columns) <= LINES or _plan_over_pages(columns)[0].wide <= LANDSCAPE
    return _write_file(table, "the columns for a paper", [columns] if fits else _split_columns(columns), "")


def to_tex_all(table: Table) -> str:
    """Write all readable columns, in as many tables below each other as they need; each begins with the names."""
    columns = [column for column in arrange_columns(table) if column.readable or column.paper]
    return _write_file(table, "all columns, part by part", _split_columns(columns), "-all")


def _write_file(table: Table, contents: str, parts: list[list[ShownColumn]], suffix: str) -> str:
    lines = _write_head(table, contents)
    for place, columns in enumerate(parts, start=1):
        caption = _write_caption(table, columns) + (f" Part {place} of {len(parts)}." if len(parts) > 1 else "")
        label = f"tab:{table.study}-{table.name}{suffix}" + (f"-{place}" if place > 1 else "")
        lines += [*([""] if suffix or place > 1 else []), *_write_part(columns, caption, label)]
    return "\n".join(lines) + "\n"


def to_tex_notes(table: Table) -> str:
    """Write what stands above and below a table elsewhere (paper, warnings, notes) as a list in small letters."""
    notes = [name_study(table.study, table.paper), *(table.warnings or [f"Preset: {table.preset}."])]
    notes += [*explain_signs(table, arrange_columns(table)), *table.notes]
    return (
        "\n".join(
            [
                *_write_head(table, "its notes; \\input this where they are to stand"),
                r"\begingroup\footnotesize\raggedright",
                r"\begin{itemize}",
                *(rf"\item {_protect_start(tex(note, broken=True))}" for note in notes),
                r"\end{itemize}",
                r"\par\endgroup",
            ]
        )
        + "\n"
    )


def _write_caption(table: Table, columns: Sequence[ShownColumn]) -> str:
    has_printed = any(cell.printed for column in columns for cell in column.cells)
    return write_caption(table) + " In parentheses: printed." * has_printed


def _write_head(table: Table, contents: str) -> list[str]:
    paper = f" of {table.paper}" if table.paper else ""
    about = f"{table.study} {table.name}{paper}, preset {table.preset}: {contents}"
    return [f"% needs {PACKAGES}", f"% {' '.join(about.split())}"]


def _split_columns(columns: list[ShownColumn]) -> list[list[ShownColumn]]:
    """Split columns into parts that fit in a line; each begins with the columns that name the rows."""
    names = [column for column in columns if column.label and not column.numeric][:1] or columns[:1]
    names = [column for column in columns if any(cell.again for cell in column.cells)] or names
    if any(column.of_paper for column in columns):  # whose labels tell all rows apart
        names = [column for column in columns if column.label]
    room = LANDSCAPE if _count_lines(columns) > LINES else ROOM
    parts, part, used_width = [], [], sum(map(estimate_width, names))
    names_width = used_width
    for column in columns:
        if column in names:
            continue
        width = estimate_width(column)
        if part and used_width + width > room:
            parts.append([*names, *part])
            part, used_width = [], names_width
        part, used_width = [*part, column], used_width + width
    return [*parts, [*names, *part]]


def _count_lines(columns: Sequence[ShownColumn]) -> int:
    rows = zip(*(column.cells for column in columns), strict=True)
    return sum(max(len(cell.lines) for cell in row) for row in rows)


def break_heading(heading: str, signs: int) -> list[str]:
    """Break a heading into lines that are hardly longer than the column's cells of so many signs."""
    most, lines = max(HEADING, min(signs, LONG)), [""]
    for word in re.findall(r"\s*[^\s_]{3,}_+(?=[^\s_]{3})|\s*\S+", heading):
        if lines[-1] and len(lines[-1] + word) > most:
            lines.append("")
        lines[-1] += word if lines[-1] else word.lstrip()
    return lines


def estimate_width(column: ShownColumn) -> float:
    """Estimate the points that a column takes in print; a column of long words takes the least that it needs."""
    if _is_long(column):
        return max(LEAST, max(map(len, _list_words(column)), default=0) * SIGN) + GAP
    return max(column.longest, *map(len, break_heading(column.heading, column.longest))) * SIGN + GAP


def _is_long(column: ShownColumn, more_than: int = LONG) -> bool:
    """Return whether a column's texts are broken into lines: those of more signs than `more_than`."""
    return not column.numeric and column.longest > more_than


def _plan_columns(columns: list[ShownColumn], *, line: float, share: float = 1.0, most: int = LONG) -> _Layout:
    """Plan columns, in letters of a share of \\small.

    Texts of more than `most` signs share what other columns leave of a line of so many points.
    """
    sign = SIGN * share
    heads = [break_heading(column.heading, column.longest) for column in columns]
    widths = []
    for column, head in zip(columns, heads, strict=True):
        sign_width = sign * (WORDS if line == ROOM and not column.numeric else 1.0)
        widths.append(max([column.longest, *map(len, head)]) * sign_width + GAP)
    wide = sum(widths)
    long = [_is_long(column, most) and wide > line for column in columns]
    room_left = line - sum(points for points, broken in zip(widths, long, strict=True) if not broken)
    broken = [place for place, is_broken in enumerate(long) if is_broken]
    for place in broken:
        heads[place] = break_heading(columns[place].heading, HEADING)
    least_widths = {place: max(map(len, (*_list_words(columns[place]), *heads[place]))) * sign for place in broken}
    room = _share_room(room_left, {place: min(columns[place].longest, 80) for place in broken}, least_widths)
    lines = [max(len(cell.lines) for cell in row) for row in zip(*(column.cells for column in columns), strict=True)]
    letters = ["r" if column.numeric else "l" for column in columns]
    for place, points in room.items():
        letters[place] = rf">{{\raggedright\arraybackslash}}p{{{points:.0f}pt}}"
        wide += points + GAP - widths[place]
        for row_number, cell in enumerate(columns[place].cells):
            line_count = sum(math.ceil(len(text) * sign / (0.85 * points)) for text in cell.lines)
            lines[row_number] = max(lines[row_number], line_count)
    return _Layout(columns=columns, letters=letters, heads=heads, broken=long, wide=wide, lines=sum(lines))


def _list_words(column: ShownColumn) -> list[str]:
    return [word for cell in column.cells for line in cell.lines for word in line.replace("_", " ").split()]


def _share_room(room: float, signs: Mapping[int, int], least: Mapping[int, float]) -> dict[int, float]:
    """Share points among columns by their signs; one that needs more than its share gets what it needs."""
    shares: dict[int, float] = {}
    while open_places := [place for place in signs if place not in shares]:
        remainder = room - sum(shares[place] + GAP for place in shares)
        total = sum(signs[place] for place in open_places)
        share = {place: remainder * signs[place] / total - GAP for place in open_places}
        tight = [place for place in open_places if share[place] < least[place]]
        shares |= {place: least[place] for place in tight} or share
    return {place: shares[place] for place in signs}


def _plan_over_pages(columns: list[ShownColumn]) -> tuple[_Layout, str, bool]:
    """Plan a table over pages, which cannot be made smaller as a whole: its columns, its letters, and whether it is in
    landscape."""
    for letters, share, line in OVER_PAGES:
        layout = _plan_columns(columns, line=line, share=share, most=HEADING)
        if layout.wide <= line:
            return layout, letters, line == LANDSCAPE
    return layout, letters, True


def _write_part(columns: list[ShownColumn], caption: str, label: str) -> list[str]:
    """Write one table: on one page if it fits there, else over pages."""
    layout, size, turned = _plan_columns(columns, line=ROOM), r"\small", False
    over_pages = layout.lines > LINES
    if over_pages:
        layout, size, turned = _plan_over_pages(columns)
    head, rows = _write_headings(layout), _write_rows(layout)
    begin = rf"{{@{{}}{''.join(layout.letters)}@{{}}}}"
    space = r"\setlength{\tabcolsep}{3.5pt}"
    about = [rf"\caption{{{tex(caption)}}}", rf"\label{{{label}}}"]
    if over_pages:
        return [
            *[r"\begin{landscape}"] * turned,
            rf"\begingroup{size}{space}",
            rf"\begin{{longtable}}{begin}",
            f"{about[0]}{about[1]}\\\\",
            r"\toprule",
            *head,
            r"\midrule",
            r"\endfirsthead",
            r"\toprule",
            *head,
            r"\midrule",
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *rows,
            r"\end{longtable}",
            r"\endgroup",
            *[r"\end{landscape}"] * turned,
        ]
    return [
        r"\begin{table}",
        r"\centering",
        r"\setlength{\belowcaptionskip}{4pt}",
        *about,
        rf"{size}{space}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{begin}",
        r"\toprule",
        *head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]


def _write_headings(layout: _Layout) -> list[str]:
    heads = []
    for place, (column, lines) in enumerate(zip(layout.columns, layout.heads, strict=True)):
        side = "r" if column.numeric else "l"
        heads.append(rf"\multicolumn{{1}}{{{'@{}' * (not place)}{side}}}{{{_stack_lines(lines, side)}}}")
    return [" & ".join(heads) + r" \\"]


def _stack_lines(lines: list[str], side: str) -> str:
    """Write a heading with its lines below each other."""
    texts = [_protect_start(tex(line)) for line in lines]
    return _stack(texts, side, "b") if len(texts) > 1 else texts[0]


def _stack(lines: list[str], side: str, aligned: str) -> str:
    stacked = r" \\ ".join(lines)
    return rf"\begin{{tabular}}[{aligned}]{{@{{}}{side}@{{}}}}{stacked}\end{{tabular}}"


def _write_rows(layout: _Layout) -> list[str]:
    """Write the rows. What a paper prints stands in a line of its own, which no page break parts from the first; below
    each number, where a text next to it takes several lines."""
    lines = []
    for row in zip(*(column.cells for column in without_repeats(layout.columns)), strict=True):
        firsts, seconds = [], []
        for cell, column, broken in zip(row, layout.columns, layout.broken, strict=True):
            text, printed = (
                number_to_tex(part) if column.numeric else tex(part, broken=broken)
                for part in (cell.text, cell.printed)
            )
            printed = (rf"\textbf{{\boldmath({printed})}}" if cell.bold else f"({printed})") if printed else ""
            if printed and any(layout.broken):
                side = "r" if column.numeric else "l"
                text = rf"{text} \newline {printed}" if broken else _stack([text, printed], side, "t")
                printed = ""
            firsts.append(text)
            seconds.append(printed)
        end = r" \\*" if any(seconds) else r" \\"
        lines.append(" & ".join([_protect_start(firsts[0]), *firsts[1:]]) + end)
        if any(seconds):
            lines.append(" & ".join(seconds) + r" \\[1pt]")
    return lines


def _protect_start(text: str) -> str:
    """Protect a text that stands after ``\\\\``, ``\\item`` or a rule, where a bracket or star would belong to that."""
    return f"{{}}{text}" if text.startswith(("[", "*")) else text
