"""Every writer of HTML and SVG is given hostile texts: none of them becomes a part of what it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from plumbline.audit.__main__ import main as audit
from plumbline.evaluate.probes import _picture
from plumbline.results.figures import figure_style
from plumbline.specs.study_config import Study
from plumbline.verdict.board.board_page import write_board
from plumbline.verdict.board.board_rows import Board, BoardRow
from plumbline.verdict.decision import budget_page, decision_page
from plumbline.verdict.decision.budget_course import decide_course
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.screen import screen_page
from plumbline.verdict.screen.screen_design import Factor, make_design
from tests import run_in_process
from tests.hostile_texts import HOSTILE, MARKUP
from tests.report.headless_browser import Browser
from tests.report.page_checks import check_in_browser, check_page, check_picture
from tests.verdict.decision.test_budget_course import TERMS as BUDGETS
from tests.verdict.decision.test_budget_course import runs_at
from tests.verdict.decision.test_decision_page import decide
from tests.verdict.screen.test_screen_course import TERMS, MadeUpTrainer

#: What writes a page or a picture, and the file that holds what it writes to `page_checks`.
WRITERS = {
    "audit/paper/html_page.py": __file__,
    "audit/printed_tables.py": __file__,
    "evaluate/probes/_picture.py": __file__,
    "report/copied_files.py": "test_copied_files.py",
    "report/markdown_page.py": "test_pages.py",
    "report/report_site.py": "test_pages.py",
    "report/run_curve.py": "test_pages.py",
    "report/templates/layout.html.j2": "test_pages.py",
    "report/templates/tried.html.j2": "test_workbench.py",
    "report/workbench/drawn_curves.py": "test_workbench.py",
    "results/figures/figure_style.py": __file__,
    "verdict/board/board_page.py": __file__,
    "verdict/page.py": __file__,
    "verdict/picture_parts.py": __file__,
    "verdict/templates/board.html.j2": __file__,
    "verdict/templates/page.html.j2": __file__,
}
_WRITES = re.compile(
    r"<!(?i:doctype) html|<svg (class|xmlns)|savefig\(|\bMarkup\(|MarkdownIt\(|\| *safe\b|autoescape false"
)


def test_every_writer_of_pages_and_pictures_is_listed(repository: Path) -> None:
    package = repository / "src/plumbline"
    sources = [*package.rglob("*.py"), *package.rglob("*.j2"), *(repository / "studies").rglob("*.py")]
    assert {path.relative_to(package).as_posix() for path in sources if _WRITES.search(path.read_text())} == set(
        WRITERS
    )
    for holder in set(WRITERS.values()):
        assert re.search("check_page|check_in_browser", (Path(__file__).parent / holder).read_text())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What these writers make of such texts."""
    folder = tmp_path_factory.mktemp("written")
    for write in (_write_board, _write_decisions, _write_screen, _write_audit, _write_figures):
        write(folder)
    return folder


def _write_board(folder: Path) -> None:
    rows = [
        BoardRow(
            name=text, description=text, date=text, claimed=float(place), shown=text, again=text, verdict=text,
            faults=(text,), lines=(f"- **{text}** `{text}`",), notes=(text,), predecessor=text, tier="run again",
        )
        for place, text in enumerate((*MARKUP, HOSTILE))
    ]  # fmt: skip
    board = Board(title=HOSTILE, headline=HOSTILE, rows=rows, source=HOSTILE, checked=HOSTILE, left_out=MARKUP)
    write_board(replace(board, error=0.1, error_words=HOSTILE), folder / "board")


def _write_decisions(folder: Path) -> None:
    for place, text in enumerate((*MARKUP, HOSTILE)):
        names = {"candidate": text, "metric": text, "trainer": text, "unit": text, "baseline": f"b{text}"}
        decision = replace(decide((4.9912, 4.9935), **names), sentence=text)
        decision_page.write(decision, folder / f"decision{place}.md")
        arms = [runs_at(gain) for gain in (0.2, 0.1, 0.0)]
        arms = [
            replace(each, runs=tuple(run if run.arm == BASELINE else replace(run, arm=text) for run in each.runs))
            for each in arms
        ]
        terms = replace(BUDGETS, name=text, candidate=text, metric=text, labels=(f"1{text}", f"2{text}", f"4{text}"))
        budget_page.write(decide_course(terms, arms), folder / f"budget{place}.md")


