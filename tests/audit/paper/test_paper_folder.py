"""The command on a folder: verdicts, exit codes, files, and folders that somebody hostile made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.audit.__main__ import main
from plumbline.audit.paper import paper_page
from plumbline.audit.paper.paper_audit import audit_folder
from tests import run_in_process
from tests.report.page_checks import check_page

SOUND = {"t.csv": "name,a,b,sum of both\nx,1.0,2.0,3.0\ny,2.00,3.00,5.00\n"}
SHAPE = "[model]\nlayers = 2\nwidth = 8\nheads = 2\nffn_width = 8\nvocabulary = 9\n"
CHECK = "[checks]\ns = 't[:].\"sum of both\" = t[:].a + t[:].b'\n"


def folder_of(path: Path, files: dict[str, str]) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def audit(*args: object) -> subprocess.CompletedProcess[str]:
    return run_in_process.run(main, *args, cwd=Path.cwd())


def test_what_holds_ends_with_0_and_what_contradicts_with_10(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "paper", SOUND | {"audit.toml": CHECK})
    assert audit(folder).returncode == 0
    (folder / "t.csv").write_text(SOUND["t.csv"].replace("5.00", "5.02"))
    process = audit(folder, "--json")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 10
    (broken,) = report["contradictions"]
    assert (broken["id"], broken["printed"], broken["recomputed"]) == ("s.y", "5.02", 5.0)
    page = (folder / "audit/audit.md").read_text()
    assert "printed 5.02, recomputed 5 (4.99 to 5.01)" in page
    console = audit(folder, "--told-only").stdout
    assert "1 number contradicts the others." in console and "printed 5.02" in console


def test_a_row_named_date_with_scores_is_checked_and_one_of_years_is_not(tmp_path: Path) -> None:
    scores = "Entity,A,B,C,Avg\nPER,61.2,40.1,58.7,53.3\nORG,62.0,41.3,58.9,54.1\nLOC,63.4,41.0,59.5,54.6\n"
    scores += "GPE,60.5,39.4,57.2,52.4\n"
    code = {}
    for last in ("DATE,61.9,42.2,60.3,58.8", "DATE,61.9,42.2,60.3,54.8", "YEAR,2019,2020,2021,2018"):
        process = audit(folder_of(tmp_path / "paper", {"t.csv": f"{scores}{last}\n"}), "--json")
        code[last] = process.returncode, [row["printed"] for row in json.loads(process.stdout)["contradictions"]]
    assert list(code.values()) == [(10, ["58.8"]), (0, []), (0, [])]


def test_a_column_of_which_nothing_reads_is_named(tmp_path: Path) -> None:
    rows = "x,1.0,2.0,3.0 a 1,12-8,v1\ny,2.0,3.0,5.5 b 1,12-9,v2\nz,2.0,4.0,6.0 ? 1,12-9,v3\n"
    table = "name,a,b,Total,Days,note\n" + rows.replace("12-", "x12-")
    report = json.loads(audit(folder_of(tmp_path / "paper", {"t.csv": table}), "--json").stdout)
    (place,) = report["not_read"]
    assert "Total" in place and "3 of 3 cells" in place and "'3.0 a 1'" in place


def test_the_page_has_the_papers_title_and_link(tmp_path: Path) -> None:
    part = "[paper]\ntitle = 'Sums'\nlink = '{}'\n"
    text = part.format('https://arxiv.org/abs/2.1?a=1&b="x"') + CHECK
    folder = folder_of(tmp_path / "paper", SOUND | {"audit.toml": text})
    assert audit(folder).returncode == 0
    page = (folder / "audit/audit.md").read_text()
    assert "Sums" in page and '<https://arxiv.org/abs/2.1?a=1&b="x">' in page
    html = (folder / "audit/audit.html").read_text()
    assert '<a href="https://arxiv.org/abs/2.1?a=1&amp;b=&quot;x&quot;">https://' in html
    for link in ("arxiv.org/abs/2.1", "https://a> <script>", "https://a\u202eb"):
        (folder / "audit.toml").write_text(part.format(link) + CHECK)
        process = audit(folder)
        assert process.returncode == 2 and "audit.toml: paper" in process.stderr and "https://" in process.stderr


def test_the_page_of_a_folder_says_what_was_read(tmp_path: Path) -> None:
    table = "m,a,b,sum,Δ,note\nBase,1.0,2.0,3.0,--,7\nx,2.0,3.0,5.1,+2.1,8\ny,3.00,2.00,5.05,+2.05,9\n"
    checks = "[checks]\ns = 't[:].sum = t[:].a + t[:].b'\nd = 't[:].\"Δ\" = t[:].sum - t.Base.sum'\n"
    folder = folder_of(tmp_path / "paper", {"t.csv": table, "audit.toml": checks})
    process = audit(folder)
    page = (folder / "audit/audit.md").read_text()
    assert (
        process.returncode == 10 and "not checked" not in process.stdout + page
    )  # Δ is told; its own dash is not a row
    assert "## Findings\n" in page and "detail" not in page and "preset" not in page
    assert "## Within rounding" in page and "`s.x`: t.x.sum of check s; t.csv\n  printed 5.1, recomputed 5" in page
    assert "`t`: 3 rows, 6 columns, 14 numbers," in page
    assert "Of running text" in page
    assert json.loads(audit(folder, "--json").stdout)["tables"][0]["unread"] == {"note": 3}
    sound = audit(folder_of(tmp_path / "sound", {"t.csv": table.replace("5.05", "5.00").replace("2.05", "2.00")} | {
        "audit.toml": checks}))  # fmt: skip
    assert sound.returncode == 0
    assert sound.stdout.splitlines()[4] == "Nothing contradicts among the 11 of 14 numbers that were read."


@pytest.mark.parametrize(
    ("files", "args", "message"),
    [
        ({}, [], "there is no table"),
        (
            SOUND | {"audit.toml": "[checks]\ns = 't[:].c = 1'"},
            [],
            "audit.toml: checks.s, character 1: t.csv",
        ),
        (SOUND | {"audit.toml": "[check]\ns = '1 = 1'"}, [], "part [check]; did you mean 'checks'"),
        (SOUND | {"audit.toml": "[tables.t]\nbase = 'x'"}, [], "'base'; did you mean 'baseline'"),
        (SOUND | {"audit.toml": "[tables.t]\nbaseline = 'z'"}, [], "there is no row 'z'"),
        (SOUND | {"audit.toml": "[checks]\ns = 3"}, [], "checks.s: 3 is no expression"),
        (SOUND | {"audit.toml": "[training]\nsteps = " + "9" * 5000}, [], "no TOML"),
        (SOUND | {"audit.toml": "[training]\nsteps = inf"}, [], "training.steps"),
        (SOUND | {"audit.toml": "[numbers]\na = 2020-01-01"}, [], "is no number"),
        (SOUND | {"audit.toml": "[model]\nlayers = 2"}, [], "model: 'width' is missing"),
        (SOUND | {"audit.toml": "checks = " + "[" * 5000}, [], "no TOML"),
        (SOUND | {"audit.toml": "[numbers]\na = 0x" + "f" * 5000}, [], "numbers.a: a number"),
        (SOUND | {"audit.toml": "[training]\nsteps = 1" + "0" * 4000}, [], "training.steps: a number"),
        (SOUND | {"audit.toml": SHAPE + "learned_positions = 0x" + "f" * 5000}, [], "model.learned_positions: a "),
        (SOUND | {"audit.toml": SHAPE + "key_value_heads = -5"}, [], "model.key_value_heads: -5; write a"),
        (SOUND | {"audit.toml": "a." * 20_000 + "b = 1"}, [], "no TOML (line 1 has 40,005 characters"),
        (SOUND | {"audit.toml": '"\\"=".' + "a." * 4000 + "b = 1"}, [], "more than 20 parts"),
        ({"t.csv": "Model;Acc;Loss\nA;1.0;2.0\nB;3,0;4\n"}, [], "parted by commas?"),
        ({"t.csv": "Model\tAcc\nA\t1.0\n"}, [], "parted by commas?"),
        ({"t.csv": "Model,Acc\nA,n/a\nB,1.0 / 2.0\n"}, [], "read in t.csv"),
        ({"t.csv": "a,b\n1,2,3\n"}, [], "t.csv: line 2 ('1') has 3 cells"),
        ({"t.csv": 'a,b\n"1,2\n'}, [], "t.csv, line 2"),
        ({"t.csv": "a" + ",b" * 300 + "\n"}, [], "2000 and 200"),
        (SOUND, ["--checks", "gone.toml"], "gone.toml: there is"),
        (SOUND, ["--study", "transfer"], "the studies' papers"),
        (SOUND, ["--nonsense"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(tmp_path: Path, files: dict[str, str], args: list[str], message: str) -> None:
    process = audit(folder_of(tmp_path / "paper", files), *args)
    assert process.returncode == 2 and message in process.stderr and "Traceback" not in process.stderr


def test_a_pdf_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.5\n\xc3\x28\n")
    process = audit("--from", tmp_path / "paper.pdf", tmp_path / "review")
    assert process.returncode == 2 and not (tmp_path / "review").exists()
    for phrase in ("is a PDF", "arXiv has the LaTeX of most papers", "pdftotext -layout", "cells parted by commas"):
        assert phrase in process.stderr


@pytest.mark.parametrize("name", ["t.csv", "audit.toml", "sources.json", "audit"])
def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path / "paper", {"u.csv": SOUND["t.csv"]})
    outside = tmp_path / "outside"
    if name == "audit":
        outside.mkdir()
    else:
        outside.write_text("secret = 1\n")
    (folder / name).symlink_to(outside)
    process = audit(folder)
    assert (
        process.returncode == 2 and "leads out of" in process.stderr and "secret" not in process.stdout + process.stderr
    )
    assert not outside.is_dir() or not list(outside.iterdir())


def test_names_that_steer_a_terminal_or_a_page_are_escaped(tmp_path: Path) -> None:
    table = 'name,a,b\n"<script>alert(1)</script>\x1b[31m`[x](javascript:y)`",1.0,3.0\n'
    check = "[paper]\ntitle = '<img src=x>'\n[checks]\n\"<b>`x\" = 't[:].a = t[:].b'\n"
    folder = folder_of(tmp_path / "paper", {"t.csv": table, "audit.toml": check})
    process = audit(folder)
    page = (folder / "audit/audit.md").read_text()
    assert process.returncode == 10 and "\x1b" not in process.stdout + page
    outside_code = "".join(page.split("`")[::2])
    assert "<script" not in outside_code and "<img" not in page and "[x](javascript" not in outside_code


def test_it_imports_nothing_heavy_and_starts_quickly(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "paper", SOUND | {"audit.toml": CHECK})
    code = (
        "import sys, resource; sys.argv = ['audit', sys.argv[1]]\n"
        "from plumbline.audit.__main__ import main; main()\n"
        "assert not {'pandas', 'torch', 'snakemake', 'scipy.stats'} & set(sys.modules)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF); print('CPU', used.ru_utime + used.ru_stime)"
    )
    times = []
    for _ in range(3):
        process = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
        times.append(float(process.stdout.rpartition("CPU ")[2]))
    assert min(times) < 0.6


def test_an_output_among_the_tables_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "paper", SOUND)
    process = audit(folder, "--out", folder / "rows.csv")
    assert process.returncode == 2 and "for a table" in process.stderr and os.listdir(folder) == ["t.csv"]


def test_html_page_shows_table_as_printed_with_cell_in_colour(tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text(
        r"""\begin{table}\caption{Five models <b>.}\begin{tabular}{lrrrr}
