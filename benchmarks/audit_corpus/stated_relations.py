"""Reads a paper's tables by itself and finds the relations that their own words state; none of the audit's code.

It is the judge of planted faults, so it is small and reads little: rows end with two backslashes, cells with `&`, a
cell is its first number. What it does not read gets no planted fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

TABULAR = r"(?:tabular\*?|tabularx|longtable|NiceTabular\*?|tblr|tabu|xltabular|tabulary|supertabular)"
DIGITS = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
NUMBER = re.compile(rf"(?<![\w.\\{{@!-]){DIGITS}|(?<=\{{){DIGITS}(?=[}}\s%\\$(,])")
HIDDEN = re.compile(r"(?:\\textsubscript|_|\\(?:cell|text|row)?color(?:\[[^\]]*\])?)\s*\{[^}]*\}")
BOLD = re.compile(r"\\(?:textbf|mathbf|boldsymbol|bm|best|first)\s*\{|\\(?:bf|bfseries)\b")
AVERAGE = re.compile(r"\b(?:avg|ave|average|mean)\b", re.IGNORECASE)
TOTAL = re.compile(r"\b(?:total|sum)\b", re.IGNORECASE)
CHANGE = re.compile(
    r"\\Delta\b|Δ|\b(?:diff|difference|gap|gain|improv\w*|delta|change|sav\w+|reduc\w+|increase)\b", re.IGNORECASE
)
SHARE = re.compile(r"%")
#: Fewest lines (rows, or columns) in which a relation must hold to be one.
FEWEST = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table: where it stands in the text of its file, its digits, and whether it is bold."""

    start: int
    end: int
    text: str
    bold: bool
    raw: tuple[int, int]

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text.replace(",", ""))

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit."""
        return 0.5 * 10.0 ** -len(self.text.partition(".")[2])


@dataclass(frozen=True, slots=True)
class Table:
    """A tabular of a file: its numbers by row and column, and the words of the same places."""

    numbers: dict[tuple[int, int], Cell]
    words: dict[tuple[int, int], str]
    caption: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A number of a table that its name says how to compute: the kind, its place, and the places it follows from."""

    kind: str
    table: int
    target: tuple[int, int]
    operands: tuple[tuple[int, int], ...]

    def holds(self, tables: list[Table]) -> bool:
        """Whether it holds within the rounding of what is printed."""
        numbers = tables[self.table].numbers
        if any(place not in numbers for place in (self.target, *self.operands)):
            return False
        target, parts = numbers[self.target], [numbers[place] for place in self.operands]
        if self.kind in ("best", "least"):
            values = [part.value for part in parts]
            return target.bold and target.value == (max(values) if self.kind == "best" else min(values))
        value, slack = _compute(self.kind, parts)
        if self.kind in ("percent", "share") and slack > abs(target.value) / 4:
            return False  # operands too coarse to tell
        if self.kind == "percent" and target.text[0] not in "+-":
            value = abs(value)  # a reduction in percent is printed without its sign
        return abs(target.value - value) <= slack + target.half + 1e-9


def _compute(kind: str, parts: list[Cell]) -> tuple[float, float]:
    """What the operands give, and how far rounding may move it."""
    values, halves = [part.value for part in parts], [part.half for part in parts]
    if kind == "average":
        return sum(values) / len(values), sum(halves) / len(halves)
    if kind == "total":
        return sum(values), sum(halves)
    (first, base), slack = values, sum(halves)
    if kind == "difference":
        return first - base, slack
    base = base or float("nan")
    if kind == "share":
        return 100 * first / base, 100 * slack * (1 + abs(first / base)) / abs(base)
    return 100 * (first - base) / base, 100 * slack * (1 + abs(first / base)) / abs(base)


def read_tables(text: str) -> list[Table]:
    """Read the innermost tabulars of a file's text."""
    text = re.sub(r"(?<!\\)%[^\n]*", lambda match: " " * len(match[0]), text)
    tables = []
    for match in re.finditer(
        rf"\\begin\{{{TABULAR}\}}((?:(?!\\begin\{{{TABULAR}\}}).)*?)\\end\{{{TABULAR}\}}", text, re.S
    ):
        numbers, words = {}, {}
        for row, line in enumerate(re.finditer(r"((?:\\[^\\]|[^\\])*?)(?:\\\\|\\tabularnewline|\Z)", match[1], re.S)):
            column = 0
            for cell in re.finditer(r"((?:\\.|[^&\\])+|)(?:&|\Z)", line[1], re.S):
                start = match.start(1) + line.start(1) + cell.start(1)
                many = re.search(r"\\multicolumn\s*\{(\d+)\}\s*\{[^}]*\}", cell[1])
                words[row, column] = cell[1]
                number = _read_number(cell[1][many.end() :] if many else cell[1])
                if number:
                    at = start + (many.end() if many else 0) + number[0]
                    bold = bool(BOLD.search(cell[1]))
                    numbers[row, column] = Cell(at, at + len(number[1]), number[1], bold, (start, start + len(cell[1])))
                column += int(many[1]) if many else 1
        around = text[max(0, match.start() - 500) : match.end() + 500]
        tables.append(Table(numbers, words, around))
    return tables


def _read_number(cell: str) -> tuple[int, str] | None:
    """Where the first number of a cell stands, and its digits; nothing if words stand before it."""
    cell = HIDDEN.sub(lambda match: "~" * len(match[0]), cell)
    number = NUMBER.search(cell)
    before = re.sub(r"\\(?:[a-zA-Z]+\*?|.)(?:\[[^\]]*\])?", "", cell[: number.start()]) if number else ""
    if number is None or re.search(r"[A-Za-z]{2}", re.sub(r"\{(?:gray|green|red|blue|cell)[^}]*\}", "", before)):
        return None
    if re.match(r"\s*[-/:×A-Za-z]|,\d", cell[number.end() :]) or re.search(r"[-−]\W*(?:[a-z]+\s*\{)?$", before):
        return None  # a range, a number with a unit, or a minus outside of the markup
    return number.start(), number[0]


