"""Writes a table for TeX: as a paper has room for it, with all columns for people, and its notes.

What a document's preamble needs stands in each file's first line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.results.tables.paper_columns import (
    GAP,
    HEADING,
    LONG,
    ROOM,
    SIGN,
    break_heading,
    choose_paper_columns,
    estimate_width,
    is_long,
    longest_cell,
    write_cells,
)
from plumbline.results.tables.provenance import write_headings
from plumbline.results.tables.table import EXACT_NOTE, Column, Table
from plumbline.results.tables.tex_text import number_to_tex, tex
from plumbline.specs.corpus import REPRODUCTION
from plumbline.specs.paper import name_study

#: The packages that the files need in a document's preamble.
PACKAGES = r"\usepackage{amssymb,array,booktabs,graphicx,longtable,pdflscape}"

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

#: How the two kinds of numbers are called below a heading that they share.
SHORT = {"reproduced": "repr.", "published": "publ."}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """Columns in print: the letter of the preamble, the lines of the heading, and whether words are broken into lines,
    of each. `wide`: the points that all take; `lines`: how many lines the rows take."""

    columns: list[Column]
    letters: list[str]
    heads: list[list[str]]
    broken: list[bool]
    wide: float
    lines: int


def to_tex(table: Table) -> str:
    """Write the columns that a paper has room for as a booktabs table, with a caption of two lines."""
    name = f"{table.study}-{table.name}"
    body = _write_part(table, choose_paper_columns(table), write_caption(table), f"tab:{name}")
    return "\n".join([*_write_head(table, "the columns for a paper"), *body]) + "\n"


def to_tex_all(table: Table) -> str:
    """Write all readable columns, in as many tables below each other as they need; each begins with the names."""
    parts = _split_columns(table)
    lines = []
    for place, columns in enumerate(parts, start=1):
        suffix = f" Part {place} of {len(parts)}." if len(parts) > 1 else ""
        label = f"tab:{table.study}-{table.name}-all" + (f"-{place}" if place > 1 else "")
        lines += ["", *_write_part(table, columns, f"{write_caption(table)}{suffix}", label)]
    return "\n".join([*_write_head(table, "all columns, part by part"), *lines]) + "\n"


def to_tex_notes(table: Table) -> str:
    """Write what stands above and below a table elsewhere (paper, warnings, notes) as a list in small letters."""
    notes = [name_study(table.study, table.paper), *(table.warnings or [f"Preset: {table.preset}."]), *table.notes]
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


def write_caption(table: Table) -> str:
    """Write a caption of about two lines: title, preset and scale, and which numbers stand side by side."""
    scales = list(dict.fromkeys(str(row["scale"].value) for row in table.rows if "scale" in row))
    if EXACT_NOTE in table.warnings:
        sentence = "Computed, without training."
    else:
        where = f", {' and '.join(scales)}" if scales and not all(scale in table.title for scale in scales) else ""
        restriction = "" if table.preset == REPRODUCTION else ": no reproduction of the paper's numbers"
        sentence = f"Preset {table.preset}{where}{restriction}."
    both = {"reproduced", "published"} <= {column.kind for column in choose_paper_columns(table)}
    pairing = "Reproduced (repr.) beside published (publ.) numbers." if both else ""
    return " ".join(text for text in (table.title, sentence, pairing) if text)


def _write_head(table: Table, contents: str) -> list[str]:
    paper = f" of {table.paper}" if table.paper else ""
    about = f"{table.study} {table.name}{paper}, preset {table.preset}: {contents}"
    return [f"% needs {PACKAGES}", f"% {' '.join(about.split())}"]


def _split_columns(table: Table) -> list[list[Column]]:
    """Split all readable columns into parts that fit in a line; each begins with the columns that name the rows."""
    columns = [column for column in table.columns if column.readable or column.paper]
    names = [column for column in columns if column.kind == "label" and not column.numeric][:1] or columns[:1]
    names = [column for column in columns if column.once] or names
    room = LANDSCAPE if len(table.rows) > LINES else ROOM
    parts, part, used = [], [], 0.0
    first = sum(estimate_width(table, column) for column in names)
    rest = [column for column in columns if column not in names]
    place = 0
    while place < len(rest):
        pair = rest[place : place + 1 + _is_pair(rest, place)]
        needed = sum(estimate_width(table, column) for column in pair)
        if part and first + used + needed > room:
            parts.append([*names, *part])
            part, used = [], 0.0
        part, used, place = [*part, *pair], used + needed, place + len(pair)
    return [*parts, [*names, *part]]


def _is_pair(columns: Sequence[Column], place: int) -> bool:
    """Return whether the printed numbers stand right next to a column of reproduced ones, under the same heading."""
    kinds = [column.kind for column in columns[place : place + 2]]
    return kinds == list(SHORT) and columns[place].header == columns[place + 1].header


def _single_heading(column: Column, heading: str) -> str:
    """Write the heading of a column that shares none; it names the kind of number if both kinds are in the table."""
    either = column.kind == "published" or heading != column.header
    return f"{column.header} ({SHORT[column.kind]})" if either else heading


def _plan_columns(table: Table, columns: list[Column], *, line: float, share: float = 1.0, most: int = LONG) -> _Layout:
    """Plan columns, in letters of a share of \\small.

    Texts of more than `most` signs share what other columns leave of a line of so many points.
    """
    sign = SIGN * share
    whole = write_headings(table.columns)
    paired = [_is_pair(columns, place) or (place > 0 and _is_pair(columns, place - 1)) for place in range(len(columns))]
    signs = [longest_cell(table, column) for column in columns]
    heads, full = [], []
    for column, in_pair, count in zip(columns, paired, signs, strict=True):
        heading = column.header if in_pair else _single_heading(column, whole[column.name])
        heads.append(break_heading(heading, 2 * count + 1 if in_pair else count))
        sign_width = sign * (WORDS if line == ROOM and not column.numeric else 1.0)
        full.append(max([count, *([len("repr.")] if in_pair else map(len, heads[-1]))]) * sign_width + GAP)
    wide = sum(full)
    long = [is_long(table, column, most) and wide > line for column in columns]
    room_left = line - sum(points for points, broken in zip(full, long, strict=True) if not broken)
    parts = [min(count, 80) if broken else 0 for count, broken in zip(signs, long, strict=True)]
    letters, lines = [], [1] * len(table.rows)
    for place, column in enumerate(columns):
        letters.append("r" if column.numeric else "l")
        if not long[place]:
            continue
        heads[place] = break_heading(_single_heading(column, whole[column.name]), HEADING)
        texts = [word for row in table.rows for word in table.format_cell(row, column).replace("_", " ").split()]
        least = max(len(word) for word in (*texts, *heads[place]))
        points = max(least * sign, room_left * parts[place] / sum(parts) - GAP)
        letters[-1] = rf">{{\raggedright\arraybackslash}}p{{{points:.0f}pt}}"
        wide += points + GAP - full[place]
        for row_number, row in enumerate(table.rows):
            lines[row_number] = max(
                lines[row_number], math.ceil(len(table.format_cell(row, column)) * sign / (0.85 * points))
            )
    return _Layout(columns=columns, letters=letters, heads=heads, broken=long, wide=wide, lines=sum(lines))


def _plan_over_pages(table: Table, columns: list[Column]) -> tuple[_Layout, str, bool]:
    """Plan a table over pages, which cannot be made smaller as a whole: its columns, its letters, and whether it is in
    landscape."""
    for letters, share, line in OVER_PAGES:
        layout = _plan_columns(table, columns, line=line, share=share, most=HEADING)
        if layout.wide <= line:
            return layout, letters, line == LANDSCAPE
    return layout, letters, True


def _write_part(table: Table, columns: list[Column], caption: str, label: str) -> list[str]:
    """Write one table: on one page if it fits there, else over pages."""
    layout, size, turned = _plan_columns(table, columns, line=ROOM), r"\small", False
    over_pages = layout.lines > LINES
    if over_pages:
        layout, size, turned = _plan_over_pages(table, columns)
    head, rows = _write_headings(layout), _write_rows(table, layout)
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
    """Write the lines of headings: one that reproduced and published numbers share stands above both."""
    above, below, rules = [], [], []
    place, columns = 0, layout.columns
    while place < len(columns):
        if _is_pair(columns, place):
            above.append(rf"\multicolumn{{2}}{{c}}{{{_stack_lines(layout.heads[place], 'c')}}}")
            below += [rf"\multicolumn{{1}}{{r}}{{{SHORT[kind]}}}" for kind in SHORT]
            rules.append(rf"\cmidrule(lr){{{place + 1}-{place + 2}}}")
            place += 2
            continue
        side = "r" if columns[place].numeric else "l"
        above.append("")
        below.append(rf"\multicolumn{{1}}{{{'@{}' * (not place)}{side}}}{{{_stack_lines(layout.heads[place], side)}}}")
        place += 1
    end = r" \\"
    return [" & ".join(above) + end, *rules, " & ".join(below) + end] if rules else [" & ".join(below) + end]


def _stack_lines(lines: list[str], side: str) -> str:
    """Write a heading with its lines below each other."""
    written = [_protect_start(tex(line)) for line in lines]
    if len(written) == 1:
        return written[0]
    stacked = r" \\ ".join(written)
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{stacked}\end{{tabular}}"


def _write_rows(table: Table, layout: _Layout) -> list[str]:
    lines = []
    for cells in write_cells(table, layout.columns):
        written = [
            number_to_tex(cell) if column.numeric else tex(cell, broken=broken)
            for cell, column, broken in zip(cells, layout.columns, layout.broken, strict=True)
        ]
        lines.append(" & ".join([_protect_start(written[0]), *written[1:]]) + r" \\")
    return lines


def _protect_start(text: str) -> str:
    """Protect a text that stands after ``\\\\``, ``\\item`` or a rule, where a bracket or star would belong to that."""
    return f"{{}}{text}" if text.startswith(("[", "*")) else text
