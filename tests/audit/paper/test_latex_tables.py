"""Kinds of tables in LaTeX, what stands around them, and that what is not read is counted with its place and reason."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from plumbline.audit.paper.latex.write_tables import write_tables
from plumbline.audit.paper.paper_source import PaperSource, read_paper_source
from plumbline.audit.paper.paper_table import PaperTable, read_tables
from plumbline.core.errors import UsageError

FOREIGN = Path("/work/shared/foreign/latex")
SMALL = "\\begin{tabular}{lr} A & B \\\\ \\hline x & 1.5 \\\\ \\end{tabular}\n"


def read(folder: Path, text: str) -> tuple[dict[str, list[list[str]]], PaperSource]:
    """Rows of each table that is read, without empty lines; and what is kept of the source."""
    folder.mkdir(exist_ok=True)
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    write_tables(folder / "paper.tex", folder / "out")
    tables = {}
    for path in sorted((folder / "out").glob("*.csv")):
        with path.open(newline="") as handle:
            tables[path.stem] = [row for row in csv.reader(handle) if row]
    return tables, read_paper_source(folder / "out")


ACC = [["Model", "Acc / A", "Acc / B"], ["x", "1.0", "2.0"], ["y", "3.0", "4.0"]]
JOINED = [["Model", "A", "B"], ["x", "1.0 ± 0.1", "2.0"], ["y", "3.0 ± 0.2", "4.0"]]
ROWS = "x & 1.0 & 2.0 \\\\ y & 3.0 & 4.0 \\\\"
PARTED = "x & 1.0 & 0.1 & 2.0 \\\\ y & 3.0 & 0.2 & 4.0 \\\\"


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("\\begin{NiceTabular}{lcc}[hvlines] \\CodeBefore \\rowcolor{red}{1} \\Body \\Block{2-1}{Model} & "
         "\\Block{1-2}{Acc} & \\\\ & A & B \\\\ \\midrule " + ROWS + "\\CodeAfter \\tikz{} \\end{NiceTabular}", ACC),
        ("\\begin{tblr}[caption={c}]{colspec={lcc}, hline{1,Z}={1pt}, hline{3}={solid}} \\SetCell[r=2]{c} Model & "
         "\\SetCell[c=2]{c} Acc & \\\\ & A & B \\\\" + ROWS + "\\end{tblr}", ACC),
        ("\\begin{tabu} to \\textwidth{lX[c]X}\\tabucline[1pt]{-} Model & \\multicolumn{2}{c}{Acc} \\\\ & A & B \\\\"
         "\\hline " + ROWS + "\\end{tabu}", ACC),
        ("\\begin{tabularx}{\\linewidth}{lXX} \\Xhline{2pt}Model & \\multicolumn{2}{c}{Acc}\\\\ & A & B\\\\ \\shline "
         + ROWS + "\\end{tabularx}", ACC),
        ("\\begin{tabular}{l r@{$\\,\\pm\\,$}l r} Model & \\multicolumn{2}{c}{A} & B \\\\ \\hline " + PARTED
         + "\\end{tabular}", JOINED),
        ("\\begin{tabular}{lrrr} Model & A & & B \\\\ \\hline x & 1.0 & $\\pm$ 0.1 & 2.0 \\\\ y & 3.0 & $\\pm$0.2 & 4.0"
         "\\end{tabular}", JOINED),
        ("\\newcolumntype{P}{@{$\\pm$}r}\\begin{tabular}{lrPr} Model & \\multicolumn{2}{c}{A} & B \\\\ "
         "\\hline " + PARTED + "\\end{tabular}", JOINED),
        ("\\newcolumntype{H}{>{\\setbox0=\\hbox\\bgroup}c<{\\egroup}@{}}\\begin{tabular}{lHrHr} Model & x & "
         "\\multicolumn{3}{c}{Acc} \\\\ & x & A & x & B \\\\ \\hline x & 8 & 1.0 & 9 & 2.0 \\\\ y & "
         "\\multicolumn{2}{c}{3.0} & 9 & 4.0 \\\\ \\end{tabular}", [["Model", "Acc / A", "Acc / B"], *ACC[1:]]),
        ("\\newcolumntype{H}{>{\\iffalse}c<{\\fi}@{}}\\newcolumntype{U}{>{\\begin{lrbox}{\\z}}c<{\\end{lrbox}"
         "\\usebox{\\z}}}\\begin{tabular}{lUU*{2}{H}} Model & A & B & x & x \\\\ \\hline x & 1.0 & 2.0 & 8 & 9 \\\\ "
         "y & 3.0 & 4.0 \\\\ \\end{tabular}", [["Model", "A", "B"], *ACC[1:]]),
        ("\\newcolumntype{d}{r@{.}l}\\begin{tabular}{lr@{.}ld D..{2.1}} M & \\multicolumn{2}{c}{A} & "
         "\\multicolumn{2}{c}{B} & C \\\\ \\hline x & $-$1&0 & \\textbf{2}&\\textbf{5}$^*$ & 3.5 \\\\ y & "
         "\\textbf{0}&25 & \\multicolumn{2}{c}{--} & 4.5 \\\\ \\end{tabular}",
         [["M", "A", "B", "C"], ["x", "-1.0", "**2.5***", "3.5"], ["y", "0.25", "–", "4.5"]]),
        ("\\newcolumntype{H}{>{\\setbox0=\\hbox\\bgroup}c<{\\egroup}@{}}\\begin{tabular}"
         "{l*{2}{>{\\columncolor{gray!10}}c@{\\hspace{6pt}}}Hr@{,}l} M & A & B & x & \\multicolumn{2}{c}{C} \\\\ "
         "\\hline x & 1.0 & 2.0 & 7 & 1&345 \\\\ \\end{tabular}",
         [["M", "A", "B", "C", "C"], ["x", "1.0", "2.0", "1", "345"]]),
        ("\\begin{tabular}{lrr} Model & A & B \\\\ \\hline \\multirow{-1}{*}{x} & \\down{0.3} & \\up{1} \\\\ "
         "y & \\dn{2} & $\\sim$3 \\\\ \\end{tabular}",
         [["Model", "A", "B"], ["x", "↓0.3", "↑1"], ["y", "↓2", "~3"]]),
        ("\\begin{tabular}{lrr} Model & A & B \\\\ \\hline & 1 & 2\\\\ \\multirow{-2}{*}{x} & 3 & 4\\\\ \\end{tabular}",
         [["Model", "A", "B"], ["x", "1", "2"], ["x", "3", "4"]]),
        ("\\begin{tabular}{lrr} Model & A & B \\\\ \\hline x & \\$5.328M & 60 million \\\\ y & 12\\,345 & 12~345 \\\\ "
         "\\end{tabular}",
         [["Model", "A", "B"], ["x", "$5.328M", "60 million"], ["y", "12345", "12 345"]]),
        ("\\newcommand{\\heat}[1]{\\ifdim #1pt>5pt \\cellcolor{red}#1\\else\\ifdim #1pt>2pt \\cellcolor{blue}#1\\else "
         "#1\\fi\\fi}\\begin{tabular}{lrr} M & A & B \\\\ \\hline x & \\heat{1.5} & \\heat{7} \\\\ \\end{tabular}",
         [["M", "A", "B"], ["x", "1.5", "7"]]),
        ("\\resizebox{\\linewidth}{!}{\\begin{tabular}{lr} \\makecell{Mo\\\\del} & A \\\\ \\hline \\hl{x} & "
         "\\cellcolor[HTML]{aa}{1.5} \\\\ % y & 2 \\\\\n \\enquote{z} & \\unheard{3} \\\\ \\end{tabular}}",
         [["Mo del", "A"], ["x", "1.5"], ["z", "\\unheard3"]]),
        ("\\def\\sym#1{\\ifmmode^{#1}\\else\\(^{#1}\\)\\fi}\\begin{tabular}{lrr} \\(N\\) & A & B \\\\ \\hline x & "
         "\\(-61.2\\) & 0.1\\sym{**} \\\\ y & 53.3\\sd{0.2} & 4.5\\unheard{0.2} \\\\ \\end{tabular}",
         [["N", "A", "B"], ["x", "-61.2", "0.1**"], ["y", "53.3 ± 0.2", "4.5\\unheard0.2"]]),
        ("\\begin{tabular}{lr} M & A \\\\ \\cdashline{1-2}[.4pt/1pt] x & 1 \\\\ \\rowcolor[gray]{.9}[0pt][0pt] y & 2 "
         "\\\\\\cdashline{1-2}[1pt/1pt] z & 3 \\end{tabular}", [["M", "A"], ["x", "1"], ["y", "2"], ["z", "3"]]),
        ("\\newenvironment{mytab}[1]{\\small\\begin{tabular}{l#1}}{\\end{tabular}}\\begin{mytab}{r} M & A \\\\ \\hline "
         "x & 1 \\\\ \\end{mytab}", [["M", "A"], ["x", "1"]]),
        ("\\begin{tabular}{lr} M & A \\\\ \\hline $\\alpha\\le 1$ & 3~\\si{\\giga\\byte} \\\\ \\end{tabular}",
         [["M", "A"], ["α≤1", "3 GB"]]),
    ],
    ids=["NiceTabular", "tblr", "tabu", "tabularx", "± in the format", "± in a column", "± in a type", "hidden",
         "hidden otherwise", "decimals", "repeated and hidden", "directions", "upwards",
         "units", "conditions", "boxes", "inline math", "lengths of rules", "own environment",
         "signs"],
)  # fmt: skip
def test_a_kind_of_table(tmp_path: Path, table: str, rows: list[list[str]]) -> None:
    tables, source = read(tmp_path, f"\\begin{{table}}{table}\\end{{table}}")
    assert tables == {"table1": rows}
    assert source.tables_there == 1 and source.unread == []


def test_each_part_of_a_float_has_its_caption_and_its_label(tmp_path: Path) -> None:
    part = "\\begin{subtable}{1cm}\\caption{%s}\\label{%s}" + SMALL + "\\end{subtable}"
    tables, source = read(
        tmp_path,
        "\\section{Main \\emph{results}}\\begin{table}" + part % ("Left", "l") + part % ("Right", "r")
        + "\\caption{Both.}\\label{b}\\end{table}\\begin{tabular}{ll} " + SMALL + "&" + SMALL + "\\end{tabular}",
    )  # fmt: skip
    assert list(tables) == ["table1_1", "table1_2", "tabular1", "tabular2"], "a tabular of tabulars lays them out"
    left, right = source.tables["table1_1"], source.tables["table1_2"]
    assert (left.caption, left.label, left.section) == ("Left / Both.", "l", "Main results")
    assert (right.caption, right.label) == ("Right / Both.", "r")


def test_titles_and_lines_go_with_the_table(tmp_path: Path) -> None:
    body = "\\multicolumn{3}{l}{\\textit{Small}} \\\\ & & \\\\ x & \\textcolor{red}{1} & 2 \\\\ \\midrule"
    body += "\\multicolumn{3}{l}{Large} \\\\\n y & 3 {\\color{blue}(+1)} & \\textbf{4} \\\\\n"
    text = "\\begin{table}\\begin{tabular}{lrr} M & A & B \\\\ \\midrule " + body + "\\end{tabular}\\end{table}"
    _, source = read(tmp_path, text)
    (table,) = read_tables(tmp_path / "out")
    assert isinstance(table, PaperTable) and table.titles == {0: "Small", 1: "Large"} and table.groups == (0, 1)
    assert [table.cell(row, "A").text for row in ("x", "y")] == ["1", "3 (+1)"] and table.cell("y", "B").bold
    assert source.tables["table1"].lines["paper.tex:2"] == "y & 3 {\\color{blue}(+1)} & \\textbf{4} \\\\"


def test_running_text_is_kept_where_it_has_a_number(tmp_path: Path) -> None:
    _, source = read(
        tmp_path,
        "\\usepackage{x2}\\begin{document}\n\\begin{abstract}We save 58.7\\% of $1.8\\times$.\\end{abstract}\n"
        "\\section{Results}\nAs Table~\\ref{t} and \\cref{t,u} say, it is\n5 \\cite{x9}.\n\nNo digits here.\n\n"
        "\\begin{table}\\caption{A caption.}\\label{t}" + SMALL + "\\end{table}\n\\begin{equation}x=2\\end{equation}\n"
        "Then 6.\\end{document}\n7 after the end.",
    )  # fmt: skip
    assert [(each.kind, each.section, each.where, each.text, each.table) for each in source.passages] == [
        ("abstract", "Abstract", "paper.tex:2", "We save 58.7% of 1.8×.", ""),
        ("text", "Results", "paper.tex:4", "As Table 1 and Table 1, Table ? say, it is 5 .", ""),
        ("text", "Results", "paper.tex:12", "Then 6.", ""),
        ("caption", "Results", "paper.tex:9", "A caption.", "table1"),
    ]


def test_what_is_not_read_is_counted_with_its_place_and_reason(tmp_path: Path) -> None:
    unread = [
        ("deluxetable", "\\begin{deluxetable}{ll} a & 1 \\end{deluxetable}", "not known"),
        ("table", "\\begin{table}\\includegraphics{a}\\end{table}", "a picture"),
        ("table", "\\begin{table}\\tablemacro\\end{table}", "no tabular"),
        ("table", "\\begin{table}\\begin{mytable} a & 1 \\end{mytable}\\end{table}", "\\begin{mytable}"),
        ("array", "$$\\begin{array}{lr} a & b \\\\ \\hline x & 1 \\\\ \\end{array}$$", "not known"),
        (
            "ruled",
            "\\begin{center}\\begin{ruled}{lr} a & b \\\\ \\midrule x & 1 \\\\ \\end{ruled}\\end{center}",
            "not known",
        ),
        ("csvreader", "\\csvreader{a.csv}{}{}", "not known"),
        ("tabular", "\\begin{tabular}{ll} a & b \\\\ \\ifdraft x & 1 \\\\ \\fi y & 2 \\\\ \\end{tabular}", "\\ifdraft"),
        ("tabular", "\\begin{tabular}{ll} a & b \\\\ c & 7/10 wins \\\\ d & 8/10 wins \\\\ \\end{tabular}", "in full"),
        ("tabular", "\\begin{tabular}{ll} a & 1", "does not end"),
    ]
    words = "\\begin{array}{cc} 1 & 2 \\\\ 3 & 4 \\end{array}"
    words += "\\begin{tabular}{ll} a & b \\\\ c & words alone \\\\ \\end{tabular}\n"
    text = SMALL + words + "".join(f"{table}\n" for _, table, _ in unread)
    tables, source = read(tmp_path, text)
    assert len(tables) == 1 and source.tables_there == 1 + len(unread), "words alone are read, and nothing to compare"
    there = {each.where: each for each in source.unread}
    for line, (kind, _, why) in enumerate(unread, start=3):
        each = there[f"paper.tex:{line}"]
        assert each.kind == kind and why in each.why
        assert any(f"paper.tex:{line}" in entry for entry in source.not_read)


def test_a_file_is_input_from_the_folder_of_its_own_file_too(tmp_path: Path) -> None:
    (tmp_path / "parts/tables").mkdir(parents=True)
    (tmp_path / "tables").mkdir()
    (tmp_path / "parts/a.tex").write_text("\\input{tables/near} \\input{../tables/far} \\import{tables/}{far}")
    (tmp_path / "parts/tables/near.tex").write_text(SMALL)
    (tmp_path / "tables/far.tex").write_text(SMALL.replace("1.5", "2.5"))
    tables, source = read(tmp_path, "\\input{parts/a}")
    assert [rows[1][1] for rows in tables.values()] == ["1.5", "2.5", "2.5"] and source.not_read == []
    assert source.tables["tabular1"].where == "parts/tables/near.tex:1"


HIDDEN = f"\\begin{{table}}{SMALL.replace('1.5', '7.5')}\\end{{table}}"
SHOWN = f"\\begin{{table}}{SMALL}\\end{{table}}"


@pytest.mark.parametrize(
    "paper",
    [
        "\\if0\n%s\\fi%s",
        "\\if01 %s\\else%s\\fi",
        "\\if00 %.0s\\fi%s",
        "\\def\\draft{0}\\if\\draft1 %s\\else\\ifx\\a\\b\\fi%s\\fi",
        "\\iffalse\\ifx\\a\\b\\else\\fi%s\\else%s\\fi",
        "\\newif\\iflong \\iflong %s\\else %s\\fi",
        "\\newif\\iflong \\longtrue\\longfalse \\iflong %s\\fi%s",
        "\\newif\\ifshort \\shorttrue \\ifshort\\else\\ifthenelse{a}{b}{c}%s\\fi%s",
        "\\let\\iflong=\\iffalse \\newcommand{\\onlylong}[1]{\\iflong #1\\fi}\\onlylong{%s}%s",
        "\\newif\\iflong \\unless\\iflong\\else %s\\fi%s",
        "\\newif\\iflong \\longtrue\\setboolean{long}{false}\\iflong %s\\fi%s",
        "\\newif\\iflong \\longtrue\\csname a\\endcsname\\csname longfalse\\endcsname\\iflong %s\\fi%s",
        "\\newcommand{\\ifeval}{IFEval}\\iffalse On \\ifeval %s\\fi%s",
        "\\iffalse\\ifdef\\a{b}{c}%s\\fi%s",
        "\\newif\\ifa \\atrue\\ifa\\iftrue\\else%s\\fi\\else x\\fi%s",
    ],
)
def test_what_cannot_be_printed_is_left_out(tmp_path: Path, paper: str) -> None:
    tables, source = read(tmp_path, paper % (HIDDEN, SHOWN))
    assert tables == {"table1": [["A", "B"], ["x", "1.5"]]} and source.unread == []


def test_a_table_that_a_switch_leaves_out_is_named(tmp_path: Path) -> None:
    _, source = read(tmp_path, f"\\newif\\iflong\n\\iflong\n{HIDDEN}\\fi{SHOWN}\\iffalse{HIDDEN}\\fi")
    (note,) = source.not_read
    assert "paper.tex:3: " in note and "\\iflong" in note
    tables, source = read(tmp_path / "open", f"{SHOWN}\n\\iffalse {HIDDEN}")
    assert len(tables) == 1 and "paper.tex:3: no \\fi" in source.not_read[0]


@pytest.mark.parametrize(
    ("paper", "condition"),
    [
        ("\\newif\\iflong \\input{flags}\\iflong %s\\fi%s", "\\iflong"),
        ("\\newif\\iflong \\InputIfFileExists{flags}{}{}\\iflong %s\\fi%s", "\\iflong"),
        ("\\newif\\iflong \\setbool{long}{\\x}\\iflong %s\\fi%s", "\\iflong"),
        ("\\newif\\iflong\\usepackage[a]{b, venue}\n\\newif\\ifa\\ifa\\else\\iflong %s\\fi%s\\fi", "\\iflong"),
        ("\\ifdraft %s\\fi%s", "\\ifdraft"),
        ("\\newif\\iflong {\\longtrue}\\iflong %s\\fi%s", "\\iflong"),
        ("\\newif\\iflong \\ifx\\a\\b\\longtrue\\fi\\iflong %s\\fi%s", "\\iflong"),
        ("\\ifx\\a\\b %s\\fi%s", "\\ifx"),
        ("\\if0\\a %s\\fi%s", "\\if"),
    ],
)
def test_a_condition_that_is_not_decided_is_named(tmp_path: Path, paper: str, condition: str) -> None:
    (tmp_path / "venue.sty").write_text("\\longtrue")
    tables, source = read(tmp_path, paper % (HIDDEN, SHOWN))
    assert [rows[1] for rows in tables.values()] == [["x", "1.5"]]
    assert source.tables_there == 2 and f"{condition}, paper.tex:" in source.unread[0].why
    tables, source = read(tmp_path / "styles", f"\\iftoggle{{long}}{{{HIDDEN}}}{{}}{SHOWN}")
    assert len(tables) == 2 and "\\iftoggle, paper.tex:1)" in source.not_read[0], "a style's: read, and named"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bytes(range(256)) * 2_000, "no table that"),
        (b"%PDF-1.5 and more", "is a PDF"),
        (b"\x1f\x8b\x08 and more", "unpack it"),
        (b"paper.tex".ljust(257, b"\0") + b"ustar and more", "unpack it"),
        (b"\\begin{tabular}{ll} a & 1 \\\\\n" * 4_000_000, "more than 4 MB"),
        (b"\\input{gone}", "no such file"),
        (("\\begin{minipage}\n" * 60_000).encode(), "no table that"),
        (("\\begin{tabular}{l}\n" * 3_000 + "&\n" * 100_000 + "\\end{tabular}\n" * 3_000).encode(), "could be read"),
        (("\\begin{table}\n" + "\\ifx\n" * 50_000 + "\\fi\n" * 50_000 + "\\end{table}").encode(), "no tabular"),
        (
            ("\\begin{tabular}{ll}\n" + "\\ifx\n" * 50_000 + "\\fi\n" * 50_000 + "\\end{tabular}").encode(),
            "a condition",
        ),
        (("\\section{\n" * 50_000 + "1").encode(), "could be read"),
    ],
    ids=[
        "binary",
        "PDF",
        "gzip",
        "tar",
        "100 MB",
        "missing",
        "deep",
        "deep tables",
        "ifs",
        "ifs in a table",
        "sections",
    ],
)
def test_a_hostile_paper_ends_in_a_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "paper.tex").write_bytes(content)
    began = time.process_time()
    with pytest.raises(UsageError, match=r"paper\.tex: ") as error:
        write_tables(tmp_path / "paper.tex", tmp_path / "out")
    assert reason in str(error.value) and len(str(error.value)) < 2_000
    assert time.process_time() - began < 20 and not (tmp_path / "out").exists()


def test_a_folder_is_answered_with_the_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "main.tex").write_text(SMALL)
    with pytest.raises(UsageError, match=r"is a folder.*main\.tex"):
        write_tables(tmp_path, tmp_path / "out")


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the foreign files are not on this machine")
def test_foreign_forms_are_read_as_they_are_printed(tmp_path: Path) -> None:
    write_tables(FOREIGN / "forms.tex", tmp_path)
    source = read_paper_source(tmp_path)
    first, second, third = read_tables(tmp_path)
    assert source.tables_there == 3 and source.not_read == []
    numbers = {row: [first.cells[row][column].number for column in "ABC"] for row in first.rows}
    assert numbers["Base"] == ["50.0", "60.0", "70.0"] and first.cell("Ours", "B").sd == "0.1"
    assert numbers["Fourth"] == ["1.5e3", "12.5", "3.5"] and numbers["Third"] == [None, "-1.5", "1234.5"]
    assert numbers["Fifth"] == ["1234", "12.3", "1.2e-3"] and first.cell("Fifth", "Avg").relation == "<"
    assert second.cell("Ours", "A").sd == "1.2" and second.cell("Ours", "B").bold
    assert third.rows == ("one", "two")


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the foreign files are not on this machine")
@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.tex")), ids=lambda path: path.stem)
def test_every_foreign_table_is_read(tmp_path: Path, path: Path) -> None:
    write_tables(path, tmp_path)
    source = read_paper_source(tmp_path)
    assert len(source.tables) == source.tables_there > 0 and source.unread == []
    for table in read_tables(tmp_path):
        assert table.half_read == [] or path.stem in ("forms",)
