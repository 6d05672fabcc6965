"""Finds columns that say what runs were evaluated on, where the methods of a table differ in them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from plumbline.verdict.formatting import name_some, quote
from plumbline.verdict.sources.column_names import EVALUATED, SETTINGS, SPLITS, has_word
from plumbline.verdict.sources.row_files import FileRow, parse_float

#: What begins as a number that is measured: ``3.1``, ``54.2 ± 0.4``, ``1e-3``.
_DECIMAL = re.compile(r"\W*(?:\d*\.\d|\d+e-)")
#: Values of one method that a sentence names.
_NAMED = 3


def list_other_evaluations(counted_rows: Mapping[tuple[str, str], FileRow], names: Iterable[str]) -> list[str]:
    """State in which columns the methods differ, of those that may say what runs were evaluated on.

    `counted_rows`: the row of each run that counts, by method and seed. Numbers that are no whole ones, or differ
    within a method, are measured; what each run has another of is a name of it.
    """
    sentences = []
    for name in sorted(names):
        cells = {row.cells[name].lower() for row in counted_rows.values()} - {""}
        is_by_name = has_word(name, EVALUATED) and not has_word(name, SETTINGS)
        if not is_by_name and not (cells and cells <= SPLITS):
            continue
        counts = defaultdict[str, Counter[str]](Counter)
        for (method, _), row in counted_rows.items():
            counts[method][row.cells[name]] += 1
        shares = {
            method: tuple(sorted((word, number / of_method.total()) for word, number in of_method.items()))
            for method, of_method in counts.items()
        }
        if len({*shares.values()}) < 2 or _is_of_each_run(counts):
            continue
        methods: dict[str, list[str]] = {}
        for method, of_method in counts.items():
            cell_names = name_some([quote(word[:40]) for word in sorted(of_method)], _NAMED)
            methods.setdefault(cell_names, []).append(quote(method))
        differences = "; ".join(
            f"{cell_names} of {name_some(method_names)}" for cell_names, method_names in [*methods.items()][:_NAMED]
        )
        sentences.append(
            f"Column {quote(name)} may say what runs were evaluated on, and the methods differ in it: {differences}."
        )
    return sentences


def _is_of_each_run(counts: Mapping[str, Counter[str]]) -> bool:
    """Whether a column's cells are of the run: numbers that are measured, or another one of each run."""
    words = Counter(word for of_method in counts.values() for word in of_method.elements())
    if any(of_method.total() > 1 for of_method in counts.values()) and max(words.values()) == 1:
        return True
    if any(map(_DECIMAL.match, words)):
        return True
    has_number = any(parse_float(word.replace(",", "")) is not None for word in words)
    return has_number and any(len(of_method) > 1 for of_method in counts.values())