def find_relations(tables: list[Table]) -> Iterator[Relation]:
    """Find the relations that names state and that hold in at least three lines of a table, and in seven of ten."""
    for place, table in enumerate(tables):
        for turned in (False, True):
            yield from _find_named(place, table, tables, turned=turned)
        yield from _find_bold(place, table, tables)


def _find_named(place: int, table: Table, tables: list[Table], *, turned: bool) -> Iterator[Relation]:
    """Find what the head of a column (or the first cells of a row, if `turned`) names."""
    axis = 0 if turned else 1
    lines: dict[int, set[int]] = {}
    for number in table.numbers:
        lines.setdefault(number[axis], set()).add(number[1 - axis])
    for line in sorted(lines):
        name = _name_line(table, line, turned=turned)
        kind = next((kind for kind, words in KINDS.items() if words.search(name)), "")
        others = [other for other in sorted(lines) if other != line and not _is_named(table, other, turned=turned)]
        choices: list[tuple[str, tuple[int, ...]]] = []
        if kind in ("average", "total"):
            runs = [[o for o in others if o < line], [o for o in others if o > line], others, _next_to(others, line)]
            choices = [(kind, tuple(run)) for run in runs if len(run) > 1]
        elif kind:
            kinds = ("difference", "percent") if kind == "change" else (kind,)
            choices = [(kind, pair) for kind in kinds for pair in permutations(others[:12], 2)]
        best: list[Relation] = []
        for kind, operands in choices:
            relations = [
                Relation(kind, place, _at(line, across, axis), tuple(_at(o, across, axis) for o in operands))
                for across in sorted(lines[line])
                if all(_at(o, across, axis) in table.numbers for o in operands)
            ]
            valid = [relation for relation in relations if relation.holds(tables)]
            if len(valid) >= max(FEWEST, 0.7 * len(relations)) and len(valid) > len(best):
                best = valid
        yield from best


KINDS = {"average": AVERAGE, "total": TOTAL, "change": CHANGE, "share": SHARE}


def _at(line: int, across: int, axis: int) -> tuple[int, int]:
    return (line, across) if axis == 0 else (across, line)


def _name_line(table: Table, line: int, *, turned: bool) -> str:
    """The words of a row's first cells, or of the cells above a column's first number."""
    if turned:
        first = min(column for row, column in table.numbers if row == line)
        return " ".join(table.words.get((line, column), "") for column in range(first))
    first = min(row for row, column in table.numbers if column == line)
    return " ".join(table.words.get((row, line), "") for row in range(first))


def _is_named(table: Table, line: int, *, turned: bool) -> bool:
    name = _name_line(table, line, turned=turned)
    return any(words.search(name) for words in KINDS.values())


def _next_to(others: list[int], line: int) -> list[int]:
    """The lines directly before this one, back to the first gap."""
    run: list[int] = []
    for other in sorted((o for o in others if o < line), reverse=True):
        if run and run[-1] - other > 1:
            break
        run.append(other)
    return sorted(run)


def _find_bold(place: int, table: Table, tables: list[Table]) -> Iterator[Relation]:
    """Find bold numbers that are all the best of their column (or row, or block of rows): with not one exception in at
    least three of them, and best the same way wherever no arrow says another."""
    rules = [row for row, line in sorted(_first_words(table).items()) if re.search(r"\\(?:mid|h)(?:rule|line)", line)]
    for axis, blocks in ((1, [0]), (0, [0]), (1, rules or [0])):
        for kind in ("best", "least"):
            relations, lines = [], set()
            for line in sorted({number[axis] for number in table.numbers}):
                arrow = re.search(r"uparrow|↑|downarrow|↓", _name_line(table, line, turned=axis == 0))
                way = kind if not arrow else "best" if arrow[0] in ("uparrow", "↑") else "least"
                for start, end in zip(blocks, [*blocks[1:], 10_000], strict=True):
                    cells = tuple(
                        sorted(n for n in table.numbers if n[axis] == line and (axis == 0 or start <= n[0] < end))
                    )
                    bold = [number for number in cells if table.numbers[number].bold]
                    if len(cells) >= FEWEST and 0 < len(bold) <= len(cells) / 2:
                        lines.add((line, start))
                        relations += [Relation(way, place, number, cells) for number in bold]
            if len(lines) >= FEWEST and all(relation.holds(tables) for relation in relations):
                yield from relations
                return


def _first_words(table: Table) -> dict[int, str]:
    """The words of each row's first cell."""
    return {row: words for (row, column), words in table.words.items() if column == 0}


def reach(main: Path, folder: Path) -> list[Path]:
    """The files that a paper's main file reads, itself first."""
    files: list[Path] = []
    waiting = [main]
    while waiting:
        file = waiting.pop(0)
        if file in files or not file.is_file() or folder.resolve() not in file.resolve().parents:
            continue
        files.append(file)
        text = re.sub(r"(?<!\\)%[^\n]*", "", file.read_text(encoding="utf-8", errors="replace"))
        for name in re.findall(r"\\(?:input|include|subfile)\s*\{?\s*\"?([^}\s\\\"]+)", text):
            for base in (main.parent, file.parent):
                waiting += [base / name, base / f"{name}.tex"]
    return files
