"""Every table of every study compiles with pdflatex, and a few with lualatex, as they are written.

Nothing sticks out of a line or a page, no sign is missing, and no table is made smaller than can be read. The programs
come with Debian's texlive-latex-recommended (pdflatex) and texlive-luatex (lualatex).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.results.tables import tex_table, write_table
from tests.studies.made_targets import TABLES, make_table

#: One table of each study, which is not slow.
QUICK = {
    ("key_norms", "table1"), ("quack", "table1"), ("query_free", "table2"), ("premature", "table12"),
    ("transfer", "table2"),
}  # fmt: skip

#: Tables with the most signs that TeX's fonts lack, and one over pages in landscape.
LUALATEX = [("premature", "table12"), ("query_free", "table1"), ("transfer", "table2")]

#: The smallest that a table for a paper may be made, as a share of \\small, and those of all tasks or settings.
SMALLEST, OF_ALL_TASKS = 0.75, 0.55

DOCUMENT = r"""\documentclass{article}
%s
\begin{document}
\let\made\resizebox
\renewcommand{\resizebox}[3]{\sbox0{#3}\typeout{takes \the\wd0 of \the\linewidth}\made{#1}{#2}{#3}}
Table~\ref{tab:%s}.
\input{table.tex}
\input{table.notes.tex}
\typeout{all columns}
\input{table.all.tex}
\end{document}
"""


def compile_table(program: str, study: str, name: str, folder: Path) -> tuple[str, str]:
    """Compile a table's three files twice; gives what was printed of the table for a paper, and of the whole."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} (Debian: texlive-latex-recommended, texlive-luatex)")
    table, frames = make_table(study, name)
    write_table.write(table, frames, folder / "table.csv")
    (folder / "document.tex").write_text(DOCUMENT % (tex_table.PACKAGES, f"{study}-{name}"))
    for _ in range(2):
        process = subprocess.run(
            [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "document.tex"],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        )
        assert process.returncode == 0, process.stdout[-3000:]
    log = (folder / "document.log").read_text(errors="replace")
    for wrong in ("Overfull \\hbox", "Float too large", "Missing character", "undefined"):
        assert wrong not in log, log[log.index(wrong) :][:500]
    return process.stdout.partition("all columns")[0], process.stdout


@pytest.mark.parametrize(
    ("study", "name"), [pytest.param(*one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in TABLES]
)
def test_pdflatex(study: str, name: str, tmp_path: Path) -> None:
    for_paper, whole = compile_table("pdflatex", study, name, tmp_path)
    wide = name == "task_deltas"
    for output, smallest in ((for_paper, OF_ALL_TASKS if wide else SMALLEST), (whole, OF_ALL_TASKS)):
        for width, line in re.findall(r"takes ([\d.]+)pt\s*of ([\d.]+)pt", output):
            assert float(line) / float(width) >= smallest, (width, line)
    text = (tmp_path / "table.tex").read_text()
    caption = re.search(r"\\caption\{(.*)\}\s*(\\label|$)", text, flags=re.M)
    assert caption is not None and len(caption[1]) <= 190
    assert "[U+" not in (tmp_path / "table.all.tex").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("study", "name"), LUALATEX)
def test_lualatex(study: str, name: str, tmp_path: Path) -> None:
    compile_table("lualatex", study, name, tmp_path)
