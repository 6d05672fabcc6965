"""Coverage: a printed number that no row reads and no list names is seen."""

import pytest

from plumbline.audit.audit_csv import read_coverage
from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.coverage import UncheckedNumbers, list_printed_cells, measure_coverage, read_unchecked
from plumbline.core.errors import PlumblineError
from plumbline.published.expression import collect_cells
from plumbline.published.printed_number import PrintedColumn, PrintedNumber
from plumbline.published.printed_numbers import PrintedNumbers


@pytest.fixture
def small(tmp_path):
    """A paper with a table whose rows repeat a key, and one number in running text."""
    folder = tmp_path / "studies" / "sixth" / "published"
    folder.mkdir(parents=True)
    (folder / "table1.csv").write_text("method,seed,loss,word\nours,1,2.71,yes\nours,2,,no\ntheirs,1,-3e-1,\n")
    (folder / "prose.csv").write_text("id,printed,exact,source\ngain,0.3,no,abstract\n")
    return PrintedNumbers(folder)


def test_every_number_outside_the_key_is_a_cell(small):
    assert list_printed_cells(small) == [
        ("table1", "ours#1", "seed"),
        ("table1", "ours#1", "loss"),
        ("table1", "ours#2", "seed"),
        ("table1", "theirs", "seed"),
        ("table1", "theirs", "loss"),
        ("prose", "gain", "printed"),
    ]


def test_a_row_of_more_or_fewer_cells_than_the_head_is_named(small):
    (small.directory / "table1.csv").write_text("method,loss\nours,2.71\ntheirs,2.7,1\n")
    with pytest.raises(PlumblineError, match=r"table1.csv.*'theirs' has 3.*head 2"):
        list_printed_cells(small)


def test_a_cell_is_read_listed_or_missing(small):
    ledger = AuditRows("sixth", small)
    table, gain = ledger.table("table1"), ledger.prose("gain")
    loss = table["theirs", "loss"] - table["ours#1", "loss"]  # made, and in no row
    ledger.check("gain", "gain", "abstract", gain, abs(table["theirs", "loss"].exactly()))
    entries = [
        UncheckedNumbers(file="table1", columns=("seed",), reason="A name."),
        UncheckedNumbers(file="table1", rows=("theirs",), columns=("loss",), reason="Read after all."),
    ]
    coverage = measure_coverage(small, ledger.read, entries)
    assert (coverage.printed, coverage.read) == (6, 2) and ("table1", "ours#1", "loss") in collect_cells(loss)
    assert {reason: len(cells) for reason, cells in coverage.listed.items()} == {"A name.": 3}
    assert coverage.missing == [("table1", "ours#1", "loss")]
    assert coverage.idle == [entries[1]]


def test_a_new_cell_of_a_document_is_missed(repository, changed):
    path = changed / "studies" / "premature" / "published" / "table12.csv"
    path.write_text(path.read_text().replace("setting_id,", "setting_id,new,").replace("control,", "control,7,", 1))
    path.write_text(path.read_text().replace("intervention,", "intervention,,", 1))
    assert read_coverage("premature", repository).missing == []
    assert read_coverage("premature", changed).missing == [("table12", "control", "new")]


def test_numbers_made_of_printed_ones_keep_their_cells():
    number = PrintedNumber(text="-0.5", cells=(("table1", "ours", "loss"),))
    made = (number.exactly(), number.exactly().as_rounded(), number.without_sign(), number.as_bound())
    assert [(one.text, one.cells) for one in made] == [(text, number.cells) for text in ("-0.5", "-0.5", "0.5", "-0.5")]
    column = PrintedColumn(name="table1[:].loss", numbers=(number.without_sign(), number.without_sign()))
    assert collect_cells(-column.exactly()) == collect_cells(-column.as_bounds()) == set(number.cells)


def test_the_list_is_closed(tmp_path):
    path = tmp_path / "unchecked_numbers.yaml"
    assert read_unchecked(path) == []
    path.write_text("unchecked: [{file: table1, row: [x], reason: why}]\n")
    with pytest.raises(PlumblineError, match="'row'; did you mean 'rows'"):
        read_unchecked(path)
    path.write_text("unchecked: [{file: table1}]\n")
    with pytest.raises(PlumblineError, match="'reason' is missing; add it"):
        read_unchecked(path)
