"""Finds relations among the numbers of a table that nobody stated, and checks every row against those that hold.

Differences, percentages, ratios, sums, means, against another column or against a baseline's row; perplexity against
loss; p against z or t; means that no whole numbers give; ranks; bold and underlined numbers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from plumbline.audit.paper import inside_cells, mark_checks, setup_checks, statistic_checks
from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.candidates import Budget, Candidate, list_candidates
from plumbline.audit.paper.doubts import Doubt, find_doubts
from plumbline.audit.paper.evidence import SAID, SAID_ALL, Agreement, tail
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.line_types import VALUE
from plumbline.audit.paper.lines import LINES, PLACES, SMALL, Line, Lines, columns_of, rows_of
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.audit.paper.sentence_checks import Sentence

#: How often each row is read to measure a candidate, and what a number costs in a row that is checked, which is exact.
COST, EXACT = 12, 20

#: Share of the rows from which a relation that a name states is reported, though it is not checked.
SPOKEN = 1 / 3

#: Means or totals of all other lines, and of all on either side.
COMPLETE = 3

#: Why a total of one column or two accuses nobody.
ALONE = "no other totals of its table, or one alone, agree"

#: Shuffles of a table's cells, and the share of them that may agree as often as the cells as printed.
SHUFFLES, SHUFFLED_SHARE = 39, 0.1

#: Most numbers that the shuffles for one line compute with.
SHUFFLED_NUMBERS = 1_000_000


def check_relations(
    table: PaperTable, part: TablePart, sentences: Sequence[Sentence], ledger: Ledger
) -> dict[str, list[str]]:
    """Look for relations along the columns and along the rows of a table, and check their rows.

    Returns:
        The types of its rows and columns that are more than values, each with what shows it.
    """
    relation_parts: set[tuple[str, frozenset[int]]] = set()
    related_lines: set[tuple[str, int]] = set()
    by_column, by_row = columns_of(table, part.skip), rows_of(table, part.skip)
    if len(table.rows) > PLACES or len(table.columns) > LINES:
        ledger.dropped.append(f"{table.name}: only its first {PLACES} rows and {LINES} columns are looked at")
    for lines in (by_column, by_row):
        budget = Budget()
        # What a name states goes before what none does, so that a difference is found as one and not as a part of it.
        for stated in (True, False):
            for target in lines.lines:
                aside = not stated and lines is by_row and not by_column.is_small(target.name)
                if (lines.along, target.place) not in related_lines and not aside:
                    _find_relation(target, lines, part, ledger, relation_parts, related_lines, budget, stated=stated)
        if budget.left < 0:
            ledger.dropped.append(f"{table.name}: too large to look for every relation among its {lines.along}s")
    for lines in (by_column, by_row):
        setup_checks.check_setups(lines, sentences, ledger)
    inside_cells.check_cells(by_column, by_row, ledger)
    statistic_checks.check_statistics(by_column, part, ledger)
    explained = {
        along: {line.name for line in lines.lines if (along, line.place) in related_lines}
        for along, lines in (("column", by_column), ("row", by_row))
    }
    mark_checks.check_marks(by_column, by_row, part, ledger, explained)
    types = {**by_column.types, **by_row.types}
    return {key: [line_type.type, line_type.evidence] for key, line_type in types.items() if line_type.type != VALUE}


def _find_relation(
    target: Line,
    lines: Lines,
    part: TablePart,
    ledger: Ledger,
    relation_parts: set[tuple[str, frozenset[int]]],
    related_lines: set[tuple[str, int]],
    budget: Budget,
    *,
    stated: bool,
) -> None:
    """Take the relation of a line to others that most rows agree with, if chance does not explain it.

    `stated`: those that a name states; else the others.
    """
    tried: list[tuple[Candidate, Agreement]] = []
    for candidate in list_candidates(target, lines, part, budget, stated):
        if (lines.along, candidate.parts) not in relation_parts:
            tried.append((candidate, candidate.measure()))
            budget.left -= COST * len(candidate.computed)
    tries = sum(agreement.rows >= 2 for _, agreement in tried)
    ledger.searches += stated and tries > 0
    # A row that no name calls a difference is only found to recognise it as one: it does not compete with the others.
    checked = stated or lines.along == "column"
    holding = [pair for pair in tried if pair[1].holds(tries, stated=stated or not checked)]
    is_known = False
    if stated and not holding:
        # What another table of the paper does by the same names leaves nothing to choose.
        holding = [pair for pair in tried if pair[0].sentence in ledger.known_relations and pair[1].holds_again()]
        is_known, tries = bool(holding), len(holding) or tries
    if not stated and checked:
        holding = [pair for pair in holding if pair[0].measure_against_shuffled().holds(tries, stated=False)]
    if holding:
        best, agreement = max(
            holding, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].agree, len(pair[0].parts))
        )
        relation_parts.add((lines.along, best.parts))
        related_lines.add((lines.along, target.place))
        may_be_accused = stated and not is_known and agreement.agree < agreement.rows
        if may_be_accused and _holds_of_shuffled([pair[0] for pair in tried], best):
            ledger.drop(lines.table.name, best.sentence, best.target, best.computed)
        elif checked:
            budget.left -= EXACT * len(best.computed) * len(best.operands)
            _check(best, lines, ledger, agreement.chance_of_itself(tries), stated=stated)
            ledger.known_relations.update([best.sentence] * stated)
        return
    if stated:
        _drop_stated(tried, tries, lines, ledger)


def _holds_of_shuffled(tried: Sequence[Candidate], best: Candidate) -> bool:
    """Whether one of the relations that were tried agrees as often with shuffled cells of the table.

    This pays for every choice at once: operands, directions, rows; it is only asked where a row would be accused, and
    what is too large to shuffle accuses nobody.
    """
    draw, least = random.Random(0), best.count_agreeing() / len(best.computed)
    rivals = [candidate for candidate in tried if 3 * len(candidate.computed) >= 2 * len(best.computed)]
    numbers = sum(len(candidate.computed) * len(candidate.operands) for candidate in rivals)
    times = min(SHUFFLES, SHUFFLED_NUMBERS // numbers)
    hits = sum(
        any(candidate.count_shuffled(draw) >= least * len(candidate.computed) - 1e-9 for candidate in rivals)
        for _ in range(times)
    )
    return not times or hits > SHUFFLED_SHARE * times


def _drop_stated(tried: Sequence[tuple[Candidate, Agreement]], tries: int, lines: Lines, ledger: Ledger) -> None:
    """Report the relation that a name states and that too few rows agree with, with what it gives where it does not."""
    spoken = [
        (candidate, agreement)
        for candidate, agreement in tried
        if (candidate.spoken and agreement.agree >= 3 and agreement.agree >= SPOKEN * agreement.rows)
        or (candidate.small and agreement.agree >= 1 and agreement.rows <= SMALL + 1)
        or (candidate.plain and 0 < agreement.rows < SMALL)
        or _is_half_kept(candidate, agreement)
    ]
    total = next((candidate for candidate, _ in tried if candidate.plain_total), None)
    if total is not None:
        all_agree = total.count_agreeing() == len(total.computed)
        _check(total, lines, ledger, 0.0, stated=True, alone="" if all_agree else ALONE)
    elif spoken:
        best, agreement = max(spoken, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].rows, pair[0].plain))
        doubted = _is_half_kept(best, agreement) or _is_doubted(agreement, tries)
        doubted = doubted and agreement.rows - agreement.agree > len(_find_doubts(best, lines))
        ledger.drop(lines.table.name, best.sentence, best.target, best.computed, doubted=doubted)


def _is_half_kept(candidate: Candidate, agreement: Agreement) -> bool:
    """Whether half of the rows agree with the mean or total that a name most plainly states, and more than by chance:
    a name leaves few choices, so that two rows are evidence where the others do not agree."""
    agree, rows, chance = agreement.agree, agreement.rows, agreement.chance
    if not candidate.complete or not max(2, rows / 2) <= agree < rows:
        return False
    return COMPLETE * tail(agree, rows, chance) < (SAID_ALL if 2 * agree > rows else SAID)


def _is_doubted(agreement: Agreement, tries: int) -> bool:
    """Whether so many rows agree with a relation that is not checked that the others may be wrong: all but one of four
    or more, or most of them and more than chance would have it."""
    agree, rows, chance = agreement.agree, agreement.rows, agreement.chance
    if agree < 3 or agree == rows or chance >= 1:
        return False
    most = 2 * agree > rows and tail(agree, rows, chance) * max(1, tries) < SAID_ALL
    return most or agree == rows - 1


def _find_doubts(candidate: Candidate, lines: Lines) -> dict[str, Doubt]:
    return find_doubts(candidate.target, candidate.of, candidate.operands, candidate.computed, lines)


def _check(candidate: Candidate, lines: Lines, ledger: Ledger, chance: float, *, stated: bool, alone: str = "") -> None:
    """Check each row of a relation; `stated`: a name states it; `chance`: that so many rows agree of themselves;
    `alone`: why it accuses nobody."""
    table, target = lines.table.name, candidate.target
    doubts = _find_doubts(candidate, lines)
    for key, doubt in doubts.items():
        if doubt.explains:
            text = f"not {key} (printed {target.numbers[key]}): {doubt.reason}"
            ledger.dropped.append(f"{table}: {candidate.sentence}: {text}")
    explained = {key for key, doubt in doubts.items() if doubt.explains}
    keys = [key for key in candidate.computed if key in target.ends and key not in explained]
    rows = [
        RelationRow(
            key,
            ", ".join((table, *lines.name_place(target.name, key))),
            target.numbers[key],
            candidate.formula(key),
            stated,
            doubts[key].reason if key in doubts else alone,
        )
        for key in keys
    ]
    ledger.hold(table, target.name, candidate.sentence, rows, chance=chance)
