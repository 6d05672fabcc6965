"""What the numbers of a row or column are, with what shows it; what relations and ranks pay for their choices."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plumbline.audit.paper.evidence import FALSE_SHARE, find_level
from plumbline.audit.paper.line_types import find_type, find_unit
from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder
from plumbline.audit.paper.printed_cell import read_cell


@pytest.mark.parametrize(
    ("name", "cells", "small", "type_", "shown"),
    [
        ("PIQA", ["61.2", "62.0"], False, "value", "nothing"),
        ("Δ", ["+0.8", "-0.3"], True, "difference", "name"),
        ("", ["+0.8", "-0.3"], True, "difference", "sign"),
        ("Rel. gain (%)", ["1.2", "3.4"], False, "percent change", "name"),
        ("Savings", ["12%", "30%"], False, "percent change", "name"),
        ("Avg.", ["50.1", "49.9"], False, "average", "name"),
        ("Mean Teacher", ["50.1", "49.9"], False, "value", "nothing"),
        ("Average Pooling", ["50.1", "49.9"], False, "value", "nothing"),
        ("Total", ["150", "99"], False, "sum", "name"),
        ("Total (M)", ["150", "99"], False, "sum", "name"),
        ("# params", ["150", "99"], False, "count", "name"),
        ("Baseline", ["50.1", "49.9"], False, "baseline", "name"),
        ("DenseNet (ours)", ["50.1", "49.9"], False, "ours", "name"),
        ("Rank", ["1", "2"], False, "rank", "name"),
        ("std", ["0.1", "0.2"], True, "uncertainty", "name"),
        ("Ours SE", ["0.1", "0.2"], True, "uncertainty", "size"),
        ("SE-ResNet", ["50.1", "50.2"], False, "value", "nothing"),
        ("Published", ["2017", "2021"], False, "date", "years"),
    ],
)
def test_a_type_has_its_evidence(name: str, cells: list[str], small: bool, type_: str, shown: str) -> None:
    line_type = find_type(name, [read_cell(cell) for cell in cells], lambda: small)
    assert line_type.type == type_ and shown in line_type.evidence


def test_a_unit_of_a_name_is_its_last_part() -> None:
    names = ("Params (M)", "Time, ms", "Acc (%)", "Size [GB]", "M", "FLOPs", "A/B", "Training time (hours)")
    assert [find_unit(name) for name in names] == ["M", "ms", "%", "GB", "", "", "", "hours"]


def audit_table(folder: Path, text: str) -> PaperAudit:
    (folder / "t.csv").write_text(text)
    return audit_folder(folder)


def test_numbers_of_two_units_are_not_added(tmp_path: Path) -> None:
    rows = [(31.2, 2.1), (24.9, 38.4), (49.7, 76.9), (31.2, 31.0), (17.4, 29.3), (22.2, 11.1)]
    for units, relations in ((("(M)", "(M)", "(M)"), 1), (("(M)", "(GB)", "(M)"), 0)):
        head = "part,A {},B {},C {}\n".format(*units)
        body = "".join(f"p{n},{a},{b},{a + b:.1f}\n" for n, (a, b) in enumerate(rows))
        assert len(audit_table(tmp_path, head + body).relations) == relations


SPEEDS = (
    "m,Latency,Speedup,Memory,Saving,Old (ms),Own (ms),Ratio\n"
    "Baseline,1.70 s,1.00x,1.50 GB,--,1.21,1.10,1.10\n"
    "A,850 ms,2.00x,750 MB,50.0%,5.20,4.00,1.30\n"
    "B,1.36 s,1.25x,1.20 GB,20.0%,25.5,17.0,1.50\n"
    "C,1.10 s,1.55x,1.05 GB,30.0%,150,80.0,1.88\n"
    "D,1.20 s,1.42x,1.35 GB,10.0%,1.4 s,350,4.00\n"
    "E,1.54 s,1.10x,1.29 GB,14.0%,120,50,2.40\n"
    "F,1.00 s,1.70x,0.90 GB,40.0%,90.0,60.0,1.50\n"
    "G,1.05 s,1.62x,0.99 GB,34.0%,77.0,70.0,1.10\n"
)


@pytest.mark.parametrize("across", [False, True])
def test_a_number_of_another_unit_accuses_nobody(tmp_path: Path, across: bool) -> None:
    def turn(text: str) -> str:
        lines = zip(*(line.split(",") for line in text.splitlines()), strict=True)
        return "\n".join(",".join(line) for line in lines) + "\n" if across else text

    audit = audit_table(tmp_path, turn(SPEEDS))
    assert audit.answer == "nothing contradicts" and sum("units" in text for text in audit.dropped) == 3 - 2 * across
    for right, wrong in [("2.40", "2.70"), *[("1.42x", "1.24x"), ("30.0%", "33.0%")] * (not across)]:
        assert len(audit_table(tmp_path, turn(SPEEDS.replace(right, wrong))).contradictions) == 1


def test_a_change_in_brackets_is_of_one_unit(tmp_path: Path) -> None:
    head, base = "m,Prefill,Decode\n", "Base,1.70 s,3.40 s\n"
    rows = "A,850 ms (2.00x),1.70 s (2.00x)\nB,1.36 s (1.25x),2.72 s (1.25x)\nC,1.10 s (1.55x),2.00 s (1.70x)\n"
    audit = audit_table(tmp_path, head + base + rows)
    assert audit.answer == "nothing contradicts" and "5 of 5 agree" in audit.relations[0]
    assert len(audit_table(tmp_path, head + base + rows.replace("1.55x", "1.95x")).contradictions) == 1


def test_what_is_believed_depends_on_how_much_was_looked_for() -> None:
    assert find_level([1e-6, 0.004], 2) == 0.004 and find_level([1e-6, 0.004], 500) == 1e-6
    assert find_level([], 9) == 0.0 and find_level([0.02], 1) == 0.0
    draw = random.Random(3)
    believed = sum(find_level([draw.random() for _ in range(50)], 50) > 0 for _ in range(2_000))
    assert believed <= 2 * FALSE_SHARE * 2_000  # of papers in which every relation is chance's


def test_a_spread_in_brackets_below_each_row_is_no_part_of_a_mean(tmp_path: Path) -> None:
    rows = [(61.2, 40.1, 58.7), (62.0, 41.3, 58.9), (63.4, 41.0, 59.5), (58.0, 47.0, 60.0), (70.1, 33.2, 51.5)]
    own = ["(0.4)", "(0.2)", "(0.4)", "(0.2)", "(0.3)"]
    pairs = enumerate(zip(rows, own, strict=True))
    body = "".join(
        f"m{n},{a},{b},{c},{(a + b + c) / 3:.1f}\n,(0.5),(0.4),({0.4 + n % 2 / 2}),{e}\n" for n, ((a, b, c), e) in pairs
    )
    audit = audit_table(tmp_path, "m,A,B,C,Avg.\n" + body)
    assert audit.answer == "nothing contradicts" and "5 of 5 agree" in audit.relations[0]
    assert len(audit_table(tmp_path, "m,A,B,C,Avg.\n" + body.replace("54.6", "56.4")).contradictions) == 1


@pytest.mark.parametrize(
    ("header", "rows", "found"),
    [
        ("m,D,E,F,Score\n", 2, [2, 0]),
        ("m,D,E,F,Score\n", 3, [0, 3]),
        ("m,D,E,F,Score\n,,,,\n", 3, [0, 3]),
        ("", 3, [3, 0]),
    ],
)
def test_a_group_of_rows_that_never_agrees_may_have_its_own_header(
    tmp_path: Path, header: str, rows: int, found: list[int]
) -> None:
    scores = [(61.2, 40.1, 58.7), (62.0, 41.3, 52.9), (63.4, 41.0, 59.5), (58.0, 47.0, 60.0), (70.1, 33.2, 51.5)]
    scores += [(55.2, 48.1, 39.7), (66.1, 44.3, 50.9)]
    body = "".join(f"m{n},{a},{b},{c},{(a + b + c) / 3:.1f}\n" for n, (a, b, c) in enumerate(scores))
    other = "m7,61.2,40.2,50.7,73.3\nm8,62.0,41.2,51.6,74.1\nm9,63.4,41.0,52.2,74.6\n"
    audit = audit_table(tmp_path, "m,A,B,C,Avg.\n" + body + ",,,,\n" + header + "".join(other.splitlines(True)[:rows]))
    assert [len(audit.contradictions), len(audit.likely)] == found


FEW = "m,A,B,Δ\na,10.2,11.1,0.9\nb,10.5,11.3,0.8\nc,10.1,10.9,0.8\nd,10.4,11.6,1.4\n"


def test_a_relation_that_shuffled_cells_hold_too_accuses_nobody(tmp_path: Path) -> None:
    audit = audit_table(tmp_path, FEW)
    assert audit.contradictions == []
    wide = audit_table(
        tmp_path, FEW.replace("a,10.2,11.1,0.9", "a,10.2,31.1,20.9").replace("b,10.5,11.3,0.8", "b,40.5,11.3,-29.2")
    )
    assert [row["quantity"] for row in wide.contradictions] == ["t, d, Δ"]


def test_only_rows_of_one_unit_compete(tmp_path: Path) -> None:
    head = "m,a ↑,b ↑,c ↑,d ↑,e ↑,f ↑\n"
    rows = [
        "x,**9.1**,5.2,3.0,**4.4**,1.2,5.0",
        "y,8.0,**6.1**,3.1,4.1,**1.9**,5.3",
        "z,7.0,5.0,**3.5**,4.2,1.1,**5.9**",
    ]
    other = "cost,12.1s,14.2s,9.5s,8.8s,7.1s,9.9s"
    audit = audit_table(tmp_path, head + "\n".join([*rows, other]) + "\n")
    assert audit.answer == "nothing contradicts" and len(audit.rows) == 6


CASH = "item,2019,2020,2021,2022,Total\nsales,120,130,150,160,560\ngrants,11,12,16,17,56\ninterest,2,4,3,7,16\n"
CASH += "costs,(60),(70),(80),(90),(300)\ntax,(10),(11),(12),(14),(47)\nother,(5),(6),(7),(8),(26)\n"


def test_a_named_row_in_brackets_is_one_of_the_relation(tmp_path: Path) -> None:
    assert audit_table(tmp_path, CASH).answer == "nothing contradicts"
    wrong = audit_table(tmp_path, CASH.replace("(300)", "(320)"))
    assert [row["quantity"] for row in wrong.contradictions] == ["t, costs, Total"]
