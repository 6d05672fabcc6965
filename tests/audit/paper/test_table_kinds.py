"""Tables as people write them, a second one of each kind that a reader knows: rows and columns as they are printed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from plumbline.audit.paper.latex.write_tables import write_tables
from tests.audit.paper.test_latex_tables import read

KINDS = {
    "NiceTabular with a row's style": (
        r"""\begin{NiceTabular}{@{}l*{2}{c}@{}} \toprule \Block{2-1}{Model} & \Block{1-2}{GSM8K} & \\ \cmidrule(lr){2-3}
        & 0-shot & 8-shot \\ \midrule Base & 31.2 & 48.0 \\ \RowStyle{\itshape} Ours & 34.5 & 50.1 \\ \bottomrule
        \CodeAfter \tikz \draw (1-|1) -- (2-|2); \end{NiceTabular}""",
        "Model,GSM8K / 0-shot,GSM8K / 8-shot|Base,31.2,48.0|Ours,34.5,50.1",
    ),
    "longtblr with a cell of two lines": (
        r"""\begin{longtblr}[caption={Runs},label={tab:r}]{colspec={X[l]X[c]X[c]}, rowhead=2} \toprule
        \SetCell[r=2]{l} Method & \SetCell[c=2]{c} Test & \\ & Acc & NLL \\ \midrule A & 81.0 & 0.61 \\
        B & {82.4 \\ } & 0.58 \\ \bottomrule \end{longtblr}""",
        "Method,Test / Acc,Test / NLL|A,81.0,0.61|B,82.4,0.58",
    ),
    "longtabu with a head": (
        r"""\begin{longtabu} spread 0pt {@{}lrr@{}} \hline Task & Base & Ours \\ \hline \endhead A & 12.5 & 13.1 \\
        \tabucline[1pt]{-} B & 40.2 & 41.0 \\ \hline \end{longtabu}""",
        "Task,Base,Ours|A,12.5,13.1|B,40.2,41.0",
    ),
    "tabularx with columns of its own": (
        r"""\begin{tabularx}{\linewidth}{@{}X >{\centering\arraybackslash}X Y@{}} \toprule Data & Train & Test \\
        \midrule WMT & 4.5M & 3,003\tnote{a} \\ IWSLT & 160K & 6,750 \\ \bottomrule \end{tabularx}""",
        'Data,Train,Test|WMT,4.5M,"3,003"|IWSLT,160K,"6,750"',
    ),
    "longtable with heads and feet": (
        r"""\begin{longtable}{lrr} \caption{Per task.}\label{tab:l}\\ \toprule Task & Base & Ours \\ \midrule
        \endfirsthead \multicolumn{3}{c}{\tablename\ \thetable{} continued} \\ \toprule Task & Base & Ours \\
        \midrule \endhead \midrule \multicolumn{3}{r}{continued below} \\ \endfoot \bottomrule \endlastfoot
        A & 1.5 & 1.7 \\ B & 2.5 & 2.9 \\ \end{longtable}""",
        "Task,Base,Ours|A,1.5,1.7|B,2.5,2.9",
    ),
    "longtable as pandoc writes it": (
        r"""\begin{longtable}[c]{@{}lr@{}} \toprule \begin{minipage}[b]{0.2\columnwidth}\raggedright Task\strut
        \end{minipage} & Score\tabularnewline \midrule \endhead A & 10.5\tabularnewline B & 11.5\tabularnewline
        \bottomrule \end{longtable}""",
        "Task,Score|A,10.5|B,11.5",
    ),
    "columns of siunitx under a shared head": (
        r"""\begin{tabular}{@{}l*{2}{S[table-format=-2.2,detect-weight]}S@{}} \toprule & \multicolumn{2}{c}{Error} &
        {Time} \\ \cmidrule(lr){2-3} & {train} & {test} & {(\si{\milli\second})} \\ \midrule a & -1.20(11) & 3.45 &
        12 \pm 3 \\ b & 0.40 & {--} & 15 +- 2 \\ \bottomrule \end{tabular}""",
        "name,Error / train,Error / test,Time / (ms)|a,-1.20 ± 0.11,3.45,12 ± 3|b,0.40,–,15 +- 2",
    ),
    "heads before the first rule": (
        r"""\begin{tabular}{lcc} & \multicolumn{2}{c}{Accuracy} \\ Model & Dev & Test \\ \toprule a & 60.1 & 59.0 \\
        b & 61.0 & 60.2 \\ \bottomrule \end{tabular}""",
        "Model,Accuracy / Dev,Accuracy / Test|a,60.1,59.0|b,61.0,60.2",
    ),
    "thousands, six ways": (
        r"""\begin{tabular}{lrr} Set & Train & Test \\ \midrule A & \num[group-separator={,}]{12345} & 1{,}200 \\
        B & 1\ 234\ 567 & 9~800 \\ C & 1\thinspace234 & \numprint{55000} \\ \end{tabular}""",
        'Set,Train,Test|A,12345,"1,200"|B,1 234 567,9 800|C,1 234,55000',
    ),
    "a coverage beside a bold number": (
        r"""\begin{tabular}{lcc} Set & A & B \\ \midrule a & 58\% & \textbf{89\%} @97\% \\ b & 74\% @68\% & 71 \% \\
        \end{tabular}""",
        "Set,A,B|a,58%,**89% @97%**|b,74% @68%,71 %",
    ),
    "± in the format of two columns": (
        r"""\begin{tabular}{l r@{ $\pm$ }l r@{$\,\pm\,$}l} \toprule Model & \multicolumn{2}{c}{Acc} &
        \multicolumn{2}{c}{F1} \\ \midrule a & 48.2 & 0.3 & 50.1 & 1.2 \\ b & \textbf{49.0} & \textbf{0.4} & 51.0 & 1.0
        \\ \bottomrule \end{tabular}""",
        "Model,Acc,F1|a,48.2 ± 0.3,50.1 ± 1.2|b,**49.0 ± 0.4**,51.0 ± 1.0",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_table_of_a_kind(tmp_path: Path, kind: str) -> None:
    table, rows = KINDS[kind]
    tables, source = read(tmp_path, f"\\begin{{document}}\\begin{{table}}{table}\\end{{table}}\\end{{document}}")
    written = (tmp_path / "out").glob("*.csv")
    assert ["|".join(filter(None, path.read_text().splitlines())) for path in written] == [rows]
    assert len(tables) == source.tables_there == 1 and source.unread == source.not_read == []


@pytest.mark.parametrize(("cell", "counts"), [("gpt-4o", 0), ("Falcon 7B", 0), ("hate: 1431", 1), ("6/10", 1)])
def test_a_table_counts_as_unread_where_numbers_stand_in_it(tmp_path: Path, cell: str, counts: int) -> None:
    other = "\\begin{tabular}{lr} A & B \\\\ \\hline x & 1.5 \\\\ \\end{tabular}"
    rows = f"a & {cell} & of {cell}-x \\\\ b & {cell} & {cell} \\\\"
    _, source = read(tmp_path, f"{other}\\begin{{tabular}}{{lll}} M & A & B \\\\ \\hline {rows} \\end{{tabular}}")
    assert (source.tables_there, len(source.unread)) == (1 + counts, counts)


def test_a_table_of_too_many_rows_leaves_the_others_to_be_read(tmp_path: Path) -> None:
    small = "\\begin{tabular}{lr} A & B \\\\ \\hline x & 1.5 \\\\ \\end{tabular}\n"
    rows = "a & 1.5 \\\\\n" * 2_100
    tables, source = read(tmp_path, f"\\begin{{longtable}}{{lr}} A & B \\\\ \\hline {rows} \\end{{longtable}}{small}")
    assert len(tables) == 1 and source.tables_there == 2
    assert "2101 rows" in source.unread[0].why


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_file_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "part.tex").write_text(
        "\\begin{tabular}{lr} Für & B \\\\ \\hline x & 1.5 \\\\ \\end{tabular}", encoding=encoding
    )
    tables, _ = read(tmp_path, "\\input{part}")
    assert tables == {"tabular1": [["Für", "B"], ["x", "1.5"]]}


@pytest.mark.parametrize(
    "text",
    ["\\begin{tabular}{l}" * 3_000 + "1" + "\\end{tabular}" * 3_000, "\\section[\n" * 40_000 + "\\\\[\n" * 40_000],
    ids=["tabulars in tabulars", "brackets that do not close"],
)
def test_what_is_begun_again_and_again_takes_no_time(tmp_path: Path, text: str) -> None:
    (tmp_path / "paper.tex").write_text("\\begin{tabular}{lr} A & B \\\\ x & 1.5 \\end{tabular}\n" + text)
    begin = time.process_time()
    write_tables(tmp_path / "paper.tex", tmp_path / "out")
    assert time.process_time() - begin < 2 and (tmp_path / "out/tabular1.csv").is_file()
