"""Tables read from LaTeX: cells, marks, heads, sources; what is hostile or unknown is reported and never guessed."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.audit.paper.latex.running_text import read_sections
from plumbline.audit.paper.latex.source_files import read_source
from plumbline.audit.paper.latex.tabulars import find_tables
from plumbline.audit.paper.latex.tokens import read_tokens
from plumbline.audit.paper.latex.write_tables import write_tables
from plumbline.audit.paper.paper_table import read_tables
from plumbline.core.errors import UsageError

PAPER = r"""
\newcommand{\best}[1]{\textbf{#1}} \newcommand\std[2][0.9]{\,$\pm$\,#2} \def\ours{Ours}
% \begin{tabular}{ll} no & table \\ \end{tabular}
\iffalse \begin{tabular}{ll} no & table \\ \end{tabular} \fi
\begin{table}[t]
\caption{Main \textbf{results} on $\mathcal{D}$.} \label{tab:main}
\begin{tabular}{@{}l|*{2}{c}>{\raggedright}p{2cm}S[table-format=2.1]@{}}
\toprule
\multirow{2}{*}{Method} & \multicolumn{2}{c}{Accuracy ($\uparrow$)} & Loss $\downarrow$ & {S} \\
\cmidrule(lr){2-3}
 & PIQA & \textbf{ARC} \\
\midrule
Base~\cite{foo} & 48.2\std{0.3} & 30.1\% & 2.34 & 48.2(3) \\ % a comment & more
\rowcolor{gray} \ours{} & \best{49.0} & $\mathbf{31.2}_{\pm 0.2}$ & $-2.07^{\dagger}$ & 1{,}234 \\[2pt]
\midrule
\multicolumn{5}{l}{\textit{Larger}} \\
\multirow{2}{*}{Foo} & \underline{48.9} & \unheard{12} & \makecell{1.2\\B} & \num{7.5e-3} \\
 & {\bf 1.0} & $1.2\times 10^{-4}$ & \textcolor{red}{3} & --- \\
\bottomrule
\end{tabular}
\end{table}
"""


def read(folder: Path, text: str) -> tuple[list[list[str]], dict[str, object]]:
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    write_tables(folder / "paper.tex", folder / "out")
    with (folder / "out/table1.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    return rows, json.loads((folder / "out/sources.json").read_text())


def test_a_table_as_papers_set_it(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, PAPER)
    assert rows == [
        ["Method", "Accuracy (↑) / PIQA", "Accuracy (↑) / ARC", "Loss ↓", "S"],
        ["Base", "48.2 ± 0.3", "30.1%", "2.34", "48.2 ± 0.3"],
        ["Ours", "**49.0**", "**31.2 ± 0.2**", "-2.07†", "1,234"],
        [],
        [],
        ["Foo", "_48.9_", "\\unheard12", "1.2 B", "7.5e-3"],
        ["Foo", "**1.0**", "1.2×10^-4", "3", "—"],
    ]
    (table,) = read_tables(tmp_path / "out")
    assert table.rows == ("Base", "Ours", "Foo#1", "Foo#2") and table.groups == (0, 0, 1, 1)
    assert table.place("Ours", "S") == "paper.tex:14" and table.title == "Main results on D."
    number = table.number("Foo#2", "Accuracy (↑) / ARC")
    assert number.text == "1.2e-4"
    assert any("paper.tex:17" in why and "\\unheard" in why for why in notes["not_read"])  # type: ignore[attr-defined]


def test_names_of_macros_and_accents_are_readable(tmp_path: Path) -> None:
    rows, sources = read(
        tmp_path,
        "\\newcommand{\\ours}{FooNet\\xspace}\n\\begin{table}\\begin{tabular}{lrr}\n"
        "Model & $\\bar d$ & $\\hat{p}_i$ \\\\ \\midrule\n"
        "\\ours + QK-Norm & 1 & 2 \\\\ \\ours, plain & 3 & 4 \\\\ \\ours & 5 & 6 \\\\\n\\end{tabular}\\end{table}\n",
    )
    assert rows[0] == ["Model", "bar d", "hat p_i"] and sources["not_read"] == []
    assert [row[0] for row in rows[1:]] == ["FooNet + QK-Norm", "FooNet, plain", "FooNet"]


def test_an_edited_csv_keeps_no_source_of_cells(tmp_path: Path) -> None:
    read(tmp_path, PAPER)
    path = tmp_path / "out/table1.csv"
    path.write_text(path.read_text().replace("2.34", "2.35"))
    assert read_tables(tmp_path / "out")[0].place("Ours", "S") == "paper.tex:7"
    with pytest.raises(UsageError, match=r"already.*otherwise"):
        write_tables(tmp_path / "paper.tex", tmp_path / "out")


def test_a_table_that_the_paper_has_no_more_is_not_read_again(tmp_path: Path) -> None:
    one, two = (f"\\begin{{table}}{SMALL.replace('1.0', number)}\\end{{table}}" for number in ("1.0", "7.0"))
    paper, out = tmp_path / "paper.tex", tmp_path / "out"

    def write(text: str, path: Path = paper) -> list[str]:
        path.write_text(text)
        write_tables(path, out)
        return [table.cells["x"]["B"].text for table in read_tables(out)]

    assert write(one + two) == ["1.0", "7.0"] and write(one) == ["1.0"]
    assert write(one + two) == ["1.0", "7.0"] and write(two) == ["7.0"], "the second is now the first"
    assert write(one + two) == ["1.0", "7.0"]
    edited = (out / "table2.csv").read_text().replace("7.0", "8.0")
    (out / "table2.csv").write_text(edited)
    (out / "typed.csv").write_text("name,B\nx,9\n")
    with pytest.raises(UsageError, match=r"table2\.csv.*leave --from out"):
        write(one)
    assert (out / "table2.csv").read_text() == edited
    (out / "table2.csv").unlink()
    assert write(one) == ["1.0", "9"], "what somebody typed stays"
    with pytest.raises(UsageError, match="empty folder"):
        write(two, tmp_path / "other.tex")


BODY = "OQA & 94.8 & 1 \\\\ HK & 96.3 & 2 \\\\ DIC & 95.5 & 3 \\\\"
HEAD = "Data & Acc & n \\\\"
AGAIN = "\\multicolumn{3}{c}{continued} \\\\ " + HEAD


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tabular", HEAD + "\\toprule " + BODY + "\\hline Chance & 50 & 4 \\\\"),
        ("tabular", HEAD + BODY + "\\hline Chance & 50 & 4 \\\\"),
        ("tabular", "\\hline " + HEAD + "\\hline " + BODY + "\\hline Chance & 50 & 4 \\\\"),
        ("longtable", "\\caption{x}\\label{t} \\\\ \\toprule " + HEAD + "\\midrule \\endfirsthead " + AGAIN
         + "\\midrule \\endhead \\midrule \\multicolumn{3}{r}{next page} \\\\ \\endfoot \\bottomrule \\endlastfoot "
         + BODY + "\\midrule Chance & 50 & 4 \\\\"),
        ("longtable", HEAD + "\\endhead \\multicolumn{3}{r}{more}\\endfoot " + BODY + "\\hline Chance & 50 & 4 \\\\"),
        ("longtable", AGAIN + "\\endhead " + HEAD + "\\hline\\endfirsthead " + BODY + "\\hline Chance & 50 & 4"),
    ],
    ids=["above the first rule", "no rule", "rules", "long", "one head", "heads the other way round"],
)  # fmt: skip
def test_the_head_is_what_names_the_columns(tmp_path: Path, kind: str, text: str) -> None:
    rows, sources = read(tmp_path, f"\\begin{{table}}\\begin{{{kind}}}{{lrr}}{text}\\end{{{kind}}}\\end{{table}}")
    body = [row for row in rows[1:] if row]
    assert rows[0] == ["Data", "Acc", "n"] and sources["not_read"] == []
    assert body == [["OQA", "94.8", "1"], ["HK", "96.3", "2"], ["DIC", "95.5", "3"], ["Chance", "50", "4"]]


def test_a_tabular_of_pictures_is_no_table(tmp_path: Path) -> None:
    pictures = "\\begin{tabular}{cc} \\includegraphics{a} & \\includegraphics{b} \\\\ & \\\\ \\end{tabular}\n"
    _, sources = read(tmp_path, pictures + PAPER)
    assert "without numbers to compare" in " ".join(sources["not_read"])  # type: ignore[call-overload]
    assert [table.name for table in read_tables(tmp_path / "out")] == ["table1"]


def test_only_files_of_the_papers_folder_are_input(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("outside")
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "link.tex").symlink_to(tmp_path / "secret.tex")
    (folder / "loop.tex").write_text("\\input{loop}")
    (folder / "t.tex").write_text(
        "\\begin{table}\\begin{tabular}{ll} a & b \\\\ \\hline x & 1 \\\\ \\end{tabular}\\end{table}"
    )
    names = ("t", "link", "loop", "../secret", str(tmp_path / "secret.tex"), "gone", "/dev/zero", "a\\b", "")
    text = "".join(f"\\input{{{name}}}\n" for name in names)
    rows, sources = read(folder, text)
    assert rows == [["a", "b"], ["x", "1"]]
    unread = " ".join(sources["not_read"])  # type: ignore[call-overload]
    assert unread.count("outside the paper's folder") == 4 and "inputs itself" in unread and "outside\n" not in unread
    assert len(sources["not_read"]) == len(names) - 1  # type: ignore[arg-type]


LAUGHS = "".join(
    f"\\def\\l{chr(98 + n)}{{{chr(92)}l{chr(97 + n)}" * 1 + f"\\l{chr(97 + n)}" * 9 + "}" for n in range(15)
)


@pytest.mark.parametrize(
    "attack",
    [
        "\\def\\la{ha}" + LAUGHS + "\\lp",
        "\\def\\x{\\x\\x}\\x",
        "\\newcommand{\\x}[1]{#1#1#1#1#1#1#1#1}" + "\\x{" * 40 + "a" + "}" * 40,
        "\\def\\x#1{#1}" + "\\x{" * 50_000,
        "{" * 200_000,
        "\\begin{tabular}" * 2_000,
        "\\begin{tabular}{*{999}{*{999}{*{999}{S}}}} 1 & 2 \\\\ 3 & 4 \\end{tabular}",
        "\\begin{table}" * 3_000 + "\\caption{x" * 3_000,
        "\\iffalse" * 50_000,
        "\\newcommand" * 30_000,
        "[" * 100_000,
        "\\begin{tabular}{ll} \\multicolumn{999}{c}{" + "\\textbf{" * 3_000 + "1",
        "\\begin{tabular}{ll}" + "&" * 300_000 + "\\end{tabular}",
        "%" * 1_000_000,
        "\\" * 99_999,
    ],
)
def test_hostile_latex_costs_little(tmp_path: Path, attack: str) -> None:
    good = "\\begin{table}\\begin{tabular}{ll} a & b \\\\ \\hline x & 1 \\\\ \\end{tabular}\\end{table}\n"
    (tmp_path / "paper.tex").write_text(good + attack)
    began = time.process_time()
    source = read_source(tmp_path / "paper.tex")
    tokens = read_tokens(source)
    tables, _ = find_tables(tokens, source, read_sections(tokens))
    assert tables[0].rows[1][1].content.text == "1"
    assert time.process_time() - began < 15


FRAGMENTS = st.sampled_from(
    ["\\begin{tabular}", "\\end{tabular}", "{ll}", "{", "}", "&", "\\\\", "\\hline", "\\midrule",
     "\\multicolumn{2}{c}{x}", "\\multirow{2}{*}{y}", "\\multirow", "\\multicolumn", "\\cmidrule(lr){1-2}",
     "\\cmidrule(", "[", "]", "1.5", " ", "\n", "%", "\\newcommand{\\q}[1]{#1}", "\\q", "\\def\\q#1#2{", "#1",
     "\\textbf{", "\\bf", "$", "^", "_", "\\pm", "\\input{x}", "\\begin", "\\end", "\\begin{table}", "\\end{table}",
     "\\caption{", "\\label{", "\\makecell{", "\\fi", "\\iffalse", "\\begin{comment}"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FRAGMENTS, max_size=40))
def test_any_soup_is_read_or_refused_in_words(tmp_path: Path, pieces: list[str]) -> None:
    folder = tmp_path / str(time.perf_counter_ns())
    folder.mkdir()
    (folder / "paper.tex").write_text("".join(pieces))
    try:
        write_tables(folder / "paper.tex", folder / "out")
    except UsageError as error:
        assert "no table that" in str(error)
    else:
        read_tables(folder / "out")


SMALL = "\\begin{tabular}{lrr}\\toprule A & B & C\\\\ \\midrule x & 1.0 & 2.0\\\\ y & 2.0 & 3.0\\\\ \\end{tabular}\n"


@pytest.mark.parametrize(
    "paper",
    [
        "\\begin{tabular\n" * 40_000,
        "\\begin{table}\\caption{\n" * 20_000,
        SMALL + "\\begin{tabular}{lrr}\n" + "\\cmidrule(lr\n" * 20_000 + "\\end{tabular}\n",
        SMALL + "\\input{b}\n" * 60_000,
    ],
    ids=["names", "captions", "rules", "inputs"],
)
def test_what_never_closes_costs_no_square(paper: str, tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text(paper)
    begin = time.process_time()
    try:
        write_tables(tmp_path / "paper.tex", tmp_path / "out")
    except UsageError as error:
        assert "there is no table" in str(error)
    assert time.process_time() - begin < 8


def test_table_that_is_too_large_to_be_read_again_is_not_written(tmp_path: Path) -> None:
    row = "\\multirow{9}{*}{a} & \\multicolumn{150}{c}{1} \\\\\n"
    (tmp_path / "paper.tex").write_text(SMALL + "\\begin{tabular}{ll}\n" + row * 1_900 + "\\end{tabular}\n")
    write_tables(tmp_path / "paper.tex", tmp_path / "out")
    (table,) = read_tables(tmp_path / "out")
    (reason,) = json.loads((tmp_path / "out/sources.json").read_text())["not_read"]
    assert len(table.rows) == 2 and "1900 rows and 151 columns" in reason


def test_a_cell_that_nests_too_deep_is_said(tmp_path: Path) -> None:
    paper = SMALL.replace("1.0", "{" * 50 + "1.0" + "}" * 50).replace("x &", "x\x1b[31m\u202e &")
    (tmp_path / "paper.tex").write_text(paper)
    write_tables(tmp_path / "paper.tex", tmp_path / "out")
    (reason,) = json.loads((tmp_path / "out/sources.json").read_text())["not_read"]
    assert "nest too deep" in reason
    assert not {"\x1b", "\u202e"} & set((tmp_path / "out/tabular1.csv").read_text())
