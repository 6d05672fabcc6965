"""Rows whose formula gives a range: each says what it refuses, and does where that is printed."""

import csv
import io

import pytest

from plumbline.audit.audit_csv import ledger
from plumbline.audit.audit_rows import MATCH, MIDDLE, MISMATCH, AuditRows
from plumbline.audit.math_functions import between
from plumbline.core.errors import PlumblineError
from plumbline.published.printed_number import PrintedNumber, exact
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.specs import study_parts

#: Study -> its rows of ranges, at least.
LEAST = {"transfer": 5, "premature": 17, "query_free": 1}


@pytest.fixture
def planted(monkeypatch):
    """Rows of ranges of a study, and the cell that prints each: (id, cell, what it refuses)."""
    rows, check = [], AuditRows.check

    def record(self, id, quantity, source, printed, formula, **options):
        check(self, id, quantity, source, printed, formula, **options)
        if self.rows[-1].recomputed_kind == MIDDLE:
            rows.append((id, printed.cells[0], options["refuses"]))

    monkeypatch.setattr(AuditRows, "check", record)
    return rows


def plant(folder, cell, text):
    """Print `text` in a cell, with the sign that stands there."""
    file, row, column = cell
    path = folder / "published" / f"{file}.csv"
    with path.open(newline="", encoding="utf-8") as handle:
        head, *lines = list(csv.reader(handle))
    line, place = next(each for each in lines if each[0] == row), head.index(column)
    line[place] = text if line[place][0] != "-" else f"-{text}"
    new = io.StringIO()
    csv.writer(new, lineterminator="\n").writerows([head, *lines])
    path.write_text(new.getvalue(), encoding="utf-8")


@pytest.mark.parametrize("study", LEAST)
def test_a_row_of_a_range_fails_for_the_slip_that_it_names(repository, changed, planted, monkeypatch, study):
    before = {row.id: row for row in ledger(study, repository).rows}
    slips = list(planted)
    monkeypatch.undo()
    assert len(slips) >= LEAST[study]
    for id, cell, text in slips:
        path = changed / "studies" / study / "published" / f"{cell[0]}.csv"
        printed = path.read_text(encoding="utf-8")
        plant(changed / "studies" / study, cell, text)
        (row,) = (row for row in make_rows(study, changed) if row.id == id)
        assert row.verdict == MISMATCH, id
        assert before[id].printed == text or before[id].verdict != MISMATCH, id
        path.write_text(printed, encoding="utf-8")


def make_rows(study, root):
    """A study's rows, whether each can fail or not: a planted number widens the range of other rows."""
    rows = AuditRows(study, PrintedNumbers.of(study, root))
    study_parts.part(study, "audit", root).audit(rows)
    return rows.rows


def test_what_a_row_refuses_is_not_what_is_printed(repository):
    ranges = [row for study in LEAST for row in ledger(study, repository).rows if row.recomputed_kind == MIDDLE]
    assert [row.id for row in ranges if row.refuses == row.printed] == ["ssmax_drop"]  # it does not hold as printed


@pytest.fixture
def rows(tmp_path):
    return AuditRows("sixth", PrintedNumbers(tmp_path))


def test_a_row_that_holds_for_what_it_refuses_cannot_fail(rows):
    six, span = PrintedNumber(text="0.6"), between(exact(0), exact(1))
    rows.check("share", "a share", "sec 1", six, span, refuses="6.0")
    assert (rows.rows[-1].verdict, rows.rows[-1].refuses, rows.cannot_fail) == (MATCH, "6.0", [])
    for id, formula, refuses in (
        ("nothing", span, ""),
        ("holds", span, "0.9"),
        ("value", six, "0.6"),
    ):
        rows.check(id, "a share", "sec 1", six, formula, refuses=refuses)
    rows.check("plain", "a share", "sec 1", six, six)
    assert [row.id for row in rows.cannot_fail] == ["nothing", "holds", "value"]


@pytest.mark.parametrize(("refuses", "fault"), [("", "to 3.5; give"), (', refuses="3"', "to 3.5, and for 3; give")])
def test_a_studys_row_of_a_range_has_to_refuse_something(changed, refuses, fault):
    path = changed / "studies" / "query_free" / "audit" / "theory.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(', factor, refuses="1")') == 1
    path.write_text(text.replace(', factor, refuses="1")', f", factor{refuses})"), encoding="utf-8")
    with pytest.raises(PlumblineError, match=rf"'transfer_factor' holds from 1.833 {fault} `refuses`"):
        ledger("query_free", changed)


def test_a_copy_with_as_many_digits_is_the_same_number(rows):
    """Rounding is for the shorter text: 2 is no copy of 1, though both ends of their rounding meet."""
    for id, printed, original in (
        ("same", "2", "2"),
        ("other", "2", "1"),
        ("short", "2.5", "2.500"),
        ("off", "2.5", "2.56"),
    ):
        rows.copy(id, "a number", "sec 1", PrintedNumber(text=printed), PrintedNumber(text=original))
    assert [row.verdict for row in rows.rows] == [MATCH, MISMATCH, MATCH, MISMATCH]
