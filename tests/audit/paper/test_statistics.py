"""Statistics and sizes that an audit checks: GRIM, p from t, perplexity; parameters, tokens and operations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy import stats

from plumbline.audit.audit_page import format_recomputed
from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder


def audit_table(folder: Path, table: str, toml: str = "") -> PaperAudit:
    (folder / "t.csv").write_text(table)
    (folder / "audit.toml").write_text(toml)
    return audit_folder(folder)


def broken(audit: PaperAudit) -> list[str]:
    return [str(row["quantity"]) for row in audit.contradictions]


def test_a_mean_that_no_whole_numbers_give(tmp_path: Path) -> None:
    share = {"a": (17, 23), "b": (11, 19), "c": (30, 37), "d": (8, 29), "e": (25, 31), "f": (9, 41)}
    rows = [f"{name},{n},{100 * k / n:.2f}" for name, (k, n) in share.items()]
    sound = "task,n,accuracy (%)\n" + "\n".join(rows) + "\n"
    assert broken(audit_table(tmp_path, sound)) == []
    wrong = sound.replace(rows[2], "c,37,81.30")  # 30 of 37 is 81.08, 31 are 83.78
    assert broken(audit_table(tmp_path, wrong)) == ["t, c, accuracy (%)"]
    toml = "[tables.t.items]\nrating = 28\n"
    assert broken(audit_table(tmp_path, "task,rating\na,5.19\nb,5.18\n", toml)) == [
        "t, a, rating"
    ]  # the example of GRIM's authors


def test_f1_against_precision_and_recall(tmp_path: Path) -> None:
    rows = ["A,80.0,70.0,74.7", "B,90.0,60.0,72.0", "C,85.0,65.0,73.7", "D,88.0,71.0,78.6", "E,81.0,77.0,78.9"]
    sound = "model,P,R,F1\n" + "\n".join(rows) + "\n"
    audit = audit_table(tmp_path, sound)
    assert broken(audit) == [] and len(audit.rows) == 5
    assert broken(audit_table(tmp_path, sound.replace("78.6", "87.6"))) == ["t, D, F1"]
    # One that is off by little may be a mean of several F1, as may then the others; where most are, they are told.
    near = sound.replace("78.6", "78.3")
    for table in (near, near + "F,70.0,60.0,46.6\nG,50.0,50.0,50.0\n"):
        audit = audit_table(tmp_path, table)
        assert broken(audit) == [] and "t, D, F1" in [row["quantity"] for row in audit.likely]
    macro = near.replace("74.7", "74.4").replace("72.0", "71.5")
    audit = audit_table(tmp_path, macro)
    assert audit.rows == [] and any("D (printed 78.3, gives 78.6)" in text for text in audit.dropped)


def test_shares_of_a_total(tmp_path: Path) -> None:
    sound = "label,Count,%\na,4000,40.0\nb,2010,20.1\nc,990,9.9\nd,1000,10.0\ne,1500,15.0\nf,500,5.0\n"
    audit = audit_table(tmp_path, sound)
    assert broken(audit) == [] and len(audit.rows) == 6
    assert broken(audit_table(tmp_path, sound.replace("15.0", "10.5"))) == ["t, e, %"]
    assert broken(audit_table(tmp_path, sound.replace("15.0", "10.5") + "Total,10000,100.0\n")) == ["t, e, %"]
    near = audit_table(tmp_path, sound.replace("15.0", "15.1"))  # as where shares are made to sum to a hundred
    assert broken(near) == [] and [row["quantity"] for row in near.likely] == ["t, e, %"]


def test_shares_of_too_many_columns_are_told(tmp_path: Path) -> None:
    heads = ",".join(f"%#{n}" for n in range(40))
    rows = [f"m{row}," + ",".join(str((row * n) % 7) for n in range(40)) for row in range(40)]
    audit = audit_table(tmp_path, "\n".join([f"name,{heads}", *rows]) + "\n")
    assert any("40 columns are a share" in text for text in audit.dropped)


def test_p_from_t_and_n(tmp_path: Path) -> None:
    t, n = [2.31, 0.45, -1.77, 3.05, 1.12, -0.6], [12, 9, 25, 7, 40, 15]
    p = [2 * stats.t.sf(abs(value), size - 1) for value, size in zip(t, n, strict=True)]
    rows = [f"m{k},{a},{b},{c:.3f}" for k, (a, b, c) in enumerate(zip(t, n, p, strict=True))]
    table = "name,t,n,p\n" + "\n".join(rows) + "\n"
    audit = audit_table(tmp_path, table)
    assert broken(audit) == [] and "1 degrees of freedom: 6 of 6" in audit.relations[0]
    wrong = table.replace(rows[3], f"m3,3.05,7,{p[3] / 2:.3f}")  # one-sided, among two-sided ones
    assert broken(audit_table(tmp_path, wrong)) == ["t, m3, p"]


@pytest.mark.parametrize(("head", "more"), [("n", ""), ("# seeds", ""), ("n", "C,1.0,2.5,0.4\n"), ("size", "")])
def test_a_column_of_counts_is_exact_and_contains_what_it_gives(tmp_path: Path, head: str, more: str) -> None:
    check = f"[checks]\np = 't[:].p = t_two_sided_p(t[:].t, 2 * t[:].\"{head}\" - 2)'\n"
    audit = audit_table(tmp_path, f"name,t,{head},p\nA,-1.4,3,0.22\nB,2.0,5,0.0805\n" + more, check)
    row = audit.rows[0]
    value, low, high = (float(row[key]) for key in ("recomputed", "recomputed_low", "recomputed_high"))
    assert value == pytest.approx(2 * stats.t.sf(1.4, 4)) and low < value < high and broken(audit) == []
    exact = stats.t.sf([1.45, 1.35], 4) * 2  # of t alone; where n is rounded, df is 3 to 5
    wide = [2 * stats.t.sf(1.45, 5), 2 * stats.t.sf(1.35, 3)]
    assert (low, high) == pytest.approx(exact if head != "size" and not more else wide)


def test_a_count_that_is_itself_recomputed_is_a_rounded_result(tmp_path: Path) -> None:
    table, check = "name,tokens,batch,steps\na,1000,3,333\n", "[checks]\ns = 't[:].steps = exact(t[:].tokens) / 3'\n"
    assert broken(audit_table(tmp_path, table, check)) == []
    assert len(broken(audit_table(tmp_path, table, check.replace("t[:].steps", "exact(t[:].steps)")))) == 1


SHAPE = """[model]
layers = 12
width = 768
heads = 12
ffn_width = 3072
vocabulary = 50257
learned_positions = 1024
norm_vectors = 2
biases = true
parameters = "{}"
[training]
steps = 1000
batch = 512
sequence = 1024
tokens = "{}"
flops = "{}"
"""


@pytest.mark.parametrize(
    ("printed", "contradicts"),
    [
        # GPT-2 small has 124,439,808 parameters: the shape's own oracle.
        (("124.44M", "0.52B", "3.9e17"), []),
        (("117M", "0.52B", "3.7e17"), ["parameters of the stated shape"]),
        (("124.44M", "0.54B", "4.0e17"), ["tokens trained on: steps times batch"]),
        (("124.44M", "0.52B", "3.1e17"), ["training operations: 6 N D"]),
    ],
)
def test_sizes_follow_from_a_stated_shape(tmp_path: Path, printed: tuple[str, ...], contradicts: list[str]) -> None:
    places = [line.partition(", ")[0] for line in broken(audit_table(tmp_path, "a,b\nx,1\n", SHAPE.format(*printed)))]
    assert places == contradicts


@pytest.mark.parametrize(
    ("lines", "printed", "message"),
    [
        # What the file leaves open is counted in each way: with biases and norms of two vectors it is 124,439,808.
        ("", "124.44M", "bias in each norm"),
        ("", "163.04M", "all embeddings"),
        ("", "85.06M", "no embeddings"),
        ("", "117M", None),
        ("biases = false\nnorm_vectors = 1", "124.44M", None),
        ("tied = true", "163.04M", None),
    ],
)
def test_what_a_shape_leaves_open(tmp_path: Path, lines: str, printed: str, message: str | None) -> None:
    shape = SHAPE.partition("[training]")[0].replace("norm_vectors = 2\nbiases = true\n", f"{lines}\n")
    audit = audit_table(tmp_path, "a,b\nx,1\n", shape.format(printed) + 'where = "sec 2"\n')
    (row,) = audit.rows
    assert row["source"] == "sec 2" and row["printed"] == printed
    if message:
        assert broken(audit) == [] and message in row["quantity"]
    else:
        assert broken(audit) == [row["quantity"]] and f"{printed} is printed. Nearest of" in row["explanation"]
        assert "124,337,664, counted with no biases" in row["explanation"]
        assert re.fullmatch(r"recomputed \d{3}\.\d+M", format_recomputed(row))  # as the paper prints it


@pytest.mark.parametrize(
    ("printed", "written"), [("2,304 h", "2304.123456"), ("0.0348", "0.03481"), ("3 days", "3.123")]
)
def test_a_recomputed_number_has_a_digit_more_than_the_printed_one(printed: str, written: str) -> None:
    value = float(written)
    row = {"printed": printed, "recomputed": value, "recomputed_low": value, "recomputed_high": value}
    digits = 5 if printed.startswith("2") else 4
    assert format_recomputed({**row, "recomputed_kind": "value"}) == f"recomputed {value:.{digits}g}"


def test_hours_with_their_unit_are_recomputed(tmp_path: Path) -> None:
    hours = (
        "m,GPUs,Hours,GPU hours\na,8,12 h,96 h\nb,16,20 h,320 h\nc,32,72 h,2304 h\nd,8,30 h,340 h\ne,64,40 h,2560 h\n"
    )
    assert broken(audit_table(tmp_path, hours)) == ["t, d, GPU hours"]
    assert audit_table(tmp_path, hours.replace("340", "240")).answer == "nothing contradicts"


def test_a_bold_number_that_is_not_the_best(tmp_path: Path) -> None:
    table = (
        "m,a ↑,b ↓,c ↑,d ↑,e ↑,f ↑\nx,**9.1**,2.0,3.0,**4.4**,1.2,5.0\ny,8.0,**1.0**,3.1,4.1,**1.9**,5.3\n"
        "z,7.0,3.0,**3.5**,4.2,1.1,**5.9**\nw,6,2.5,3.3,4.0,1.0,5.7\n"
    )
    assert audit_table(tmp_path, table).answer == "nothing contradicts"
    wrong = table.replace("**3.5**", "3.5").replace("3.1", "**3.1**")
    assert broken(audit_table(tmp_path, wrong)) == ["t, y, c ↑: its rank, printed bold (best)"]
    # Three of four columns are so by chance once in twenty times: they accuse nobody.
    narrow = audit_table(tmp_path, "\n".join(",".join(line.split(",")[:5]) for line in wrong.splitlines()) + "\n")
    assert narrow.answer == "likely"
    assert [row["quantity"] for row in narrow.likely] == ["t, y, c ↑: its rank, printed bold (best)"]
    ours = "".join(
        ",".join(f"**{cell.strip('*')}**" if line[0] == "x" and n else cell.strip("*")
                 for n, cell in enumerate(line.split(","))) + "\n"
        for line in table.splitlines()
    )  # fmt: skip
    assert audit_table(tmp_path, ours).answer == "nothing was checked"