Model & A & B & C & Avg. \\
\midrule
Base & 61.2 & 40.1 & 58.7 & 53.3 \\
Wide & 62.0 & 41.3 & 58.9 & 54.1 \\
Deep & \textbf{63.4} & 41.0 & 59.5 & 54.6 \\
Gated & 61.9 & 42.2 & 60.3 & 55.8 \\
Tied & 60.5 & 39.4 & 57.2 & 52.4 \\
\end{tabular}\end{table}
\begin{tabular}{ll} a & b \\ \end{tabular}
It falls from 26.6 to 24.8, an 8.6\% reduction.
""",
        encoding="utf-8",
    )
    code = audit("--from", tmp_path / "paper.tex", tmp_path / "review").returncode
    page = (tmp_path / "review/audit/audit.html").read_text(encoding="utf-8")
    assert code == 10 and "<b>.<" not in page and "<b>63.4</b>" in page
    ((cell, said, why),) = re.findall(
        r'<a id="(\w+)" href="#([\w-]+)" class="contradicts" aria-label="([^"]*)">55.8</a>', page
    )
    assert "4 of 5 agree" in why and "54.75 to 54.85" in why
    assert re.findall(r'class="swatch ([\w ]+)">(\d+) ', page)[:3] == [
        ("contradicts", "1"),
        ("holds", "4"),
        ("read", "15"),
    ]
    assert f'<a href="#{cell}">' in page.partition(f'<li id="{said}">')[2].splitlines()[0]
    assert len(re.findall(r"<(?:script|img|link)\b", page)) == 0
    check_page(tmp_path / "review/audit/audit.html")
    assert "recomputed 54.8 (54.75 to 54.85)" in page
    assert "paper.tex:7: Gated &amp; 61.9 &amp; 42.2" in page and "In the text" in page
    result = audit_folder(tmp_path / "review")
    assert (len(result.tables), result.sentences, result.sentences_read) == (1, 1, 1)
    assert result.source.tables_there >= 1 and result.types["table1"]["Avg."] == ["average", "its name 'Avg.'"]
    for text in (paper_page.write_author_text(result), paper_page.write_review_sentence(result)):
        assert "table1, Gated, Avg." in text and "55.8" in text and "54.8 " in text and "8.6" in text


def test_the_html_page_shows_printed_heads_and_links_cells(tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text(
        r"""\begin{table}\begin{tabular}{lrrrr}
