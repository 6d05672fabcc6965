"""Tables as others set them: of honest ones none is accused, and a planted fault is found; what an audit comes to."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.audit.paper.command import run_audit
from plumbline.audit.paper.latex.write_tables import write_tables
from plumbline.audit.paper.names import is_spread
from plumbline.audit.paper.paper_audit import ANSWERS, PaperAudit, audit_folder

MACROS = r"""
\newcommand{\up}[1]{$\uparrow$#1} \newcommand{\dec}[1]{\textcolor{red}{$\downarrow$#1}}
\newcommand{\red}[1]{\textcolor{red}{#1}} \newcommand{\gr}[1]{\textcolor{green}{#1}} \newcommand{\B}{\textbf}
"""


def audit_table(folder: Path, body: str, caption: str = "") -> PaperAudit:
    """Audit a table of LaTeX: each line a row, a line of dashes a rule."""
    lines = [line.strip() for line in body.strip().splitlines()]
    columns = "l" + "r" * max(line.count("&") for line in lines)
    rows = "\n".join("\\midrule" if line.startswith("---") else f"{line} \\\\" for line in lines)
    title = f"\\caption{{{caption}}}" if caption else ""
    text = f"{MACROS}\\begin{{table}}{title}\\begin{{tabular}}{{{columns}}}\n{rows}\n\\end{{tabular}}\\end{{table}}\n"
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    write_tables(folder / "paper.tex", folder / "review")
    return audit_folder(folder / "review")


def broken(audit: PaperAudit) -> list[str]:
    return [row["quantity"].partition(": ")[0].removeprefix("table1, ") for row in audit.contradictions + audit.likely]


OURS = r"""
Model & P & A & B & C & D & E
-----
Alpha 7B & 7 & 40.2 & 55.1 & 60.3 & 45.4 & 50.5
Beta 7B & 7 & 44.7 & 53.8 & 61.9 & 48.0 & 54.2
\B{Ours 7B} & 7 & \B{49.1} & \B{58.3} & \B{60.5} & \B{50.6} & \B{57.8}
-----
Alpha 13B & 13 & 50.9 & 57.0 & 64.1 & 52.3 & 57.2
Beta 13B & 13 & 53.4 & 56.6 & 65.5 & 54.7 & 58.9
\B{Ours 13B} & 13 & \B{57.2} & \B{61.1} & \B{64.5} & \B{57.3} & \B{61.4}
"""
UPWARDS = r"A $\uparrow$ & B $\uparrow$ & C $\uparrow$ & D $\uparrow$ & E $\uparrow$"
DELTA = r"""
Method & A & B & C & D & E
-----
Base & 80.0 & 70.0 & 60.0 & 50.0 & 41.0
Other & 81.0 & 70.5 & 61.0 & 51.0 & 42.7
Ours & 81.9 & 69.7 & 68.8 & 53.5 & 46.2
-----
"""
RANKED = r"""
Method & A & B & C & D & E
-----
Base & 78.3 & 70.0 & 60.1 & \underline{51.0} & 0.7
Other & \underline{80.1} & \underline{70.5} & \B{69.0} & 50.2 & \underline{4.7}
Ours & \B{81.9} & \B{71.7} & \underline{68.8} & \B{53.5} & \B{9.4}
-----
"""
GAINS = "+3.6 & +1.7 & +8.7 & +2.5 & +8.7"
LOSS = r"""
Model & Loss & WORD
-----
Baseline & 3.214 & 0.000
A & 3.201 & 0.013
B & 3.187 & 0.027
C & 3.150 & 0.064
D & 3.144 & 0.070
E & 3.120 & 0.094
"""
SETS = r"""
 & Wiki & Books & Code & Total
-----
Documents & 120 & 310 & 95 & 525
Tokens (M) & 48 & 93 & 61 & 202
Pages & 900 & 2310 & 415 & 3625
Images & 12 & 44 & 31 & 87
Avg.\ length & 400 & 300 & 642 & 385
Share of nouns (\%) & 31 & 29 & 11 & 27
Year & 2019 & 2020 & 2022 & 2022
"""
TASKS = r"""
Model & PIQA & ARC & BoolQ & RACE & Avg.
-----
Baseline & 61.2 & 40.1 & 58.7 & 33.0 & 48.3
Wide & 62.0 & 41.3 & 58.9 & 34.1 & 49.1
Deep & 63.4 & 41.0 & 59.5 & 35.2 & 49.8
NAME & 61.9 & 42.2 & 60.3 & 33.9 & 49.6
Tied & 60.5 & 39.4 & 57.2 & 32.6 & 47.4
"""
MODULES = r"""
Module & Params (M) & FLOPs (G) & Time (ms) & NAME
-----
Embedding & 31.2 & 2.1 & 0.7 & 115
Attention & 24.9 & 38.4 & 5.8 & 870
MLP & 49.7 & 76.9 & 8.6 & 650
Head & 31.2 & 31.0 & 2.9 & 1420
-----
Total & 137.0 & 148.4 & 18.0 & PRINTED
"""
SOURCES = r"""
Source & Docs (M) & Tokens (B) & Size (GB) & Of each
-----
Pages & 310 & 248 & 800 & 800
Code & 52 & 81 & 270 & 1558
Novels & 2 & 40 & 150 & 20000
News & 44 & 3 & 12 & 68
-----
Total & 408 & 372 & 1232 & RATIO
"""
SPEEDUPS = r"""
Model & H100 & A100 & L4 & NAME
-----
m1 & 1.12 & 1.14 & 1.10 & 1.12
m2 & 1.20 & 1.17 & 1.14 & 1.17
m3 & 1.06 & 1.10 & 1.12 & 1.09
m4 & 1.29 & 1.27 & 1.21 & 1.26
m5 & 1.08 & 1.71 & 1.27 & 1.33
m6 & 1.15 & 1.11 & 1.10 & 1.12
"""
AVERAGES = r"""
Task & Base & Ours & Abs.\ gain & Rel.\ gain (\%)
-----
Reading & 40.0 & 44.0 & 4.0 & 10.0
Logic & 80.0 & 82.0 & 2.0 & 2.5
Sums & 25.0 & 24.0 & -1.0 & -4.0
-----
Average & 48.3 & 51.0 & 1.7 & 3.4
"""

BEST = r"""
Model & I & A & B & C & D & E & F & G & H
-----
First & 55.12 & 61.23 & 44.87 & 70.41 & 60.52 & 66.03 & 39.18 & 72.55 & 50.09
Second & 54.02 & 63.91 & 42.06 & 69.87 & 58.14 & 64.72 & 41.63 & 70.98 & 48.31
Ours & 58.31 & 66.48 & 47.02 & 73.96 & 63.05 & 68.11 & 43.27 & 75.03 & 52.74
-----
Gain & 3.19 & 2.57 & 2.15 & 3.55 & 2.53 & 2.08 & 1.64 & 2.48 & 2.65
"""
REDUCED = r"""
Model & Abs. & Sq. & RMSE & Log & F1 & Recall
-----
Simple & 0.34 & 1.92 & 6.81 & 0.27 & 0.51 & 0.720
Full & 0.22 & 1.41 & 5.08 & 0.19 & 0.66 & 0.823
-----
Improvement (\%) & 35.3 & 26.6 & 25.4 & 29.6 & 29.4 & 14.3
"""
OTHER_END = "Model & A & B & C & D & E & F & Thing\n-----\n" + "\n".join(
    f"m{n} & "
    + " & ".join(rf"\B{{9{n}.5}}" if best == n else f"{80 + 3 * n - best}.{best}" for best in range(6))
    + f" & {c}"
    for n, c in enumerate(["71", r"\B{44}", "90", "66", "58", "83"])
)
CUT = r"""
Model & A & B & Avg.
-----
a & 40.21 & 55.01 & 47.6
b & 44.74 & 53.72 & 49.2
c & 39.17 & 58.31 & 48.7
d & 50.98 & 57.04 & 54.0
e & 53.42 & 56.65 & 55.0
f & 57.28 & 57.90 & 57.5
"""

#: The shape of a main table with a mean over tasks first, operations as powers, blocks, own rows bold.
MAIN = "Model & Avg & FLOPs ($10^{23}$) & MMLU & ARC & NQ & DROP & GSM8K\n-----\n" + "\n-----\n".join(
    "\n".join(
        f"{name} & " + " & ".join(
            (r"\B{%s}" if name.startswith("\\B") else "%s") % cell
            for cell in (f"{sum(scores) / 5:.1f}", flops, *scores))
        for name, flops, scores in block)
    for block in (
        [("Wide 8B", "7.2", (66.9, 79.5, 33.9, 56.4, 56.5)), ("Deep 7B", "n/a", (63.5, 78.3, 37.2, 51.8, 40.1))],
        [("Open 7B", "1.0", (28.3, 46.4, 24.8, 27.3, 9.2)), (r"\B{Own 7B}", "1.8", (63.7, 79.8, 36.9, 60.8, 67.5)),
         (r"\B{Own 13B}", "4.6", (67.5, 83.5, 46.7, 70.7, 75.1))],
    ))  # fmt: skip
BRACKETS = "Method & A & A & B & B & C & C\n-----\n" + "\n".join(
    f"m{n} & " + " & ".join((r"\B{%d} & (%d)" if best == n else "%d & (%d)") % (900 + 40 * (best == n) - n, 30 + 9 * n)
                            for best in range(3))
    for n in range(4)
)  # fmt: skip

HONEST = {
    "a mean over tasks first, own rows bold": MAIN,
    "spreads in brackets beside their values": BRACKETS,
    "changes against the best of the others": BEST,
    "reductions among improvements": REDUCED,
    "improvements that all point upwards": re.sub(r"(\d\d\.\d)(?= &|\n)(?=[^\n]*\n$)", r"\1\\%$\\uparrow$", REDUCED),
    "a column whose other end is better": OTHER_END,
    "rows bold throughout": OURS,
    "a row bold throughout and ranks among the others": OURS.replace("& 61.9", r"& \B{61.9}").replace(
        "& 65.5", r"& \B{65.5}"
    ),
    # Three of five are the best of three: with a direction to choose, so many are by chance.
    "too few ranks to tell": OURS.replace(r"\B{58.3}", "58.3").replace("& 55.1", r"& \B{55.1}").replace(
        r"& \B{60.5}", "& 60.5").replace("61.9", r"\B{61.9}").replace(r"\B{50.6}", "50.6").replace("48.0", r"\B{48.0}"),
    "a column bold throughout": TASKS.replace("48.3", r"\B{48.3}").replace("49.", r"\B{4}9.").replace(
        r"\B{4}9.1", r"\B{49.1}").replace(r"\B{4}9.8", r"\B{49.8}").replace(r"\B{4}9.6", r"\B{49.6}").replace(
        "47.4", r"\B{47.4}"),
    "bold headers": TASKS.replace("Model & PIQA & ARC & BoolQ", r"\B{Model} & \B{PIQA} & \B{ARC} & \B{BoolQ}"),
    "an arrow before": DELTA + r"$\Delta$ & \up{1.9} & \dec{0.3} & \up{8.8} & \up{3.5} & \up{5.2}",
    "an arrow after": DELTA + r"Gain & 1.9$\uparrow$ & 0.3$\downarrow$ & 8.8 $\uparrow$ & 3.5 & 5.2",
    "a triangle": DELTA + r"Diff. & $\blacktriangle$ 1.9 & $\blacktriangledown$ 0.3 & ▲8.8 & ▲3.5 & ▲5.2",
    "a colour with a minus": DELTA + r"vs.\ Base & +1.9 & \textcolor{red}{-0.3} & +8.8 & +3.5 & +5.2",
    "a colour alone": DELTA + r"Improvement & \gr{1.9} & \red{0.3} & \gr{8.8} & \gr{3.5} & \gr{5.2}",
    "arrows of a row without a name": DELTA + r" & \up{1.9} & \dec{0.3} & \up{8.8} & \up{3.5} & \up{5.2}",
    "arrows beside values": DELTA.replace("Ours & 81.9 & 69.7", r"Gain Net & 81.9$\uparrow$ & 69.7$\downarrow$"),
    "arrows in headers": RANKED.replace("A & B & C", r"A $\uparrow$ & B $\uparrow$ & C $\uparrow$"),
    "a change below a value": DELTA.replace("81.9", r"81.9$_{\uparrow 1.9}$").replace("69.7", r"69.7 (\dec{0.3})"),
    **{f"{name!r} is no competitor": RANKED + f"{name} & {GAINS}" for name in (
        r"$\Delta$", "Gain", "Improvement over Base", "vs. Base", "Gap", "Relative", "Ours $-$ Base", "")},
    "differences without a sign": RANKED + "Ours $-$ Base & " + GAINS.replace("+", ""),
    "an average of rows is no competitor": RANKED + "Average & 80.1 & 70.7 & 66.0 & 51.6 & 4.9",
    "equality is no difference": "\n".join(
        ["Model & Before & After & Extra", "-----"]
        + [f"m{n} & {a} & {b} & {c}" for n, (a, b, c) in enumerate(
            [(41.2, 40.8, 0.4), (55.9, 55.4, 0.5), (47.3, 46.9, 0.4), (62.0, 61.4, 0.6), (58.1, 57.7, 0.3)])]),
    "totals of counts beside shares, means and years": SETS,
    "an average beside counts": TASKS + r"\# items & 1838 & 2376 & 3270 & 3498 & 10982",
    "an average over hidden tasks": TASKS.replace("48.3", "50.2").replace("49.1", "52.7").replace(
        "49.8", "51.1").replace("47.4", "53.0"),
    "a weighted average": "m & A & B & C & Avg\n-----\nm1 & 80.1 & 81.2 & 79.7 & 80.4\nm2 & 82.1 & 83.2 & 81.7 & 82.4"
    "\nm3 & 84.3 & 84.2 & 84.9 & 84.4\nm4 & 85.1 & 85.9 & 86.0 & 85.6\nm5 & 86.0 & 86.7 & 87.2 & 86.5",
    "a spread is no mean of spreads": TASKS + "std & 0.4 & 0.6 & 0.5 & 0.7 & 0.3",
    "a spread of a row": TASKS + r"Ours SE & 0.4 & 0.6 & 0.5 & 0.7 & 0.3" + "\n" + r"$\pm$ sd & 1 & 2 & 2 & 1 & 0.3",
    "footnotes": TASKS.replace("48.3", r"48.3\textsuperscript{a}").replace("49.1", "49.1$^{1}$"),
    **{f"a total beside {name}": MODULES.replace("NAME", name).replace("PRINTED", printed) for name, printed in (
        ("Peak mem (MB)", "1420"), ("Mem (MB)", "1420"), ("Speedup", "3055"), ("kB/GFLOP", "20"), ("Peak/GPU", "7"))},
    "a total and a ratio of two others": SOURCES.replace("RATIO", "912"),
    **{f"{name} is geometric": SPEEDUPS.replace("NAME", name) for name in (
        "Geo. mean", "GeoMean", "Geometric mean", "Gmean")},
    **{f"{word}: baseline less own": LOSS.replace("WORD", word) for word in ("Saved", "Reduction", r"$\Delta$")},
}  # fmt: skip

PLANTED = {
    "rank among rows": (OURS.replace("A & B & C & D & E", UPWARDS).replace(r"\B{58.3}", "58.3").replace(
        "& 55.1", r"& \B{55.1}").replace(r"& \B{60.5}", "& 60.5").replace("61.9", r"\B{61.9}"), ["Alpha 7B, B ↑"]),
    "arrow": (DELTA + r"$\Delta$ & \up{1.9} & \up{0.3} & \up{8.8} & \up{3.5} & \up{5.2}", ["Δ, B"]),
    "arrow in a column": ("Model & Acc & Gain\n-----\nBase & 50.0 & --\nA & 51.2 & \\up{1.2}\nB & 49.1 & \\dec{0.9}\n"
                          "C & 48.4 & \\dec{1.6}\nD & 53.3 & \\dec{3.3}\nE & 56.0 & \\up{6.0}", ["D, Gain"]),
    "colour": (DELTA + r"Diff & \gr{1.9} & \red{0.3} & \gr{8.8} & \gr{3.8} & \gr{5.2}", ["Diff, D"]),
    "second": (RANKED.replace(r"\underline{80.1}", "80.1").replace("78.3", r"\underline{78.3}")
               + r"$\Delta$ & " + GAINS, ["Base, A"]),
    "saved": (LOSS.replace("WORD", "Saved").replace("0.094", "0.099"), ["E, Saved"]),
    "total": (SETS.replace("61 & 202", "61 & 212"), ["Tokens (M), Total"]),
    "footnote": (TASKS.replace("49.6", r"49.2\textsuperscript{a}"), ["NAME, Avg."]),
    "average of a narrow span": (
        "Model & Time & Average & T1 & T2 & T3 & T4 & T5 & T6\n-----\nS & 0.37 & 46.9 & 43.1 & 44.2 & 47.9 & 28.4 & "
        "75.8 & 41.9\nM & 1.51 & 47.6 & 43.6 & 45.9 & 47.2 & 31.0 & 76.4 & 41.5\nL & 0.24 & 47.9 & 44.1 & 45.3 & "
        "47.0 & 32.2 & 76.3 & 41.4\nG & 0.28 & 47.2 & 43.0 & 45.5 & 47.4 & 29.7 & 76.0 & 41.7", ["L, Average"]),
    **{f"in the row {name}": (TASKS.replace("49.6", "49.2").replace("NAME", name), [f"{name}, Avg."]) for name in (
        "VAR-d30", "SE-ResNet", "CIFAR", "Long Range Arena", "RangeNet", "STD-Net", "CI-GPT", "ViT-SE", "DeltaNet")},
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_table_is_not_accused(tmp_path: Path, name: str) -> None:
    audit = audit_table(tmp_path, HONEST[name])
    assert broken(audit) == []
    assert audit.answer in ("nothing contradicts", "nothing was checked")


@pytest.mark.parametrize(
    ("caption", "body"),
    [
        ("Mean is geometric.", SPEEDUPS.replace("NAME", "Mean")),
        ("The memory of the total is the peak.", MODULES.replace("NAME", "Mem (MB)").replace("PRINTED", "1420")),
    ],
)
def test_a_caption_that_names_another_mean_is_heard(tmp_path: Path, caption: str, body: str) -> None:
    audit = audit_table(tmp_path, body, caption)
    assert broken(audit) == [] and audit.answer == "nothing contradicts"
    assert len([sentence for sentence in audit.dropped if ": not " in sentence]) == 1  # left out, and told


@pytest.mark.parametrize(
    ("caption", "column", "answer"),
    [
        ("", "Weighted avg.", "likely"),
        ("", "Micro Avg.", "likely"),
        ("Avg. is weighted by the number of questions.", "Avg.", "likely"),
        ("Avg. is the micro average.", "Avg.", "likely"),
        ("Micro-F1 on four sets; Avg. is their arithmetic mean.", "Avg.", "contradicts"),
        ("Trained with weighted sampling.", "Avg.", "contradicts"),
    ],
)
def test_one_row_off_its_mean_is_not_excused_by_weights(tmp_path: Path, caption: str, column: str, answer: str) -> None:
    audit = audit_table(tmp_path, TASKS.replace("Avg.", column).replace("49.6", "50.0"), caption)
    assert broken(audit) == [f"NAME, {column}"] and audit.answer == answer


RANKS = "Model & Rank & A\n-----\n" + "\n".join(f"m{n} & {{}} & {90.5 - n}" for n in range(8))


@pytest.mark.parametrize(
    ("ranks", "answer"),
    [("1 2 3 4 5 6 7 9", "likely"), ("1 2 3 4 5 6 7 7", "likely"), ("1 2 3 4 5 6 8 7", "contradicts")],
)
def test_ranks_contradict_where_their_order_does(tmp_path: Path, ranks: str, answer: str) -> None:
    assert audit_table(tmp_path, RANKS.format(*ranks.split())).answer == answer


@pytest.mark.parametrize(
    ("head", "answer"),
    [("Rank of A & A", "contradicts"), ("Human rank & A", "likely"), ("Overall ranking & A", "likely")],
)
def test_a_name_may_say_that_a_rank_is_of_something_else(tmp_path: Path, head: str, answer: str) -> None:
    ranks = RANKS.format(*map(int, "12345687"))
    assert audit_table(tmp_path, ranks.replace("Rank & A", head)).answer == answer


@pytest.mark.parametrize("answer", ["likely", "contradicts"])
def test_a_rank_that_two_columns_give_as_well_is_likely_where_they_refute_others(tmp_path: Path, answer: str) -> None:
    body = RANKS.format(*map(int, "12345687"))
    numbers = iter((1, 3, 2, 4, 5, 6, 8, 7) if answer == "likely" else range(1, 9))
    two = re.sub(r"(?<=m)\d.*", lambda match: f"{match[0]} & {9 - next(numbers)}", body)
    assert audit_table(tmp_path, two.replace("& A", "& A & B")).answer == answer


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    body, rows = PLANTED[name]
    assert broken(audit_table(tmp_path, body)) == rows


LIKELY = """
Model & Full & Small & Rest
-----
a & 61.2 & 40.1 & 21.1
b & 52.0 & 41.3 & 10.7
c & 63.4 & 31.0 & 32.4
d & 71.9 & 42.2 & 29.7
e & 60.5 & 19.4 & 41.1
f & 58.3 & 27.7 & 30.6
g & 66.8 & 35.9 & 30.9
h & 49.7 & 33.3 & 16.4
"""
WORDS = (
    ["Average", "Avg.", "Mean", "Overall"],
    ["Total", "Sum"],
    (
        "Delta",
        "$\\Delta$",
        "Diff.",
        "Difference",
        "Improvement",
        "Gain (pp)",
        "Saved",
        "Reduction",
        "vs. Full",
        "Gap",
        "Drop",
    ),
)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (LIKELY, "nothing contradicts"),
        (LIKELY.replace("29.7", "27.9"), "likely"),
        *((LIKELY.replace("29.7", "27.9").replace("Rest", name), "contradicts") for name in WORDS[2]),
        *((LIKELY.replace("52.0", "56.0").replace("Full", name), "contradicts") for name in WORDS[1]),
        *((TASKS.replace("49.6", "49.2").replace("Avg.", name), "contradicts") for name in WORDS[0]),
        # A footnote, a column that cannot be added and means a little off on one side may be explained.
        (TASKS.replace("NAME", "NAME$^\\dagger$").replace("49.6", "49.2"), "likely"),
        (TASKS.replace("49.6", "49.2$^\\ast$"), "likely"),
        (MODULES.replace("NAME", "Work").replace("PRINTED", "2100"), "likely"),
        (MODULES.replace("NAME", "Work").replace("PRINTED", "3155"), "contradicts"),
        (MODULES.replace("NAME", "Work").replace("PRINTED", "3055"), "nothing contradicts"),
        (SPEEDUPS.replace("NAME", "Mean"), "likely"),
        (SPEEDUPS.replace("NAME", "Mean").replace("1.33", "1.43"), "contradicts"),
        (SPEEDUPS.replace("NAME", "Geo. mean").replace("1.33", "1.43"), "likely"),
        (AVERAGES.replace("51.0 & 1.7", "50.0 & 1.7"), "nothing contradicts"),
        (BEST.replace("3.55", "3.45"), "contradicts"),
        (MAIN.replace("60.8", "68.0"), "contradicts"),
        (REDUCED.replace("25.4", "24.5"), "contradicts"),
        (CUT, "likely"),
        # Only the mean that is off has a number with a mark under it.
        (TASKS.replace("49.6", "50.6").replace("60.3", r"60.3$^\ast$"), "likely"),
        (TASKS.replace("49.6", "50.6").replace("60.3", r"60.3$^\ast$").replace("58.9", r"58.9$^\ast$"), "contradicts"),
        (CUT.replace("55.01 & 47.6", "55.16 & 47.7"), "contradicts"),
        ("m & Acc & Size\n-----\na & 50.1 & 3\nb & 61.7 & 9", "nothing was checked"),
    ],
)
def test_only_a_relation_that_a_name_states_contradicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, answer: str
) -> None:
    audit_table(tmp_path, body)
    options = {"folder": tmp_path / "review", "latex": None, "checks": None, "told_only": False, "out": None}
    code = run_audit(argparse.Namespace(**options, json=True))
    facts = json.loads(capsys.readouterr().out)
    assert (facts["answer"], facts["exit_code"]) == (answer, code) == (answer, ANSWERS[answer])
    assert bool(facts["contradictions"]) == (answer == "contradicts") and bool(facts["likely"]) == (answer == "likely")
    run_audit(argparse.Namespace(**options, json=False))
    console, page = capsys.readouterr().out, (tmp_path / "review/audit/audit.md").read_text()
    assert ("Likely, look here" in console) == ("- 1 number does not fit" in page) == (answer == "likely")
    html = (tmp_path / "review/audit/audit.html").read_text()
    assert [text.count("Nothing was checked") for text in (console, page, html)] == [
        answer == "nothing was checked"
    ] * 3
    assert ("Nothing contradicts" in html) == (answer == "nothing contradicts")


def test_a_relation_that_all_rows_but_one_hold_is_likely(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit_table(tmp_path, AVERAGES)
    options = {"folder": tmp_path / "review", "latex": None, "checks": None, "told_only": False, "out": None}
    assert run_audit(argparse.Namespace(**options, json=True)) == ANSWERS["likely"]
    report = json.loads(capsys.readouterr().out)
    assert report["answer"] == "likely" and report["contradictions"] == report["likely"] == []
    gain, average = report["doubted"]
    assert gain.startswith("table1: Abs. gain ") and "3 of 4" in gain and "Average (printed 1.7, gives 2.7)" in gain
    assert "Reading, Logic, Sums" in average and "2 of 3" in average and "Ours (printed 51.0, gives 50.0)" in average
    run_audit(argparse.Namespace(**options, json=False))
    console, page = capsys.readouterr().out, (tmp_path / "review/audit/audit.md").read_text()
    assert all("in most rows" in text and "Nothing c" not in text for text in (console, page))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    word=st.sampled_from(["VAR", "SE", "CI", "Range", "STD", "sd", "Var", "stderr", "IQR"]),
    beside=st.text("abdgklNQRXZ", min_size=2, max_size=8).filter(lambda text: text.lower() != "nll"),  # a measure
    form=st.sampled_from(["{0}-{1}", "{0}{1}", "{0} {1}", "{0} {1} 7B", "{1} {0} {1}", "{0}-{1} (ours)"]),
)
def test_a_word_of_a_longer_name_is_no_spread(word: str, beside: str, form: str) -> None:
    assert is_spread(form.format(word, beside)) is False
    assert is_spread(word) is is_spread(f"± {word.lower()}") is is_spread(f"PIQA / {word}") is True
    assert is_spread(f"{word} of acc") is is_spread(f"95% {word}") is True
    assert is_spread(f"{beside} {word}") is None  # its numbers tell


#: Two models, each with three methods: the cost is of an attack, so that more is better in every block.
BLOCKS = r"""
Model & Method & A Hits & B Hits & C Hits & Cost
-----
L & none & 22.5 & 39.0 & 42.5 & 1.4
L & old & \B{77.5} & 86.1 & 90.7 & 10.0
L & own & 61.6 & \B{95.1} & \B{97.6} & \B{32.4}
-----
M & none & 20.5 & 34.1 & 45.0 & 1.5
M & old & 27.5 & 45.2 & \B{64.3} & 1.9
M & own & \B{65.7} & \B{67.6} & 63.2 & \B{3.1}
-----
S & none & 17.5 & 39.1 & 48.8 & 1.3
S & old & 35.0 & \B{64.4} & \B{73.8} & 1.6
S & own & \B{36.2} & 40.5 & 52.6 & \B{2.2}
"""


@pytest.mark.parametrize(("best", "other"), [("67.6", "45.2"), ("2.2", "1.6"), ("36.2", "17.5")])
def test_a_bold_number_against_its_blocks_rule_is_likely(tmp_path: Path, best: str, other: str) -> None:
    """Also at the other end of its block, where the other blocks show which end is better."""
    (tmp_path / "sound").mkdir()
    assert audit_table(tmp_path / "sound", BLOCKS).likely == []
    moved = BLOCKS.replace(f"\\B{{{best}}}", best).replace(f"& {other} &", f"& \\B{{{other}}} &")
    moved = moved.replace(f"& {other}\n", f"& \\B{{{other}}}\n")
    assert len(audit_table(tmp_path, moved).likely) == 1


def test_a_caption_that_restricts_bold_is_believed(tmp_path: Path) -> None:
    moved = BLOCKS.replace(r"\B{67.6}", "67.6").replace("45.2", r"\B{45.2}")
    assert audit_table(tmp_path, moved, "The best among the methods without labels is in bold.").likely == []


#: Improvements in per cent, each with an arrow after it: a reduction where less is better.
IMPROVED = r"""
Method & Err $\downarrow$ & MSE $\downarrow$ & F1 $\uparrow$ & EM $\uparrow$ & Dist $\downarrow$
-----
Base & 20.0 & 40.0 & 50.0 & 60.0 & 80.0
Ours & 15.0 & 38.0 & 56.0 & 69.0 & 62.0
Improvement (\%) & 25.0$\uparrow$ & 5.0$\uparrow$ & 12.0$\uparrow$ & 15.0$\uparrow$ & 22.5$\uparrow$
"""
#: Shares in brackets beside their counts.
LABELS = "Label & Count (\\%)\n-----\nYes & 120 (40.0\\%)\nNo & 90 (30.0\\%)\nBoth & 60 (20.0\\%)\nNone & 30 (10.0\\%)"
#: A total row of counts, and one over two columns.
COUNTS = "Who & \\# right & \\# seen & \\# said\n-----\na & 1 & 25 & 25\nb & 2 & 25 & 13\nc & 6 & 24 & 20\n"
COUNTS += "-----\nTotal & 9 & 74 & 58"
PAIRS = "Set & Train & Test\n-----\na & 1205 & 310\nb & 2417 & 640\nc & 893 & 221\n-----\nTotal & 4515 & 1171"


@pytest.mark.parametrize(
    ("body", "was", "now", "answer"),
    [
        (IMPROVED, "12.0$", "21.0$", "contradicts"),
        (IMPROVED, "38.0", "36.0", "contradicts"),
        (LABELS, "20.0", "25.0", "contradicts"),
        (COUNTS, "74", "44", "likely"),
        (COUNTS, "b & 2", "b & 7", "likely"),
        (PAIRS, "4515", "4615", "likely"),
        (TASKS.replace("Avg.", "Ave."), "49.6", "49.2", "contradicts"),
    ],
)
def test_improvements_shares_and_totals(tmp_path: Path, body: str, was: str, now: str, answer: str) -> None:
    assert was in body
    for name, text, expected in (("sound", body, "nothing contradicts"), ("planted", body.replace(was, now), answer)):
        (tmp_path / name).mkdir()
        assert audit_table(tmp_path / name, text).answer == expected


def test_a_total_far_from_its_sum_is_no_sum_but_of_counts(tmp_path: Path) -> None:
    far = COUNTS.replace("\\# seen", "Length").replace("74", "44")
    assert audit_table(tmp_path, far).doubted == []


def test_what_one_table_does_another_of_the_same_names_does(tmp_path: Path) -> None:
    """Of four rows that are nearly alike, three would not tell."""
    head = "Tokenizer,Seen,Whole,Pure %\n"
    pairs = [(2000 + n, 800 + 97 * n) for n in range(8)]
    first = "".join(f"t{seen},{seen},{whole},{100 * whole / seen:.2f}\n" for seen, whole in pairs)
    (tmp_path / "a.csv").write_text(head + first)
    second = "x,11531,11055,95.87\ny,13370,13357,99.90\nz,13631,12981,95.23\nw,13268,13256,99.91\n"
    (tmp_path / "b.csv").write_text(head + second.replace("95.87", "15.87"))
    assert [row["quantity"] for row in audit_folder(tmp_path).likely] == ["b, x, Pure %"]
    (tmp_path / "a.csv").unlink()
    assert audit_folder(tmp_path).likely == []


def test_coco_is_no_unit_of_time(tmp_path: Path) -> None:
    bold = BLOCKS.replace("A Hits", "MS-COCO 5K").replace("B Hits", "MS-COCO 1K").replace("C Hits", "MS-COCO 2K")
    audit = audit_table(tmp_path, bold.replace(r"\B{67.6}", "67.6").replace("45.2", r"\B{45.2}"))
    assert len(audit.likely) == 1


def test_a_second_value_follows_several_equal_best_ones(tmp_path: Path) -> None:
    under = [("86.1", "95.1"), ("45.2", "67.6"), ("40.5", "64.4"), ("90.7", "97.6")]
    body = BLOCKS
    for second, _ in under:
        body = re.sub(rf"(?<= ){second}(?= )", rf"\\underline{{{second}}}", body)
    assert audit_table(tmp_path, body.replace("39.0", "95.1")).likely == []
    (tmp_path / "wrong").mkdir()
    assert len(audit_table(tmp_path / "wrong", body.replace("39.0", "94.1")).likely) == 1


#: Mean scores of one to five in per cent, so that each is a multiple of .2.
SCALE = "Model & G & P & $\\Delta$\n-----\nA & 88.8 & 79.6 & -9.2\nB & 81.2 & 78.8 & -2.4\nC & 67.8 & 74.6 & +7.0\n"
SCALE += "D & 63.4 & 72.8 & +9.4\nE & 61.2 & 81.8 & +20.6"


def test_a_difference_on_the_steps_of_a_scale_is_likely(tmp_path: Path) -> None:
    for name, text, answer in (("steps", SCALE, "likely"), ("finer", SCALE.replace("20.6", "20.5"), "contradicts")):
        (tmp_path / name).mkdir()
        audit = audit_table(tmp_path / name, text)
        assert audit.answer == answer and broken(audit) == ["C, Δ"]
    (tmp_path / "far").mkdir()
    assert audit_table(tmp_path / "far", SCALE.replace("+7.0", "+7.8")).answer == "contradicts"


#: The best of six columns with an arrow; a row that could be reached, and is never bold.
REACHED = r"""
Method & A $\downarrow$ & B $\downarrow$ & C $\downarrow$ & Bias $\downarrow$ & D $\uparrow$ & E $\uparrow$
-----
Full & 5.47 & 7.26 & 9.1 & -0.61 & 79.1 & 70.2
W & 6.12 & 8.01 & 9.9 & -0.52 & 77.2 & 68.1
X & 5.78 & 7.71 & 9.5 & \B{0.05} & \B{79.3} & \B{70.4}
Y & 5.75 & 7.69 & \B{9.0} & 0.22 & 78.0 & 68.7
Z & \B{5.40} & \B{7.44} & 9.3 & 0.11 & 78.5 & 69.6
"""


@pytest.mark.parametrize(
    ("changes", "contradicts", "likely"),
    [
        ({}, 0, 1),  # Full is better in B alone
        ({"Full": "V"}, 1, 0),
        ({"7.44": "7.20"}, 0, 0),
        ({"7.44": "7.20", r"\B{79.3}": "79.3", "78.5": r"\B{78.5}"}, 1, 0),
        ({"7.44": "7.20", r"\B{0.05}": "0.05", "0.11": r"\B{0.11}"}, 1, 0),
        ({"7.44": "7.20", r"Bias $\downarrow$": r"Skill $\uparrow$"}, 1, 0),
    ],
)
def test_bold_beside_an_arrow_is_not_against_rows_that_are_never_bold(
    tmp_path: Path, changes: dict[str, str], contradicts: int, likely: int
) -> None:
    body = REACHED
    for old, new in changes.items():
        body = body.replace(old, new)
    audit = audit_table(tmp_path, body)
    assert (len(audit.contradictions), len(audit.likely)) == (contradicts, likely)
