"""What an audit finds without instructions: no fault in sound tables, and the one that was put into others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder

from .made_up_tables import MadeUpTable, faulty, sound


def audit_table(folder: Path, text: str) -> PaperAudit:
    folder.mkdir(exist_ok=True)
    (folder / "t.csv").write_text(text)
    return audit_folder(folder)


def audits(folder: Path, make: object, seed: int, count: int) -> list[tuple[MadeUpTable, PaperAudit]]:
    draw = random.Random(seed)
    tables = [make(draw) for _ in range(count)]  # type: ignore[operator]
    return [(table, audit_table(folder, table.text())) for table in tables]


ROWS = "m,A,B,C,Avg.\nx,50.0,51.0,52.0,51.0\ny,50.5,51.3,52.1,51.3\nz,51.0,50.0,52.0,51.0\nTied,53.0,52.1,52.1,53.4\n"
COUNTED = "m,n,Acc,Δ\nBase,3,50.0,--\nx,3,51.0,+1.0\ny,5,52.4,+2.2\n"
TWO = "m,A,B,C,Avg.,Δ\nBaseline,50.0,51.0,52.0,51.0,--\nTied,53.0,52.1,52.1,53.4,+2.1\n"


@pytest.mark.parametrize(
    ("table", "reasons"),
    [
        (ROWS, [("Avg.", "A, B, C", "3 of 4", "chance", "Tied (printed 53.4, gives 52.4)")]),
        (TWO, [("Avg.", "A, B, C", "1 of 2", "too few", "Tied (printed 53.4, gives 52.4)"),
               ("Δ", "Avg.", "Baseline", "0 of 1", "too few", "Tied (printed 2.1, gives 2.4)")]),
        # Δ is not a difference of n, though 2 and 0, as rounded numbers, can be 2.2 and 1.0.
        (COUNTED, [("Δ", "Acc", "Base", "1 of 2", "too few", "y (printed 2.2, gives 2.4)")]),
        ("task,acc\na,50.0\nb,60.0\nAverage,56.0\n",
         [("Average", "a, b", "0 of 1", "too few", "acc (printed 56.0, gives 55.0)")]),
        ("m,val loss,val ppl\nx,3.20,25.9\n",
         [("val ppl", "val loss", "0 of 1", "too few", "x (printed 25.9, gives 24.5)")]),
    ],
    ids=["three of four", "two", "beside a count", "one column", "one row"],
)  # fmt: skip
def test_a_small_table_is_never_silent(tmp_path: Path, table: str, reasons: list[tuple[str, ...]]) -> None:
    audit = audit_table(tmp_path, table)
    assert audit.contradictions == []
    for reason, facts in zip(audit.dropped, reasons, strict=True):
        assert reason.startswith(f"t: {facts[0]} ") and all(fact in reason for fact in facts)


def test_what_the_audit_file_checks_is_not_named_again(tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text("[checks]\na = 't[:].\"Avg.\" = t[:].C'\n")
    assert audit_table(tmp_path, ROWS).dropped == []


def test_perplexity_needs_no_vote_where_names_say_it(tmp_path: Path) -> None:
    (broken,) = audit_table(tmp_path, "m,loss,ppl\nx,3.20,24.53\ny,3.10,23.20\n").contradictions
    assert broken["quantity"] == "t, y, ppl" and broken["recomputed"] == pytest.approx(22.198, abs=1e-3)
    # A perplexity of words, or of another split, is e to the loss in no row.
    result = audit_table(tmp_path, "m,loss,ppl\nx,3.20,31.2\ny,3.10,28.0\nz,3.00,25.1\n")
    assert result.contradictions == [] and "0 of 3 agree" in result.dropped[0]
    assert audit_table(tmp_path, "m,train loss,val loss,test ppl\nx,3.20,3.3,24.53\ny,3.10,3.2,23.20\n").rows == []


TABLES = pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])


@TABLES
def test_sound_tables_have_no_finding(tmp_path: Path, count: int) -> None:
    pairs = audits(tmp_path / "t", sound, 1, count)
    alarms = [(table.text(), audit.contradictions) for table, audit in pairs if audit.contradictions]
    assert sum(len(audit.relations) for _, audit in pairs) > 0.75 * count  # it does look
    assert len(alarms) == 0, alarms[0]


@TABLES
def test_of_tables_with_one_fault_most_are_found(tmp_path: Path, count: int) -> None:
    pairs = audits(tmp_path / "t", faulty, 2, count)
    faulty_count = sum(bool(audit.contradictions) for _, audit in pairs)
    assert faulty_count >= 0.9 * count, faulty_count


LONE = 'part,Documents\nweb,"12,310"\ncode,"4,118"\nbooks,982\nnews,"3,405"\nTotal,"{}"\n'


@pytest.mark.parametrize(
    ("total", "answer"), [("20,815", "nothing contradicts"), ("20,185", "likely"), ("31,400", "nothing was checked")]
)
def test_a_lone_total_is_checked_and_accuses_nobody(tmp_path: Path, total: str, answer: str) -> None:
    assert audit_table(tmp_path, LONE.format(total)).answer == answer


def test_a_bold_number_that_was_moved_is_likely(tmp_path: Path) -> None:
    table = "m,A,B,C,D,E\nx,**61.2**,50.1,40.3,**33.9**,70.2\ny,60.3,**51.2**,39.9,32.8,71.0\n" \
        "z,58.8,49.0,**42.7**,31.0,70.8\nv,59.9,50.3,41.1,30.2,**72.6**\nw,57.1,48.8,38.4,30.9,69.9\n"  # fmt: skip
    assert audit_table(tmp_path, table).answer == "nothing contradicts"
    audit = audit_table(tmp_path, table.replace("**42.7**", "42.7").replace("41.1", "**41.1**"))
    assert [row["quantity"] for row in audit.likely] == ["t, v, C: its rank, printed bold (best)"]


FOUR = "m,A,B,C,D\nx,88.1,85.6,**93.5**,90.7\ny,76.5,79.3,82.8,83.8\nz,78.2,75.4,90.5,**91.2**\n" \
    "v,**89.1**,**86.4**,81.3,79.9\n"  # fmt: skip


def test_bold_at_the_low_end_is_likely_among_columns_of_one_size(tmp_path: Path) -> None:
    assert audit_table(tmp_path, FOUR).likely == []
    moved = FOUR.replace("**86.4**", "86.4").replace("75.4", "**75.4**")
    assert [row["quantity"] for row in audit_table(tmp_path, moved).likely] == [
        "t, z, B: its rank, printed bold (best)"
    ]
    # Of a column of another size the low end may be the better one.
    other = moved.replace("85.6", "8.56").replace("79.3", "7.93").replace("75.4", "7.54").replace("86.4", "8.64")
    assert audit_table(tmp_path, other).likely == []


@pytest.mark.parametrize("name", ["random", "Human", "Oracle"])
def test_what_is_by_chance_or_could_be_reached_is_no_competitor(tmp_path: Path, name: str) -> None:
    table = FOUR + "{},12.1,87.2,20.0,14.3\n"
    assert audit_table(tmp_path, table.format(name)).likely == []
    assert len(audit_table(tmp_path, table.format("w")).likely) == 1


MEANS = "m,s,Average,A,B,C,D,E\nx,1.37,46.0,42.9,44.6,46.2,35.5,60.8\ny,1.51,47.2,43.8,45.6,47.5,36.4,62.7\n" \
    "z,1.24,46.8,43.0,45.0,46.9,36.1,63.0\nv,1.28,47.1,43.5,45.4,47.7,36.3,62.6\n"  # fmt: skip
GUESSES = "who,First / # guesses,Second / # matches,Third / # yes\n" \
    "1,1,25,25\n2,1,25,25\n3,2,25,13\n4,6,25,25\nTotal,10,100,88\n"  # fmt: skip


@pytest.mark.parametrize(
    ("table", "faults"),
    [
        (MEANS, {"46.0": "46.4", "46.8": "46.3"}),  # two of four rows are off
        (GUESSES, {"88": "83"}),  # two of three hold
    ],
)
def test_a_named_mean_or_total_needs_little_agreement(tmp_path: Path, table: str, faults: dict[str, str]) -> None:
    assert audit_table(tmp_path, table).doubted == []
    for right, wrong in faults.items():
        table = table.replace(f",{right}", f",{wrong}")
    audit = audit_table(tmp_path, table)
    (doubted,) = audit.doubted
    assert audit.contradictions == [] and all(f"printed {wrong}" in doubted for wrong in faults.values())


@pytest.mark.parametrize(("name", "answer"), [("OOD subset", "nothing was checked"), ("Test", "likely")])
def test_a_part_of_the_row_above_is_no_part_of_the_total(tmp_path: Path, name: str, answer: str) -> None:
    table = f'part,Scenes\nTrain,"900,000"\nValidation,"100,020"\n{name},"20,004"\nTotal,"1,000,020"\n'
    assert audit_table(tmp_path, table).answer == answer


@pytest.mark.parametrize(("rows", "told"), [(400, 0), (401, 1)])
def test_rows_that_are_not_looked_at_are_told(tmp_path: Path, rows: int, told: int) -> None:
    audit = audit_table(tmp_path, "m,A,B\n" + "".join(f"r{n},{n},{n + 7}\n" for n in range(rows)))
    assert sum("400" in text for text in audit.dropped) == told