\toprule & \multicolumn{3}{c}{Knowledge} & \\
Model & A & B & C & Avg. \\
\midrule
Base & 61.2 & 40.1 & 58.7 & 53.3 \\
Wide & 62.0 & 41.3 & 58.9 & 54.1 \\
\midrule \multicolumn{5}{l}{Larger <i>models} \\
Deep & 63.4 & 41.0 & 59.5 & 54.6 \\
Gated & 61.9 & 42.2 & 60.3 & 55.8 \\
Tied & 60.5 & 39.4 & 57.2 & 52.4 \\
\end{tabular}\end{table}
\input{missing}
""",
        encoding="utf-8",
    )
    audit("--from", tmp_path / "paper.tex", tmp_path / "review")
    page = (tmp_path / "review/audit/audit.html").read_text(encoding="utf-8")
    assert page.count("Knowledge</th>") == 1 and "<th>A</th><th>B</th><th>C</th><th>Avg.</th>" in page
    assert "<i>Larger &lt;i&gt;models</i></td></tr>\n<tr><td>Deep" in page
    (anchor,) = re.findall(r'<a id="(\w+)"[^>]* class="contradicts"[^>]*>55.8</a>', page)
    assert f'<a href="#{anchor}">table1, Gated, Avg.</a>' in page
    assert "paper.tex:12" in page.partition("Not read, and why")[2]
    text = paper_page.write_author_text(audit_folder(tmp_path / "review"))
    assert "; Avg. is the mean" in text and ": 4 of 5 " in text


def test_the_html_page_begins_with_a_relation_that_may_not_hold(tmp_path: Path) -> None:
    rows = ("de,28.4,55.1,1.2,27.2", "fr,36.0,61.3,2.4,33.6", "cs,21.7,49.9,-0.3,22.0", "fi,18.2,47.2,0.9,17.3")
    table = "\n".join(("m,BLEU,chrF,Gain,Base", *rows, "hi,15.5,44.0,2.7,13.8\n"))
    folder = folder_of(tmp_path / "paper", {"t.csv": table})
    assert audit(folder).returncode == 15
    page = (folder / "audit/audit.html").read_text(encoding="utf-8")
    before, _, after = page.partition('<span class="swatch likely">likely</span>')
    assert "<h2>" not in before and "<summary>t: 20 not checked</summary>" in after
    assert "hi (printed 2.7, gives 1.7)" in after.partition("<h2>")[0]
    found = audit_folder(folder)
    for text in (paper_page.write_author_text(found), paper_page.write_review_sentence(found)):
        assert text.count("hi (printed 2.7, gives 1.7)") == 1 and "contradicts each" not in text
        assert page.count(text.splitlines()[-1]) == 1


def test_rows_without_a_sought_relation_are_counted_first(tmp_path: Path) -> None:
    rows = "\n".join(f"r{n},{10 + n}.5,{20 + n}.5,{15 + n}.5" for n in range(450))
    folder = folder_of(tmp_path / "paper", {"t.csv": f"m,A,B,Avg.\n{rows}\n"})
    found = audit(folder)
    assert "50 rows after the 400th" in found.stdout.splitlines()[0] and found.returncode == 0
    assert json.loads(audit(folder, "--json").stdout)["rows_after"] == {"t": 50}
