"""A board's pages open from disk, fit a phone, say what was checked, and show what luck alone would give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.experiment.board import __main__ as board_verb
from plumbline.experiment.board.board_rows import Board, BoardRow, day_of
from plumbline.experiment.board.progress import best_of, progress
from plumbline.experiment.board.progress_picture import progress_svg
from tests.report import headless_browser
from tests.run_in_process import run

HOSTILE = "<script>alert(1)</script> \x1b[2J {{ 7 * 7 }}"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """The board of four records, one of whose headlines is wrong and one of whose names is hostile."""
    rng, folder = np.random.default_rng(3), tmp_path / "records"
    folder.mkdir()
    runs = gate_faults.made(rng, 5)
    gate_faults.write_table(folder, runs, "3.2711", 2900, 5, rng)
    for log in (folder / "results/new").iterdir():
        log.write_text(log.read_text().replace("step:3000/3000", "step:2900/2900"))
    page = folder / "README.md"
    page.write_text(page.read_text().replace("| 2 |", f"| 2 {HOSTILE} |"))
    (tmp_path / "rules.toml").write_text(
        gate_faults.TABLE_RULES + '[predecessor]\nalpha = 0.01\nslope = 4.5e-5\nsource = "x"\n'
    )
    out = tmp_path / "pages"
    done = run(board_verb.main, folder, "--rules", tmp_path / "rules.toml", "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return out


def test_a_row_says_the_tier_and_nothing_of_others_is_markup(pages: Path) -> None:
    said = json.loads((pages / "board.json").read_text())
    assert [each["tier"] for each in said["records"]] == ["logs checked"] * 3 + ["claimed"]
    assert said["records"][3]["does_not_hold"] == ["headline"] and said["tiers"]["claimed"] == 1
    for name in ("index.html", "progress.svg", "card.svg"):
        text = (pages / name).read_text()
        assert "<script" not in text and "\x1b" not in text and "49" not in re.findall(r"2 &lt;script.{60}", text)
        assert not re.findall(r"""(?:src|href|url\()=?["']?(?:https?:)?//""", text)


def test_the_band_is_the_law_of_the_best_of_so_many_tries() -> None:
    rng = np.random.default_rng(0)
    best = 3600 + 8 * rng.standard_normal((100_000, 20)).min(axis=1)
    low, high = best_of(20, 3600, 8, lower=True)
    assert np.quantile(best, [0.05, 0.95]) == pytest.approx([low, high], abs=0.15)
    assert best_of(20, 0.0, 1.0, lower=False)[0] == pytest.approx(-best_of(20, 0.0, 1.0, lower=True)[0])


def test_a_board_of_nulls_stays_in_its_band() -> None:
    rng, beyond = np.random.default_rng(4), 0
    for _ in range(400):
        values = [3600.0, *(3600 + 8 * rng.standard_normal(19))]
        rows = [BoardRow(name=str(at), claimed=float(value)) for at, value in enumerate(values)]
        last = [point for point in progress(Board(title="x", headline="y", rows=rows, error=8.0)) if point.best][-1]
        beyond += last.value < best_of(19, 3600, 8, lower=True)[0]
    assert beyond / 400 == pytest.approx(0.05, abs=0.03)


def test_a_board_without_noise_or_records_is_drawn_too() -> None:
    row = BoardRow(name="x")
    for rows in ([], [row], [BoardRow(name="y", claimed=3.0, date="2026-01-02")]):
        text = progress_svg(Board(title="t", headline="h", rows=rows, error_words="the noise is not known"))
        assert text.startswith("<svg") and "no band of luck: the noise is not known" in text and "nan" not in text


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026/04/26", "2026-04-26"),
        ("2026-03-19T10:00:00Z", "2026-03-19"),
        ("05/28/24", "2024-05-28"),
        ("Jan 29 2026", "2026-01-29"),
        ("2026-13-40", None),
        ("2019", None),
    ],
)
def test_dates_are_read_as_boards_write_them(text: str, iso: str | None) -> None:
    day = day_of(text)
    assert (day.isoformat() if day else None) == iso


def test_a_project_s_own_records_and_verdicts_are_a_board(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "records").symlink_to(repository / "records")
    assert run(board_verb.main, folder, cwd=tmp_path).returncode == 1  # a link is not followed: nothing is there
    verdict = {
        "sentence": "`mine` improves by 0.02.",
        "verdict": "keep",
        "p": 0.001,
        "at": "2026-01-02T03:04:05Z",
        "runs": [1],
    }
    (folder / "mine.json").write_text(json.dumps(verdict))
    (folder / "mine.md").write_text("# mine\n")
    (folder / "other.json").write_text("{}")
    assert run(board_verb.main, folder, "--out", tmp_path / "a", cwd=tmp_path).returncode == 0
    (row,) = json.loads((tmp_path / "a/board.json").read_text())["records"]
    assert (row["record"], row["verdict"], row["p_predecessor"]) == ("mine", "keep", 0.001)
    assert run(board_verb.main, repository / "records", "--out", tmp_path / "b", cwd=tmp_path).returncode == 0
    kept = json.loads((tmp_path / "b/board.json").read_text())["records"]
    assert kept and all(each["tier"] == "logs checked" for each in kept)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_window_and_asks_for_nothing(pages: Path, width: int, dark: bool) -> None:
    program = headless_browser.installed()
    if program is None:
        pytest.skip("no Chromium")
    browser = headless_browser.Browser(program)
    try:
        browser.look(width=width, dark=dark)
        browser.open(pages / "index.html")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.images.length === 1 && document.images[0].naturalWidth > 0")
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith((pages.as_uri(), "data:", "about:"))] == []
    finally:
        browser.close()