def _write_screen(folder: Path) -> None:
    names = [*MARKUP, "c", "d"]
    design = make_design([Factor(name) for name in names], runs=32, seed=1)
    terms = replace(TERMS, baseline=HOSTILE, metric=HOSTILE, unit=HOSTILE, changes=dict(zip(names, MARKUP)))
    decision = MadeUpTrainer({names[0]: 0.3, names[1]: 0.4}).screen(terms, design)
    told = {"ledger": HOSTILE, "to_keep": HOSTILE, "changed_files": {HOSTILE: "+1"}}
    screen_page.write(replace(decision, **told), folder / "screen.md")
    screen_page.write(replace(decision, sentence=HOSTILE, **told), folder / "screen2.md")


def _write_audit(folder: Path) -> None:
    texts = cycle(re.sub(r"[$%&#_{}~^\\\\]", "", text) for text in (HOSTILE, *MARKUP))
    numbers = ("61.2 & 40.1 & 58.7 & 53.3", "62.0 & 41.3 & 58.9 & 54.1", "63.4 & 41.0 & 59.5 & 54.6")
    numbers += ("61.9 & 42.2 & 60.3 & 55.8", "60.5 & 39.4 & 57.2 & 52.4")
    rows = [rf"{next(texts)} & {row} \\" for row in numbers]
    head = rf"Model & {next(texts)} & {next(texts)} & {next(texts)} & Avg. \\ \midrule"
    begin = rf"\begin{{table}}\caption{{{next(texts)}}}\begin{{tabular}}{{lrrrr}}"
    end = r"\end{tabular}\end{table} It falls from 26.6 to 24.8, an 8.6\% reduction."
    source = "\n".join((rf"\section{{{next(texts)}}}", begin, head, *rows, end))
    (folder / "paper <b>hostile.tex").write_text(source, encoding="utf-8")
    process = run_in_process.run(audit, "--from", "paper <b>hostile.tex", "audit <b>hostile", cwd=folder)
    assert process.returncode == 10, process.stdout


def _write_figures(folder: Path) -> None:
    figure, axes = figure_style.make_canvas(6, 3)
    study = cast(Study, SimpleNamespace(label=lambda method: method))
    for text in (HOSTILE, *MARKUP):
        axes.plot([1, 2], [1, 2], label=figure_style.format_label(study, text))
    axes.set_title(figure_style.format_label(study, HOSTILE))
    axes.set_xticks([1, 2], [figure_style.format_label(study, text) for text in MARKUP[:2]])
    axes.legend()
    frame = pd.DataFrame({"label": [HOSTILE]})
    figure_style.save(figure_style.FigureWithData(figure, frame), folder / "figure.png")
    rows = [{"probe": text, "layer": 0, "head": 0, "value": 1.0, "null": 0.5} for text in MARKUP]
    _picture.save(_picture.draw(pd.DataFrame(rows), HOSTILE), folder / "probes.png")


def list_written(folder: Path, ending: str) -> list[Path]:
    paths = sorted(folder.rglob(f"*{ending}"))
    assert paths
    return paths


def test_nothing_of_a_text_becomes_a_part_of_a_page(written: Path) -> None:
    pages = list_written(written, ".html")
    assert {path.stem for path in pages} >= {"index", "audit", "screen", "screen2"}
    for page in pages:
        check_page(page)
        assert "hostile" in page.read_text()


def test_nothing_of_a_text_becomes_a_part_of_a_picture(written: Path) -> None:
    for picture in list_written(written, ".svg"):
        check_picture(picture)


def test_nothing_runs_in_a_browser(written: Path, chromium: Browser) -> None:
    check_in_browser(chromium, *list_written(written, ".html"), *list_written(written, ".svg"))
